"""Vectors for memories without one: several texts in a call, and the effect of failures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from signet_actors.config.pipeline_schema import EmbeddingTrackerConfig, MemoryConfig, PipelineV2Config
from signet_actors.config.schema import Config, EmbeddingConfig
from signet_actors.errors import ProviderError, ProviderErrorKind
from signet_actors.extractor.jobs import embed as embed_jobs
from signet_actors.extractor.jobs.embed import Embed
from signet_actors.protocol.pipeline import StoreVector, VectorStored
from signet_actors.providers.embedding import Encoded
from tests.support.store_room import SetClock

DIMENSIONS = 8
TEXTS = [f"text {number}" for number in range(7)]


class FakeResources:
    """What the extractor's workshop is to this kind of job; ``failure`` decides on each call."""

    def __init__(self, batch_size: int = 3) -> None:
        self.clock = SetClock()
        tracker = EmbeddingTrackerConfig(batch_size=batch_size)
        self.pipeline = PipelineV2Config(embedding_tracker=tracker)
        self.config = Config(memory=MemoryConfig(pipeline_v2=self.pipeline), embedding=EmbeddingConfig())
        self.actor: Any = SimpleNamespace(
            clock=self.clock, config=self.config, spawn=lambda work: asyncio.get_running_loop().create_task(work)
        )
        self.calls: list[list[str]] = []
        self.failure: Callable[[Sequence[str]], Exception | None] = lambda texts: None
        self.embedded_ns = -1

    async def embed(self, texts: Sequence[str]) -> Any:
        self.calls.append(list(texts))
        await asyncio.sleep(0)
        error = self.failure(texts)
        if error is not None:
            raise error
        self.embedded_ns = self.clock.monotonic_ns()
        vectors = np.array([[len(self.calls), *[1.0] * (DIMENSIONS - 1)] for _ in texts], np.float32)
        return SimpleNamespace(model="m", dimensions=DIMENSIONS), Encoded(vectors, [b"\x01\x02"] * len(texts))

    def embedded_since(self, moment_ns: int) -> bool:
        return self.embedded_ns > moment_ns


class Run:
    """An attempt at one memory."""

    def __init__(self, text: str, version: int = 1) -> None:
        self.job = SimpleNamespace(id=text, lease_id="lease")
        self.subject = SimpleNamespace(id=text, version=version, content=text, content_hash=f"hash of {text}")
        self.reports: list[tuple[Any, Any]] = []
        self.stored = True

    async def report(self, request: Any, frames: Any = ()) -> VectorStored:
        self.reports.append((request, frames))
        return VectorStored(self.stored)


def work(resources: FakeResources, kind: Embed, texts: Sequence[str]) -> list[Any]:
    """What came of each attempt: the report, or the error."""

    async def all_at_once() -> list[Any]:
        runs = [Run(text) for text in texts]
        ends = await asyncio.gather(*(kind.work(run) for run in runs), return_exceptions=True)  # type: ignore[arg-type]
        return [run.reports[0] if end is None else end for run, end in zip(runs, ends, strict=True)]

    return asyncio.run(all_at_once())


def refused(text: str) -> Callable[[Sequence[str]], Exception | None]:
    return lambda texts: ProviderError(ProviderErrorKind.REFUSED, "I cannot read this") if text in texts else None


def test_waiting_texts_are_sent_as_one_batch_and_get_their_own_vectors() -> None:
    resources = FakeResources()
    kind = Embed(resources)  # type: ignore[arg-type]
    ends = work(resources, kind, TEXTS)
    assert resources.calls == [TEXTS[:3], TEXTS[3:6], TEXTS[6:]]
    for text, (request, frames) in zip(TEXTS, ends, strict=True):
        assert request == StoreVector(text, "lease", f"hash of {text}", "m", DIMENSIONS, b"\x01\x02")
        call = next(number for number, texts in enumerate(resources.calls, 1) if text in texts)
        assert np.frombuffer(frames[0], "<f4")[0] == call
    tracker = kind.tracker()
    assert (tracker.running, tracker.processed, tracker.failed, tracker.skipped_cycles) == (True, 7, 0, 0)
    assert tracker.last_cycle_at is not None


