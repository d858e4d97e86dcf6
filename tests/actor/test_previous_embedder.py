"""After a change of model, old vectors are searched with the previous model while there are any."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import structlog

from signet_actors.config.schema import (
    EMBEDDED_DIMENSIONS,
    EMBEDDED_MODEL,
    MINILM_DIMENSIONS,
    MINILM_MODEL,
    Config,
    EmbeddingConfig,
)
from signet_actors.gateway.previous_embedder import PreviousEmbedder, previous_config
from signet_actors.protocol.searcher import Recall, Recalled
from tests.actor.test_memory_routes_recall import RECALL, found, row
from tests.support.memory_api import DIMENSIONS, MemoryApi, WordEmbedder

LOG: Any = structlog.wrap_logger(structlog.ReturnLogger())
OLD = ("old-model", DIMENSIONS)
OLLAMA = EmbeddingConfig(provider="ollama", model="new-model", dimensions=8)


class OldEmbedder(WordEmbedder):
    model = "old-model"


def recalled(*stale: tuple[str, int], second: tuple[tuple[str, int], ...] = ()) -> Recalled:
    return Recalled(found(row()).rows, "hybrid", [], None, stale, second_spaces=second)


def on_a_loop(work: Callable[[], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        answer = await work()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            await task
        return answer

    return asyncio.run(run())


def test_a_query_is_embedded_by_both_models_while_old_vectors_are_left(tmp_path: Path) -> None:
    api, old = MemoryApi(tmp_path), OldEmbedder()
    api.state.previous_embedder.embedder = old
    api.bus.script[Recall] = recalled(OLD)
    for _ in range(2):
        assert api.request("POST", RECALL, {"query": "editor"}).status == 200
    sent = [sent for sent in api.bus.asked if isinstance(sent.body, Recall)]
    assert [(one.body.vector_model, one.body.former_model, len(one.frames)) for one in sent] == [
        ("test-model", "old-model", 2)
    ] * 2
    api.bus.script[Recall] = recalled()
    for _ in range(2):
        api.request("POST", RECALL, {"query": "editor"})
    last = [sent for sent in api.bus.asked if isinstance(sent.body, Recall)][-1]
    assert (last.body.former_model, len(last.frames)) == (None, 1)


def test_once_there_are_second_vectors_queries_are_embedded_by_their_model_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked() -> list[tuple[str | None, str | None, bool, int]]:
        api.bus.asked.clear()
        api.request("POST", RECALL, {"query": "editor"})
        (sent,) = [sent for sent in api.bus.asked if isinstance(sent.body, Recall)]
        body = sent.body
        return [(body.vector_model, body.former_model, body.prefers_former, len(sent.frames))]

    class SecondEmbedder(WordEmbedder):
        model = MINILM_MODEL

    monkeypatch.setattr("signet_actors.config.embedding_models._has_onnxruntime", lambda: True)
    api = MemoryApi(tmp_path, config=Config(embedding=EmbeddingConfig(provider="auto")))
    alone, both = [("test-model", None, False, 1)], [("test-model", MINILM_MODEL, True, 2)]
    api.bus.script[Recall] = recalled()
    assert asked() == alone
    assert asked() == alone, "no memory has one"
    api.state.previous_embedder.embedder = SecondEmbedder()
    assert asked() == both
    assert asked() == both, "a searcher that has not read them in does not count"
    api.state.previous_embedder.embedder = SecondEmbedder()
    api.state.config = Config(embedding=EmbeddingConfig(provider="embedded"))
    assert asked() == [("test-model", MINILM_MODEL, False, 2)], "a former model, until no memory has its newest vector"
    assert asked() == alone


def test_the_model_of_second_vectors_is_loaded_after_the_recall_that_reports_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def make(config: EmbeddingConfig) -> WordEmbedder:
        made.append(config.provider)
        return OldEmbedder()

    monkeypatch.setattr("signet_actors.config.embedding_models._has_onnxruntime", lambda: True)
    monkeypatch.setattr("signet_actors.gateway.previous_embedder.make_embedder", make)
    second = ((MINILM_MODEL, MINILM_DIMENSIONS),)
    for provider, expected in (("embedded", []), ("auto", ["minilm"])):
        api = MemoryApi(tmp_path / provider, config=Config(embedding=EmbeddingConfig(provider=provider)))
        api.bus.script[Recall] = recalled(second=second)
        api.request("POST", RECALL, {"query": "editor"})
        assert api.bus.only(Recall).body.former_model is None, "the first one waits for nothing"
        assert made == expected


def test_old_vectors_stay_searchable_while_the_new_provider_is_unavailable(tmp_path: Path) -> None:
    api, old = MemoryApi(tmp_path), OldEmbedder()
    api.state.previous_embedder.embedder = old
    api.embedder.failure = RuntimeError("away")
    api.bus.script[Recall] = recalled(OLD, ("test-model", DIMENSIONS))
    api.request("POST", RECALL, {"query": "editor"})
    sent = api.bus.only(Recall)
    assert (sent.body.vector_model, sent.body.former_model, len(sent.frames)) == (None, "old-model", 1)
    assert api.state.previous_embedder.embedder is old


def test_the_gateway_learns_of_an_earlier_model_change_from_a_searcher(tmp_path: Path) -> None:
    former = PreviousEmbedder()

    async def work() -> None:
        former.observe_stale(None, [(EMBEDDED_MODEL, EMBEDDED_DIMENSIONS)], WordEmbedder(), OLLAMA, LOG)

    on_a_loop(work)
    assert former.embedder is not None
    assert former.embedder.model == EMBEDDED_MODEL


def test_vectors_of_an_unknown_model_are_not_searched_and_not_tried_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert previous_config(("nomic-embed-text", 768), EmbeddingConfig()) is None
    assert previous_config(("other", 12), OLLAMA) == EmbeddingConfig(provider="ollama", model="other", dimensions=12)
    former, tried = PreviousEmbedder(), []
    monkeypatch.setattr(
        "signet_actors.gateway.previous_embedder.previous_config", lambda space, current: tried.append(space)
    )

    async def work() -> None:
        for _ in range(3):
            former.observe_stale(None, [("other", 12)], WordEmbedder(), EmbeddingConfig(), LOG)
            await asyncio.sleep(0)

    on_a_loop(work)
    assert tried == [("other", 12)]
    assert former.embedder is None


def test_an_unchanged_or_disabled_embedder_has_no_previous_embedder() -> None:
    former = PreviousEmbedder()

    async def work() -> list[Any]:
        kept: list[Any] = []
        for current in (OldEmbedder(), None, WordEmbedder()):
            await former.replace(OldEmbedder(), current)
            kept.append(former.embedder)
        return kept

    same, none, other = on_a_loop(work)
    assert (same, none) == (None, None)
    assert other.model == "old-model"


def test_without_a_provider_old_vectors_are_not_searched(tmp_path: Path) -> None:
    api = MemoryApi(tmp_path, config=Config(embedding=EmbeddingConfig(provider="none")))
    api.state.embedder = None
    api.bus.script[Recall] = recalled(OLD)
    api.request("POST", RECALL, {"query": "editor"})
    sent = api.bus.only(Recall)
    assert (sent.body.vector_model, sent.body.former_model, sent.frames) == (None, None, [])
