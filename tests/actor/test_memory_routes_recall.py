"""The routes of recall and the other searches: their messages to searchers, and their responses."""

from __future__ import annotations

import asyncio
import json
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
    AuthorsListed,
    CommonWords,
    FindSimilar,
    GetCommonWords,
    LegacySearch,
    LegacySearched,
    ListAuthors,
    Recall,
    Recalled,
    RecalledRow,
    SimilarFound,
    StageTiming,
)
from signet_actors.protocol.writer import TouchMemories
from tests.support.memory_api import DIMENSIONS, MemoryApi, memory

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


def test_a_recall_answers_the_documented_shape(api: MemoryApi) -> None:
    answer = api.request("POST", RECALL, {"query": "user preferences for editor"})
    assert answer.status == 200
    assert answer.json["results"] == [
        {
            "id": "m1",
            "content": "User prefers vim keybindings",
            "content_length": 28,
            "truncated": False,
            "score": 0.9235,
            "source": "hybrid",
            "type": "preference",
            "tags": "preference,editor",
            "pinned": False,
            "importance": 0.9,
            "who": "claude-code",
            "project": None,
            "scope": None,
            "visibility": "global",
            "created_at": "2026-02-21T10:00:00.000Z",
            "supplementary": False,
            "already_recalled": False,
        }
    ]
    assert (answer.json["query"], answer.json["method"]) == ("user preferences for editor", "hybrid")
    meta = answer.json["meta"]
    assert (meta["totalReturned"], meta["hasSupplementary"], meta["noHits"]) == (1, False, False)
    assert meta["dedupe"] == {"enabled": False, "contextEpoch": 0, "suppressed": 0, "repeatedReturned": 0}
    stages = {stage["name"]: stage["durationMs"] for stage in meta["timings"]["stages"]}
    assert {"memory_fts": 1.12, "final_rank": 0.08}.items() <= stages.items()
    assert "query_embedding_wait" in stages
    assert meta["timings"]["totalMs"] >= 0
    assert "aggregate" not in answer.json
    assert "temporal" not in meta


def test_the_recall_is_sent_with_the_queries_vector(api: MemoryApi) -> None:
    api.request(
        "POST",
        RECALL,
        {
            "query": "editor",
            "limit": 7.9,
            "type": "preference",
            "tags": ["editor", "ui"],
            "who": "me",
            "pinned": True,
            "importance_min": 0.5,
            "since": "2026-01-01",
            "until": "2026-02-01T00:00:00+01:00",
            "project": "p",
            "scope": "s",
            "minScore": 0.25,
            "agent_id": "bob",
        },
    )
    sent = api.bus.only(Recall)
    assert sent.body == Recall(
        query="editor",
        read=ReadScope("bob", "s"),
        filters=Filters(
            type="preference",
            tags=("editor", "ui"),
            who="me",
            pinned=True,
            importance_min=0.5,
            since="2026-01-01T00:00:00.000Z",
            until="2026-01-31T23:00:00.000Z",
            project="p",
        ),
        limit=7,
        fusion="convex",
        alpha=0.5,
        min_score=0.25,
        vector_model="test-model",
        common_words_version=0,
        content_chars=500,
    )
    assert [len(frame) for frame in sent.frames] == [4 * DIMENSIONS]


def test_the_configured_min_score_is_the_default(api: MemoryApi) -> None:
    api.request("POST", RECALL, {"query": "editor"})
    assert api.bus.only(Recall).body.min_score == api.state.config.search.min_score


@pytest.mark.parametrize(
    ("limit", "sent"), [(None, 10), (0, 1), (-3, 1), (250, 100), (10**30, 100), (2.9, 2), ("5", 5)]
)
def test_the_limit_is_truncated_and_clamped(api: MemoryApi, limit: Any, sent: int) -> None:
    api.request("POST", RECALL, {"query": "editor", "limit": limit})
    assert api.bus.only(Recall).body.limit == sent


def test_pinned_false_filters_nothing(api: MemoryApi) -> None:
    api.request("POST", RECALL, {"query": "editor", "pinned": False})
    assert api.bus.only(Recall).body.filters.pinned is None


def test_a_long_content_is_cut_and_says_so(api: MemoryApi) -> None:
    api.bus.script[Recall] = found(row(content="x" * 501))
    (result,) = api.request("POST", RECALL, {"query": "editor"}).json["results"]
    assert result["content"] == "x" * 500 + " [truncated]"
    assert (result["content_length"], result["truncated"]) == (501, True)


def test_an_empty_result_is_explained(api: MemoryApi) -> None:
    api.bus.script[Recall] = found(method="keyword")
    answer = api.request("POST", RECALL, {"query": "nothing"}).json
    assert (answer["results"], answer["method"], answer["meta"]["noHits"]) == ([], "keyword", True)
    assert api.bus.told == []