def test_a_text_that_cannot_be_embedded_fails_alone() -> None:
    resources = FakeResources()
    resources.failure = refused("text 1")
    kind = Embed(resources)  # type: ignore[arg-type]
    ends = work(resources, kind, TEXTS)
    assert [isinstance(end, ProviderError) for end in ends] == [number == 1 for number in range(7)]
    assert kind.pause(resources.config) is None, "the provider serves the others"
    assert (kind.tracker().processed, kind.tracker().failed) == (6, 1)


@pytest.mark.parametrize("kind_of_error", [ProviderErrorKind.UNAVAILABLE, ProviderErrorKind.TIMEOUT])
def test_an_unavailable_provider_is_tried_once_per_batch_with_growing_pauses(
    kind_of_error: ProviderErrorKind,
) -> None:
    resources = FakeResources()
    resources.failure = lambda texts: ProviderError(kind_of_error, "nobody there")
    kind = Embed(resources)  # type: ignore[arg-type]
    pauses = []
    for number in range(1, 9):
        ends = work(resources, kind, TEXTS[:3])
        assert all(isinstance(end, ProviderError) for end in ends)
        assert len(resources.calls) == number, "nothing is tried one by one where nobody answers"
        pause = kind.pause(resources.config)
        assert pause is not None
        assert pause.for_ms is not None
        assert pause.reason == "nobody there"
        pauses.append(pause.for_ms)
        assert kind.limit() == 1
        resources.clock.advance(pause.for_ms)
        assert kind.pause(resources.config) is None
    assert pauses == [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]
    assert kind.tracker().skipped_cycles == 8
    resources.failure = lambda texts: None
    work(resources, kind, TEXTS[:1])
    assert kind.limit() == kind.slots(resources.config) == 6


def test_a_changed_configuration_ends_the_pause() -> None:
    resources = FakeResources()
    resources.failure = lambda texts: ProviderError(ProviderErrorKind.UNAVAILABLE, "nobody there")
    kind = Embed(resources)  # type: ignore[arg-type]
    work(resources, kind, TEXTS[:1])
    assert kind.pause(resources.config) is not None
    kind.reconfigured()
    assert kind.pause(resources.config) is None


def test_waiting_callers_get_an_error_when_the_call_crashes(monkeypatch: pytest.MonkeyPatch) -> None:
    resources = FakeResources()
    resources.failure = lambda texts: ZeroDivisionError("of the embedder's own making")
    ends = work(resources, Embed(resources), TEXTS)  # type: ignore[arg-type]
    assert all(isinstance(end, ZeroDivisionError) for end in ends)


def test_a_cancelled_attempt_does_not_affect_the_others() -> None:
    resources = FakeResources()
    kind = Embed(resources)  # type: ignore[arg-type]

    async def one_leaves() -> list[Any]:
        runs = [Run(text) for text in TEXTS[:3]]
        tasks = [asyncio.create_task(kind.work(run)) for run in runs]  # type: ignore[arg-type]
        await asyncio.sleep(0)
        tasks[1].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, second, third = asyncio.run(one_leaves())
    assert (first, third) == (None, None)
    assert isinstance(second, asyncio.CancelledError)


def test_no_vector_is_computed_when_embedding_is_off() -> None:
    resources = FakeResources()
    kind = Embed(resources)  # type: ignore[arg-type]
    none = msgspec.structs.replace(resources.config, embedding=EmbeddingConfig(provider="none"))
    pause = kind.pause(none)
    assert pause is not None
    assert pause.reason == "embedding.provider is none"
    assert embed_jobs.MIN_BACKOFF_MS < embed_jobs.MAX_BACKOFF_MS
