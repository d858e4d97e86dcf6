"""Summaries in the extractor: limited in number and time; a late one is not a failure of the provider."""

from __future__ import annotations

import asyncio
import random
from types import SimpleNamespace
from typing import Any

import pytest

from signet_actors.config.pipeline_schema import PipelineV2Config
from signet_actors.domain.extraction.answers import AnswerFormat
from signet_actors.errors import Busy, ProviderError, ProviderErrorKind, Unavailable
from signet_actors.extractor.actor import MAX_CONCURRENT, Summaries
from signet_actors.protocol.extractor import Summarize, Summarized
from signet_actors.protocol.header import Header
from signet_actors.providers.llm.guarded import GuardedProvider, GuardLimits
from signet_actors.providers.llm.provider import Availability, Generated
from signet_actors.runtime.clock import SystemClock
from tests.support.scripted_model import data_of

ASKED = Summarize("which port?", ("The port is 5433", "It is closed"))


class Model:
    """A provider that answers ``text``, waits for ever, or fails."""

    name = "scripted"
    model = "qwen3:4b"
    endpoint = None
    structured = False

    def __init__(self, text: str | Exception | None = '{"summary": "It is 5433."}') -> None:
        self.text = text
        self.prompts: list[str] = []

    async def generate(
        self, prompt: str, *, timeout_ms: int, max_tokens: int | None = None, answer: AnswerFormat | None = None
    ) -> Generated:
        self.prompts.append(prompt)
        if self.text is None:
            await asyncio.Event().wait()
        if isinstance(self.text, Exception):
            raise self.text
        return Generated(str(self.text), 1, 1, None)

    async def available(self) -> Availability:
        return Availability(True, "")

    async def close(self) -> None:
        pass


def summaries(model: Any) -> Summaries:
    clock = SystemClock()
    resources: Any = SimpleNamespace(
        actor=SimpleNamespace(clock=clock), model=model, pipeline=PipelineV2Config(), rng=random.Random(1)
    )
    return Summaries(resources)


def within(ms: int) -> Header:
    return Header("id", "trace", "gateway", 1, SystemClock().monotonic_ns() + ms * 1_000_000, 1, "boot")


def test_the_model_is_shown_the_query_and_the_results_as_data() -> None:
    model = Model()
    assert asyncio.run(summaries(model).of(ASKED, within(60_000))) == Summarized("It is 5433.", "qwen3:4b")
    assert data_of(model.prompts[0]) == ["which port?", "The port is 5433", "It is closed"]


@pytest.mark.parametrize("text", ["I cannot say.", '{"summary": ""}', ""])
def test_an_empty_answer_makes_no_summary(text: str) -> None:
    made = summaries(Model(text))
    assert asyncio.run(made.of(ASKED, within(60_000))).summary is None
    assert (made.made, made.empty, made.late) == (0, 1, 0)


def test_late_summaries_do_not_open_the_circuit_breaker() -> None:
    model = Model(None)
    guarded = GuardedProvider(model, SystemClock(), GuardLimits())
    made = summaries(guarded)

    async def cancelled_early() -> None:
        for _ in range(6):
            with pytest.raises(Unavailable):
                await made.of(ASKED, within(5))
        model.text = '{"summary": "It is 5433."}'
        assert (await guarded.generate("p", timeout_ms=60_000)).text == model.text

    asyncio.run(cancelled_early())
    assert made.late == 6
    assert guarded.report().circuit == "closed"
    assert guarded.report().in_flight == 0


def test_a_provider_error_is_reported_unchanged() -> None:
    failing = summaries(Model(ProviderError(ProviderErrorKind.UNAVAILABLE, "away")))
    with pytest.raises(ProviderError, match="away"):
        asyncio.run(failing.of(ASKED, within(60_000)))


def test_the_number_of_waiting_summaries_is_limited() -> None:
    made = summaries(Model(None))

    async def concurrent_requests() -> Any:
        waiting = [asyncio.create_task(made.of(ASKED, within(60_000))) for _ in range(MAX_CONCURRENT)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await made.of(ASKED, within(60_000))
        for task in waiting:
            task.cancel()
        return await asyncio.gather(*waiting, return_exceptions=True)

    assert len(asyncio.run(concurrent_requests())) == MAX_CONCURRENT