def test_accesses_of_recalled_memories_are_reported_to_the_writer(tmp_path: Path) -> None:
    api = MemoryApi(tmp_path, config=Config(gateway=GatewayConfig(touch_limit=2)))
    api.bus.script[Recall] = found(row(), row(id="m2"), row(id="m3"))
    api.request("POST", RECALL, {"query": "editor"})
    assert api.bus.told == [TouchMemories(ids=("m1", "m2"))]


def test_the_kill_switch_leaves_access_times_alone(tmp_path: Path) -> None:
    frozen = Config(memory=MemoryConfig(pipeline_v2=PipelineV2Config(mutations_frozen=True)))
    api = MemoryApi(tmp_path, config=frozen)
    api.bus.script[Recall] = found(row())
    assert api.request("POST", RECALL, {"query": "editor"}).status == 200
    assert api.bus.told == []


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({}, "query is required"),
        ({"query": "  "}, "query is required"),
        ({"query": 5}, "query must be a string"),
        ({"query": "q" * 20_001}, "query must be at most 20000 characters"),
        ({"query": "q", "limit": []}, "limit must be a number"),
        ({"query": "q", "importance_min": "x"}, "importance_min must be a number"),
        ({"query": "q", "since": "soon"}, "since must be a valid ISO timestamp"),
        ({"query": "q", "pinned": "perhaps"}, "pinned must be a boolean"),
        ({"query": "q", "includeRecalled": "perhaps"}, "includeRecalled must be a boolean"),
        ({"query": "q", "aggregate": "perhaps"}, "aggregate must be a boolean"),
        ({"query": "q", "aggregateBudget": "huge"}, "aggregateBudget must be one of: small, medium, large"),
        ({"query": "q", "aggregate_budget": "huge"}, "aggregate_budget must be one of: small, medium, large"),
        ({"query": "q", "scope": 1}, "scope must be a string"),
        ({"query": "q", "time": "today"}, "time must be an object"),
        ({"query": "q", "time": {}}, "time.start is required when time is provided"),
        ({"query": "q", "time": {"start": "x"}}, "time.start must be a valid ISO timestamp"),
        ({"query": "q", "time": {"start": "2026-05-13", "end": 5}}, "time.end must be a valid ISO timestamp"),
        ({"query": "q", "time": {"start": "2026-05-13", "end": "2026-05-13"}}, "time.end must be after time.start"),
        ({"query": "q", "time": {"start": "2026-05-13", "facets": "all"}}, "time.facets must be an array"),
        (
            {"query": "q", "time": {"start": "2026-05-13", "facets": ["never"]}},
            "time.facets entries must be one of: session, source, captured, observed, occurred, valid",
        ),
        (
            {"query": "q", "time": {"start": "2026-05-13", "mode": "x"}},
            "time.mode must be one of: auto, timeline, filter",
        ),
    ],
)
def test_invalid_recalls_are_refused(api: MemoryApi, body: Any, error: str) -> None:
    answer = api.request("POST", RECALL, body)
    assert (answer.status, answer.json["error"]) == (400, error)
    assert api.bus.asked == []


def test_a_time_object_filters_by_the_captured_time(api: MemoryApi) -> None:
    answer = api.request(
        "POST",
        RECALL,
        {"query": "editor", "since": "2026-01-01", "time": {"start": "2026-05-13", "facets": ["source"]}},
    )
    filters = api.bus.only(Recall).body.filters
    assert (filters.since, filters.until) == ("2026-05-13T00:00:00.000Z", "2026-05-13T23:59:59.999Z")
    assert answer.json["meta"]["temporal"] == {
        "mode": "filter",
        "source": "request",
        "originalQuery": "editor",
        "contentQuery": "editor",
        "start": "2026-05-13T00:00:00.000Z",
        "end": "2026-05-14T00:00:00.000Z",
        "facets": ["captured"],
    }


@pytest.mark.parametrize(("rows", "reason"), [([row()], "router_unavailable"), ([], "no_evidence")])
def test_an_aggregate_recall_ends_without_hits_and_says_why(
    api: MemoryApi, rows: list[RecalledRow], reason: str
) -> None:
    api.bus.script[Recall] = found(*rows)
    answer = api.request("POST", RECALL, {"query": "editor", "aggregate": True, "aggregateBudget": "large"}).json
    assert (answer["results"], answer["meta"]["noHits"], answer["meta"]["totalReturned"]) == ([], True, 0)
    assert (answer["aggregate"]["stoppedReason"], answer["aggregate"]["saved"]) == (reason, False)
    assert answer["aggregate"]["budget"] == "large"
    assert api.bus.told == []


