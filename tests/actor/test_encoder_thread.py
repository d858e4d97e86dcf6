"""An encoder that takes milliseconds: a write uses it only while it is idle, a query waits for its turn."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from signet_actors.config.pipeline_schema import GuardrailsConfig, MemoryConfig, PipelineV2Config
from signet_actors.config.schema import MINILM_DIMENSIONS, MINILM_MODEL, Config, EmbeddingConfig
from signet_actors.gateway.encoder_thread import IDLE_CHARS
from signet_actors.gateway.previous_embedder import previous_config
from signet_actors.protocol.extractor import AwaitVectors
from signet_actors.protocol.searcher import Recall, Recalled
from signet_actors.protocol.writer import Remember, Remembered
from signet_actors.providers.embedding import Vectors
from signet_actors.providers.minilm.embedder import MiniLmEmbedder
from signet_actors.providers.select import for_event_loop
from tests.support.bus_harness import eventually
from tests.support.memory_api import Answer, MemoryApi

REMEMBER = "/api/memory/remember"
RECALL = "/api/memory/recall"


class HeldEncoder(MiniLmEmbedder):
    """The encoder without its model. Each text waits until ``released`` is set."""

    def __init__(self) -> None:
        self.token_codes = None  # type: ignore[assignment]
        self.begun: list[str] = []
        self.busy = threading.Event()
        self.released = threading.Event()
        self.released.set()
        self.failure: Exception | None = None

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self.embed_query(text) for text in texts])

    def embed_query(self, text: str) -> Vectors:
        self.begun.append(text)
        self.busy.set()
        assert self.released.wait(30)
        if self.failure is not None:
            raise self.failure
        return np.full(MINILM_DIMENSIONS, MINILM_DIMENSIONS**-0.5, np.float32)


def stored(request: Remember) -> Remembered:
    kept = request.memory
    return Remembered("m1", kept.type, [], False, 0.8, kept.content, kept.vector is not None, False, 1)


@pytest.fixture
def encoder() -> HeldEncoder:
    return HeldEncoder()


@pytest.fixture
def api(tmp_path: Path, encoder: HeldEncoder) -> MemoryApi:
    guardrails = GuardrailsConfig(max_content_chars=2 * IDLE_CHARS)
    pipeline = MemoryConfig(pipeline_v2=PipelineV2Config(guardrails=guardrails))
    made = MemoryApi(tmp_path, config=Config(embedding=EmbeddingConfig(provider="minilm"), memory=pipeline))
    made.state.embedder = encoder
    made.bus.script[Remember] = stored
    made.bus.script[Recall] = Recalled([], "hybrid", [], None)
    return made


def posted(api: MemoryApi, target: str, body: str) -> Coroutine[Any, Any, Answer]:
    return api.requested("POST", target, body.encode(), {})


def remembers(api: MemoryApi) -> list[Any]:
    return [sent for sent in api.bus.asked if isinstance(sent.body, Remember)]


def test_a_memory_is_committed_with_its_vector_while_the_encoder_is_idle(api: MemoryApi, encoder: HeldEncoder) -> None:
    for _ in range(2):
        answer = api.request("POST", REMEMBER, {"content": "User prefers\n\nvim"})
        assert answer.json["embedded"] is True
    assert encoder.begun == ["User prefers vim"] * 2
    for sent in remembers(api):
        vector = sent.body.memory.vector
        assert (vector.model, vector.dimensions) == (MINILM_MODEL, MINILM_DIMENSIONS)
        assert len(sent.frames[vector.frame]) == 4 * MINILM_DIMENSIONS


def test_a_memory_is_committed_without_a_vector_while_the_encoder_is_at_work(
    api: MemoryApi, encoder: HeldEncoder
) -> None:
    encoder.released.clear()

    async def work() -> None:
        first = asyncio.create_task(posted(api, REMEMBER, '{"content": "the first"}'))
        await asyncio.to_thread(encoder.busy.wait, 30)
        second = await posted(api, REMEMBER, '{"content": "the second"}')
        assert (second.status, second.json["embedded"]) == (200, False)
        encoder.released.set()
        assert (await first).json["embedded"] is True

    asyncio.run(work())
    assert encoder.begun == ["the first"]
    assert [sent.body.memory.content for sent in remembers(api)] == ["the second", "the first"]
    assert not [sent for sent in api.bus.asked if isinstance(sent.body, AwaitVectors)], "nobody waits for a job"


def test_beside_another_request_a_memory_is_left_to_the_extractor(api: MemoryApi, encoder: HeldEncoder) -> None:
    api.state.counters.in_flight = 1
    assert api.request("POST", REMEMBER, {"content": "User prefers vim"}).json["embedded"] is False
    api.state.counters.in_flight = 0
    assert api.request("POST", REMEMBER, {"content": "User prefers vim"}).json["embedded"] is True
    assert encoder.begun == ["User prefers vim"]


def test_a_long_text_is_left_to_the_extractor(api: MemoryApi, encoder: HeldEncoder) -> None:
    answer = api.request("POST", REMEMBER, {"content": "x" * (IDLE_CHARS + 1)})
    assert (answer.json["embedded"], encoder.begun) == (False, [])


def test_a_failing_encoder_costs_the_vector_and_nothing_else(api: MemoryApi, encoder: HeldEncoder) -> None:
    encoder.failure = RuntimeError("out of memory")
    answer = api.request("POST", REMEMBER, {"content": "User prefers vim"})
    assert (answer.status, answer.json["embedded"]) == (200, False)
    api.request("POST", RECALL, {"query": "editor"})
    assert api.bus.only(Recall).body.vector_model is None
    encoder.failure = None
    assert api.request("POST", REMEMBER, {"content": "User prefers vim"}).json["embedded"] is True


def test_a_query_waits_for_the_text_before_it_and_is_then_embedded(api: MemoryApi, encoder: HeldEncoder) -> None:
    encoder.released.clear()

    async def work() -> None:
        write = asyncio.create_task(posted(api, REMEMBER, '{"content": "the first"}'))
        await asyncio.to_thread(encoder.busy.wait, 30)
        query = asyncio.create_task(posted(api, RECALL, '{"query": "editor"}'))
        for _ in range(20):
            await asyncio.sleep(0)
        assert encoder.begun == ["the first"], "one text at a time"
        encoder.released.set()
        assert ((await write).status, (await query).status) == (200, 200)

    asyncio.run(work())
    sent = api.bus.only(Recall)
    assert (sent.body.vector_model, len(sent.frames)) == (MINILM_MODEL, 1)
    eventually(lambda: encoder.begun == ["the first", "editor"], within_s=30, what="both texts were embedded in order")


def test_vectors_of_minilm_stay_searchable_after_a_change_to_another_model() -> None:
    assert previous_config((MINILM_MODEL, MINILM_DIMENSIONS), EmbeddingConfig()) == EmbeddingConfig(provider="minilm")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has priorities of threads")
def test_series_of_texts_are_embedded_in_one_thread_of_low_priority(encoder: HeldEncoder) -> None:
    seen: list[tuple[int, int]] = []

    def embed(texts: Sequence[str]) -> Vectors:
        thread = threading.get_native_id()
        seen.append((thread, os.getpriority(os.PRIO_PROCESS, thread)))
        return np.zeros((len(texts), MINILM_DIMENSIONS), np.float32)

    encoder.embed = embed  # type: ignore[method-assign]

    async def work() -> None:
        background = for_event_loop(encoder)
        await asyncio.gather(*(background.embed_async(["a", "b"]) for _ in range(3)))
        await background.close()

    before = os.getpriority(os.PRIO_PROCESS, 0)
    asyncio.run(work())
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert seen[0][1] > before
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
