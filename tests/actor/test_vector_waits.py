"""Waits for vectors in the extractor: their results, and when there is no wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from signet_actors.config.schema import EmbeddingConfig
from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.extractor.job_runner import LeaseLost
from signet_actors.extractor.jobs.embed import MAX_ENDS, Embed, VectorWaiters
from signet_actors.protocol.extractor import VectorsAwaited
from signet_actors.protocol.pipeline import VectorStored
from tests.actor.test_embed_batches import FakeResources, Run

LONG_MS = 30_000
"""Longer than any wait in a passing test."""
STORED = VectorsAwaited(["a"])
NOT_STORED = VectorsAwaited([])


def unreachable(_: Any) -> ProviderError:
    return ProviderError(ProviderErrorKind.UNAVAILABLE, "nobody there")


def told(kind: Embed, during: Callable[[], Any], versions: dict[str, int] | None = None) -> VectorsAwaited:
    """Return the reply to a waiter that was waiting when ``during`` happened."""

    async def wait() -> VectorsAwaited:
        waiting = asyncio.create_task(kind.stored(versions or {"a": 1}, LONG_MS))
        await asyncio.sleep(0)
        assert len(kind.waits) > 0
        happening = during()
        if asyncio.iscoroutine(happening):
            await asyncio.gather(happening, return_exceptions=True)
        answer = await waiting
        assert len(kind.waits) == 0
        return answer

    return asyncio.run(wait())


@pytest.fixture
def resources() -> FakeResources:
    return FakeResources()


@pytest.fixture
def kind(resources: FakeResources) -> Embed:
    return Embed(resources)  # type: ignore[arg-type]


def test_a_waiter_is_answered_when_the_writer_has_stored_the_vector(kind: Embed) -> None:
    assert told(kind, lambda: kind.work(Run("a"))) == STORED  # type: ignore[arg-type]


def test_no_waiter_is_answered_before_the_writer_has_replied(kind: Embed) -> None:
    async def wait() -> None:
        run, answered = Run("a"), asyncio.Event()

        async def report(*_: Any) -> VectorStored:
            await answered.wait()
            return VectorStored(True)

        run.report = report  # type: ignore[assignment]
        waiting = asyncio.create_task(kind.stored({"a": 1}, LONG_MS))
        working = asyncio.create_task(kind.work(run))  # type: ignore[arg-type]
        for _ in range(20):
            await asyncio.sleep(0)
        assert not waiting.done()
        answered.set()
        assert await waiting == STORED
        await working

    asyncio.run(wait())


def test_a_request_after_the_job_gets_its_result(kind: Embed) -> None:
    async def ask() -> list[VectorsAwaited]:
        await kind.work(Run("a", version=3))  # type: ignore[arg-type]
        useless = Run("b")
        useless.stored = False
        await kind.work(useless)  # type: ignore[arg-type]
        return [await kind.stored(asked, LONG_MS) for asked in ({"a": 3}, {"a": 2}, {"b": 1})]

    assert asyncio.run(ask()) == [STORED, STORED, NOT_STORED]


def test_the_vector_of_an_earlier_version_does_not_answer_a_wait_for_a_later_one(kind: Embed) -> None:
    async def ask() -> VectorsAwaited:
        await kind.work(Run("a", version=1))  # type: ignore[arg-type]
        waiting = asyncio.create_task(kind.stored({"a": 2}, LONG_MS))
        await asyncio.sleep(0)
        await kind.work(Run("a", version=1))  # type: ignore[arg-type]
        assert not waiting.done()
        await kind.work(Run("a", version=2))  # type: ignore[arg-type]
        return await waiting

    assert asyncio.run(ask()) == STORED


def test_a_deleted_memory_ends_the_wait(kind: Embed) -> None:
    run = Run("a")
    run.stored = False
    assert told(kind, lambda: kind.work(run)) == NOT_STORED  # type: ignore[arg-type]


@pytest.mark.parametrize("error", [LeaseLost(), ProviderError(ProviderErrorKind.REFUSED, "I cannot read this")])
def test_a_job_that_fails_ends_the_wait_at_once(resources: FakeResources, kind: Embed, error: Exception) -> None:
    resources.failure = lambda texts: error
    assert told(kind, lambda: kind.work(Run("a"))) == NOT_STORED  # type: ignore[arg-type]


def test_an_attempt_that_is_cancelled_ends_the_wait(resources: FakeResources, kind: Embed) -> None:
    async def cancelled() -> None:
        attempt = asyncio.create_task(kind.work(Run("a")))  # type: ignore[arg-type]
        await asyncio.sleep(0)
        attempt.cancel()
        await asyncio.wait({attempt})

    assert told(kind, cancelled) == NOT_STORED


def test_no_request_waits_while_the_provider_is_unavailable(resources: FakeResources, kind: Embed) -> None:
    resources.failure = unreachable
    others = {"of": 1, "another": 1, "memory": 1}
    assert told(kind, lambda: kind.work(Run("a")), others) == NOT_STORED  # type: ignore[arg-type]
    assert asyncio.run(kind.stored({"new": 1}, LONG_MS)) == NOT_STORED
    pause = kind.pause(resources.config)
    assert pause is not None
    assert pause.for_ms is not None
    resources.clock.advance(pause.for_ms)
    assert kind.pause(resources.config) is None
    assert asyncio.run(kind.stored({"new": 1}, LONG_MS)) == NOT_STORED, "one job tries whether it is back"
    resources.failure = lambda texts: None
    asyncio.run(kind.work(Run("b")))  # type: ignore[arg-type]
    assert told(kind, lambda: kind.work(Run("c")), {"c": 1}) == VectorsAwaited(["c"])  # type: ignore[arg-type]


def test_no_request_waits_when_no_vectors_are_computed(resources: FakeResources, kind: Embed) -> None:
    resources.actor.config = msgspec.structs.replace(resources.config, embedding=EmbeddingConfig(provider="none"))
    assert asyncio.run(kind.stored({"a": 1}, LONG_MS)) == NOT_STORED


def test_a_wait_that_times_out_returns_the_stored_vectors(kind: Embed) -> None:
    async def wait() -> VectorsAwaited:
        await kind.work(Run("a"))  # type: ignore[arg-type]
        return await kind.stored({"a": 1, "b": 1}, 1)

    assert asyncio.run(wait()) == VectorsAwaited(["a"], late=True)
    assert len(kind.waits) == 0


def test_a_drain_ends_all_waits(kind: Embed) -> None:
    assert told(kind, kind.stop_waits) == NOT_STORED
    assert asyncio.run(kind.stored({"a": 1}, LONG_MS)) == NOT_STORED


def test_several_waiters_for_one_memory_are_all_answered(kind: Embed) -> None:
    async def wait() -> list[VectorsAwaited]:
        waiting = [asyncio.create_task(kind.stored({"a": version}, LONG_MS)) for version in (1, 1, 2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await kind.work(Run("a", version=2))  # type: ignore[arg-type]
        return await asyncio.gather(*waiting[1:])

    assert asyncio.run(wait()) == [STORED, STORED]
    assert len(kind.waits) == 0


def test_the_number_of_stored_job_results_is_bounded() -> None:
    waits = VectorWaiters()
    for number in range(2 * MAX_ENDS):
        waits.ended(f"m{number}", 1, stored=True)
        waits.ended("the same", number, stored=True)

    async def ask(memory_id: str) -> VectorsAwaited:
        return await waits.stored({memory_id: 1}, 0.001)

    newest, oldest = f"m{2 * MAX_ENDS - 1}", f"m{MAX_ENDS}"
    assert asyncio.run(ask(newest)) == VectorsAwaited([newest])
    assert asyncio.run(ask("the same")) == VectorsAwaited(["the same"])
    assert asyncio.run(ask(oldest)) == VectorsAwaited([], late=True)