@pytest.mark.parametrize(("failure", "status"), [(Busy(), 503), (Unavailable(), 503), (InvalidRequest("no"), 400)])
def test_an_error_of_a_searcher_keeps_its_code(api: MemoryApi, failure: Exception, status: int) -> None:
    api.bus.script[Recall] = failure
    assert api.request("POST", RECALL, {"query": "editor"}).status == status


# the GET spelling


def test_the_get_spelling_is_the_same_recall(api: MemoryApi) -> None:
    answer = api.request(
        "GET",
        "/api/memory/search?q=editor&limit=5x&type=preference&tags=a,b&pinned=1&importance_min=0.5&since=2026-01-01"
        "&include_recalled=1&session_key=agent:bob:main",
    )
    assert answer.json["results"][0]["id"] == "m1"
    sent = api.bus.only(Recall).body
    assert (sent.query, sent.limit, sent.read) == ("editor", 5, ReadScope("bob"))
    assert sent.filters == Filters(
        type="preference", tags=("a", "b"), pinned=True, importance_min=0.5, since="2026-01-01T00:00:00.000Z"
    )
    assert api.bus.told == [TouchMemories(ids=("m1",))]


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
    assert api.bus.only(GetCommonWords).body == GetCommonWords(read=ReadScope(), project="p")
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


def test_the_legacy_search_passes_the_expression_on_as_written(api: MemoryApi) -> None:
    api.bus.script[LegacySearch] = LegacySearched([(memory(pinned=1), 0.51234), (memory(id="m2", tags=[]), None)])
    answer = api.request("GET", "/memory/search?q=vim%20OR%20%22dark%20mode%22&type=preference&pinned=true")
    sent = api.bus.only(LegacySearch).body
    assert (sent.query, sent.limit) == ('vim OR "dark mode"', 20)
    assert sent.filters == Filters(type="preference", pinned=True)
    assert answer.json == {
        "results": [
            {
                "id": "m1",
                "content": "User prefers vim keybindings",
                "created_at": "2026-02-21T10:00:00.000Z",
                "who": "claude-code",
                "importance": 0.9,
                "tags": "preference,editor",
                "type": "preference",
                "pinned": 1,
                "score": 0.5123,
            },
            {
                "id": "m2",
                "content": "User prefers vim keybindings",
                "created_at": "2026-02-21T10:00:00.000Z",
                "who": "claude-code",
                "importance": 0.9,
                "tags": None,
                "type": "preference",
                "pinned": 0,
            },
        ]
    }
    assert api.bus.told == []


def test_the_legacy_search_without_a_query_filters_only(api: MemoryApi) -> None:
    api.bus.script[LegacySearch] = LegacySearched([])
    api.request("GET", "/memory/search?who=me")
    sent = api.bus.only(LegacySearch).body
    assert (sent.query, sent.limit, sent.filters) == (None, 50, Filters(who="me"))


def test_an_fts_syntax_error_is_400(api: MemoryApi) -> None:
    api.bus.script[LegacySearch] = InvalidRequest('fts5: syntax error near "("', field="q")
    answer = api.request("GET", "/memory/search?q=(")
    assert (answer.status, answer.json["field"]) == (400, "q")


def test_distinct_authors_ignore_everything_else(api: MemoryApi) -> None:
    api.bus.script[ListAuthors] = AuthorsListed(["alice", "bob"])
    answer = api.request("GET", "/memory/search?distinct=who&q=((&limit=7")
    assert answer.json == {"values": ["alice", "bob"]}


def test_similar_memories_have_tags_as_an_array(api: MemoryApi) -> None:
    api.bus.script[FindSimilar] = SimilarFound([(memory(), 0.87499)])
    answer = api.request("GET", "/memory/similar?id=m0&k=500&type=preference")
    sent = api.bus.only(FindSimilar).body
    assert (sent.id, sent.k, sent.filters) == ("m0", 100, Filters(type="preference"))
    assert answer.json == {
        "results": [
            {
                "id": "m1",
                "content": "User prefers vim keybindings",
                "type": "preference",
                "tags": ["preference", "editor"],
                "score": 0.87,
                "confidence": None,
                "created_at": "2026-02-21T10:00:00.000Z",
            }
        ]
    }


def test_similar_without_an_id_is_400_in_the_shape_of_a_search(api: MemoryApi) -> None:
    answer = api.request("GET", "/memory/similar")
    assert (answer.status, answer.json["error"], answer.json["results"]) == (400, "id is required", [])


def test_similar_to_a_memory_without_an_embedding_is_404(api: MemoryApi) -> None:
    api.bus.script[FindSimilar] = SimilarFound(None)
    answer = api.request("GET", "/memory/similar?id=m0")
    assert answer.status == 404
    assert json.loads(answer.raw)["error"] == "No embedding found for this memory"
    assert answer.json["results"] == []
