"""The routes of recall and the other searches: their messages to searchers, and their responses."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from signet_actors.config.pipeline_schema import MemoryConfig, PipelineV2Config
from signet_actors.config.schema import Config, GatewayConfig
from signet_actors.errors import Busy, InvalidRequest, Unavailable
from signet_actors.gateway.common_words import CommonWordsCache
from signet_actors.gateway.query_embedding import query_vector
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.searcher import (
    CommonWords,
    GetCommonWords,
    Recall,
    Recalled,
    RecalledRow,
    StageTiming,
)
from signet_actors.protocol.writer import TouchMemories
from tests.support.memory_api import MemoryApi

RECALL = "/api/memory/recall"


def row(**changes: Any) -> RecalledRow:
    found = RecalledRow(
        id="m1",
        content="User prefers vim keybindings",
        score=0.923456,
        source="hybrid",
        type="preference",
        tags=["preference", "editor"],
        pinned=False,
        importance=0.9,
        who="claude-code",
        project=None,
        scope=None,
        visibility="global",
        agent_id="default",
        created_at="2026-02-21T10:00:00.000Z",
    )
    return msgspec.structs.replace(found, **changes)


def found(*rows: RecalledRow, method: str = "hybrid", common: CommonWords | None = None) -> Recalled:
    return Recalled(list(rows), method, [StageTiming("memory_fts", 1.1234), StageTiming("final_rank", 0.08)], common)


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    made = MemoryApi(tmp_path)
    made.bus.script[Recall] = found(row())
    return made


def test_the_configured_min_score_is_the_default(api: MemoryApi) -> None:
    api.request("POST", RECALL, {"query": "editor"})
    assert api.bus.only(Recall).body.min_score == api.state.config.search.min_score


def test_a_long_content_is_cut_and_says_so(api: MemoryApi) -> None:
    api.bus.script[Recall] = found(row(content="x" * 501))
    (result,) = api.request("POST", RECALL, {"query": "editor"}).json["results"]
    assert result["content"] == "x" * 500 + " [truncated]"
    assert (result["content_length"], result["truncated"]) == (501, True)


def test_accesses_of_recalled_memories_are_reported_to_the_writer(tmp_path: Path) -> None:
    api = MemoryApi(tmp_path, config=Config(gateway=GatewayConfig(touch_limit=2)))
    api.bus.script[Recall] = found(
        row(relevance=0.9),
        row(id="weak", relevance=0.49),
        row(id="m2", relevance=0.5),
        row(id="m3", relevance=0.8),
    )
    api.request("POST", RECALL, {"query": "editor"})
    assert api.bus.told == [TouchMemories(ids=("m1", "m2"))]


@pytest.mark.parametrize(
    ("headers", "counts"),
    [
        ({}, True),
        ({"x-signet-actor": "codex", "x-signet-actor-type": "agent"}, True),
        ({"x-signet-actor": "python-client", "x-signet-actor-type": "sdk"}, True),
        ({"x-signet-actor": "cli", "x-signet-actor-type": "operator"}, False),
    ],
)
def test_what_a_person_looks_at_is_not_used(api: MemoryApi, headers: dict[str, str], counts: bool) -> None:
    api.bus.script[Recall] = found(row(relevance=0.9))
    api.request("POST", RECALL, {"query": "editor"}, headers)
    assert bool(api.bus.told) is counts


def test_the_kill_switch_leaves_access_times_alone(tmp_path: Path) -> None:
    frozen = Config(memory=MemoryConfig(pipeline_v2=PipelineV2Config(mutations_frozen=True)))
    api = MemoryApi(tmp_path, config=frozen)
    api.bus.script[Recall] = found(row())
    assert api.request("POST", RECALL, {"query": "editor"}).status == 200
    assert api.bus.told == []


@pytest.mark.parametrize(("failure", "status"), [(Busy(), 503), (Unavailable(), 503), (InvalidRequest("no"), 400)])
def test_an_error_of_a_searcher_keeps_its_code(api: MemoryApi, failure: Exception, status: int) -> None:
    api.bus.script[Recall] = failure
    assert api.request("POST", RECALL, {"query": "editor"}).status == status


# the GET spelling


@pytest.mark.parametrize("query", ["pinned=0", "pinned=", "importance_min=", "limit=x", "includeRecalled=false"])
def test_a_query_parameter_that_is_off_or_blank_filters_nothing(api: MemoryApi, query: str) -> None:
    assert api.request("GET", f"/api/memory/search?q=editor&{query}").status == 200
    sent = api.bus.only(Recall).body
    assert (sent.filters, sent.limit) == (Filters(), 10)


# the dense query


def words(*names: str, version: int = 5) -> CommonWords:
    return CommonWords(scope_key="k", version=version, words=list(names))


def test_common_words_are_not_embedded(api: MemoryApi) -> None:
    api.bus.script[GetCommonWords] = words("caroline")
    api.request("POST", RECALL, {"query": "What did Caroline paint?", "project": "p"})
    assert api.bus.only(GetCommonWords).body == GetCommonWords(read=ReadScope(), projects=Filters(project="p"))
    assert [text for text in api.embedder.texts if "Caroline" in text] == []
    sent = api.bus.only(Recall).body
    assert (sent.query, sent.common_words_version) == ("What did Caroline paint?", 5)


def test_the_common_words_of_a_scope_are_requested_once(api: MemoryApi) -> None:
    api.bus.script[GetCommonWords] = words("caroline")
    for agent in ("a", "a", "b", "a"):
        api.request("POST", RECALL, {"query": "paint", "agentId": agent})
    assert len([sent for sent in api.bus.asked if isinstance(sent.body, GetCommonWords)]) == 2


def test_a_recalls_reply_updates_the_common_words(api: MemoryApi) -> None:
    api.bus.script[Recall] = found(row(), common=words("melanie", version=9))
    api.request("POST", RECALL, {"query": "What did Melanie paint?"})
    api.request("POST", RECALL, {"query": "What did Melanie paint?"})
    versions = [sent.body.common_words_version for sent in api.bus.asked if isinstance(sent.body, Recall)]
    assert versions == [0, 9]
    assert "Melanie" in api.embedder.texts[0]
    assert "Melanie" not in api.embedder.texts[1]


def test_without_common_words_the_whole_query_is_embedded(api: MemoryApi) -> None:
    api.bus.script[GetCommonWords] = Unavailable()
    api.request("POST", RECALL, {"query": "paint the house"})
    api.request("POST", RECALL, {"query": "paint the house"})
    asks = [sent for sent in api.bus.asked if isinstance(sent.body, GetCommonWords)]
    assert len(asks) == 1  # an overload is not doubled
    assert api.embedder.texts == ["paint the house"] * 2
    assert [s.body.common_words_version for s in api.bus.asked if isinstance(s.body, Recall)] == [-1, -1]


@pytest.mark.parametrize("broken", ["failure", "meaningless", "off"])
def test_without_a_vector_the_recall_is_keyword_only(api: MemoryApi, broken: str) -> None:
    if broken == "failure":
        api.embedder.failure = RuntimeError("model")
    elif broken == "meaningless":
        api.embedder.meaningless.add("editor")
    else:
        api.state.embedder = None
    assert api.request("POST", RECALL, {"query": "editor"}).status == 200
    sent = api.bus.only(Recall)
    assert (sent.body.vector_model, sent.frames) == (None, [])


def test_the_cache_of_common_words_is_bounded_and_drops_the_least_used(api: MemoryApi) -> None:
    cache = CommonWordsCache(max_scopes=2)
    api.state.common_words = cache
    for agent in ("a", "b", "a", "c"):
        asyncio.run(query_vector(api.state, "paint", ReadScope(agent), None, trace_id="t"))
    assert len(cache) == 2
    asked = [sent.body.read.agent_id for sent in api.bus.asked]
    asyncio.run(query_vector(api.state, "paint", ReadScope("a"), None, trace_id="t"))
    assert [sent.body.read.agent_id for sent in api.bus.asked] == asked == ["a", "b", "c"]


def test_queries_that_wait_for_the_same_scope_share_one_request(api: MemoryApi) -> None:
    async def together() -> None:
        asked, release = asyncio.Event(), asyncio.Event()

        async def slowly(request: Any, **_: Any) -> Any:
            api.bus.asked.append(request)
            asked.set()
            await release.wait()
            return words("x"), []

        api.state.bus.ask_searcher = slowly  # type: ignore[method-assign]
        asks = [
            asyncio.create_task(query_vector(api.state, "paint", ReadScope(), None, trace_id="t")) for _ in range(3)
        ]
        await asked.wait()
        asks[0].cancel()  # a client that hung up takes nothing from the others
        release.set()
        done = await asyncio.gather(*asks, return_exceptions=True)
        assert isinstance(done[0], asyncio.CancelledError)
        assert [vector.common_words_version for vector in done[1:] if isinstance(vector, tuple)] == [5, 5]

    asyncio.run(together())
    assert len(api.bus.asked) == 1


def test_the_frame_contains_the_unit_vector_of_the_query(api: MemoryApi) -> None:
    api.request("POST", RECALL, {"query": "editor"})
    (frame,) = api.bus.only(Recall).frames
    assert np.allclose(np.frombuffer(frame, dtype="<f4"), api.embedder.embed_query("editor"))


# the searches beside it
