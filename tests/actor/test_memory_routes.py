"""The routes of a single memory: their messages to writer and searchers, and their responses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.config.pipeline_schema import GuardrailsConfig, MemoryConfig, PipelineV2Config
from signet_actors.config.schema import Config
from signet_actors.errors import Busy, OutcomeUnknown, StorageFull
from signet_actors.operations.memories import HistoryItem
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.searcher import (
    GetHistory,
    HistoryFound,
    IdsResolved,
    ListMemories,
    MemoryListed,
    ResolveIds,
)
from signet_actors.protocol.sessions import GetSession, SessionFound
from signet_actors.protocol.writer import (
    ChunksRemembered,
    Remember,
    RememberChunks,
    Remembered,
)
from tests.support.memory_api import MemoryApi

FULL_ID = "6f1c3b52-6c52-4d10-9d6e-4a7e7a2f0b11"


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    made = MemoryApi(tmp_path)
    made.bus.script[Remember] = remembered
    made.bus.script[GetSession] = SessionFound()
    return made


def remembered(request: Remember) -> Remembered:
    """Return the reply of a writer that stores the memory."""
    kept = request.memory
    return Remembered(
        id="new",
        type=kept.type,
        tags=list(kept.tags),
        pinned=kept.pinned,
        importance=kept.importance,
        content=kept.content,
        embedded=kept.vector is not None,
        deduped=False,
        version=1,
    )


def with_guardrails(**limits: Any) -> Config:
    return Config(memory=MemoryConfig(pipeline_v2=PipelineV2Config(guardrails=GuardrailsConfig(**limits))))


# remember


def test_a_field_of_the_body_wins_over_the_metadata(api: MemoryApi) -> None:
    body = {"content": "imported", "idempotencyKey": "body", "metadata": {"idempotency_key": "meta"}}
    api.request("POST", "/api/memory/remember", body)
    assert api.bus.only(Remember).body.memory.idempotency_key == "body"


@pytest.mark.parametrize(
    ("fields", "headers", "agent"),
    [
        ({"agentId": "  "}, {}, "default"),
        ({"agentId": "\t", "agent_id": "alice"}, {}, "alice"),
        ({"agentId": " "}, {"x-signet-agent-id": "bob"}, "bob"),
        ({}, {"x-signet-agent-id": " ", "x-signet-session-key": "agent:carol:main"}, "carol"),
        ({"sessionKey": " ", "session_key": "agent:dora:main"}, {"x-signet-session-key": "  "}, "dora"),
    ],
)
def test_a_blank_agent_counts_as_not_given(
    api: MemoryApi, fields: dict[str, str], headers: dict[str, str], agent: str
) -> None:
    answer = api.request("POST", "/api/memory/remember", {"content": "x y", **fields}, headers)
    assert answer.status == 200
    assert api.bus.only(Remember).body.memory.agent_id == agent


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"sessionKey": True}, "sessionKey"),
        ({"session_key": 5, "agentId": "alice"}, "session_key"),
        ({"agentId": "alice", "agent_id": []}, "agent_id"),
    ],
)
def test_an_agent_field_of_a_wrong_type_is_refused_although_another_names_the_agent(
    api: MemoryApi, fields: dict[str, Any], field: str
) -> None:
    headers = {"x-signet-agent-id": "bob", "x-signet-session-key": "agent:carol:main"}
    answer = api.request("POST", "/api/memory/remember", {"content": "x y", **fields}, headers)
    assert (answer.status, answer.json["field"]) == (400, field)


@pytest.mark.parametrize("failure", [RuntimeError("tokenizer"), OSError("disk")])
def test_a_memory_that_cannot_be_embedded_is_stored_without_a_vector(api: MemoryApi, failure: Exception) -> None:
    api.embedder.failure = failure
    assert api.request("POST", "/api/memory/remember", {"content": "x y"}).json["embedded"] is False


def test_a_text_without_tokens_is_stored_without_a_vector(api: MemoryApi) -> None:
    api.embedder.meaningless.add("…")
    assert api.request("POST", "/api/memory/remember", {"content": "…"}).json["embedded"] is False


def test_chunks_are_embedded_all_or_none(tmp_path: Path) -> None:
    api = MemoryApi(tmp_path, config=with_guardrails(max_content_chars=50, chunk_target_chars=50))
    api.bus.script[RememberChunks] = ChunksRemembered(["c0", "c1"], "g", deduped=True)
    api.embedder.meaningless.add("The second sentence follows it.")
    answer = api.request(
        "POST", "/api/memory/remember", {"content": "The first sentence is here. The second sentence follows it."}
    )
    sent = api.bus.only(RememberChunks)
    assert answer.json["deduped"] is True
    assert (sent.body.vectors, sent.frames) == ((), [])


@pytest.mark.parametrize(
    ("failure", "status", "code"),
    [
        (Busy(), 503, "busy"),
        (OutcomeUnknown(), 504, "outcome_unknown"),
        (StorageFull(), 507, "storage_full"),
    ],
)
def test_an_error_of_the_writer_keeps_its_code(api: MemoryApi, failure: Exception, status: int, code: str) -> None:
    api.bus.script[Remember] = failure
    answer = api.request("POST", "/api/memory/remember", {"content": "x y"})
    assert (answer.status, answer.json["code"]) == (status, code)


# list, read, history, jobs


@pytest.mark.parametrize(
    ("query", "limit", "offset"),
    [
        ("", 100, 0),
        ("limit=12abc&offset=3x", 12, 3),
        ("limit=abc&offset=-", 100, 0),
        ("limit=0&offset=-5", 1, 0),
        ("limit=99999999999999999999999999&offset=99999999999999999999", 1000, 1_000_000_000),
        ("limit=&offset=", 100, 0),
    ],
)
def test_query_integers_are_parsed_leniently_and_clamped(api: MemoryApi, query: str, limit: int, offset: int) -> None:
    api.bus.script[ListMemories] = MemoryListed([], 0, 0, 0, 0)
    assert api.request("GET", f"/api/memories?{query}").status == 200
    sent = api.bus.only(ListMemories).body
    assert (sent.limit, sent.offset) == (limit, offset)


@pytest.mark.parametrize(("given", "lookups"), [(FULL_ID, 0), (FULL_ID[:35], 1), (FULL_ID[:8], 1), (FULL_ID[:7], 0)])
def test_only_the_beginning_of_an_id_is_looked_up(api: MemoryApi, given: str, lookups: int) -> None:
    api.bus.script[ResolveIds] = IdsResolved([[FULL_ID]])
    api.bus.script[GetHistory] = HistoryFound([])
    assert api.request("GET", f"/api/memory/{given}/history").status == 200
    assert [sent.body for sent in api.bus.asked if isinstance(sent.body, ResolveIds)] == [
        ResolveIds((given,), ReadScope("default"), limit=11)
    ] * lookups
    assert api.bus.only(GetHistory).body.memory_id == (FULL_ID if lookups else given)


def test_the_history_is_camel_case_with_parsed_metadata(api: MemoryApi) -> None:
    event = HistoryItem(
        "h1", "created", None, "text", "me", "operator", None, '{"a":1}', "2026-02-21T10:00:00.000Z", None, None
    )
    odd = msgspec.structs.replace(event, id="h2", metadata="not json")
    api.bus.script[GetHistory] = HistoryFound([event, odd])
    answer = api.request("GET", "/api/memory/m1/history?limit=5000")
    assert answer.json["memoryId"] == "m1"
    assert answer.json["count"] == 2
    assert answer.json["history"][0] == {
        "id": "h1",
        "event": "created",
        "oldContent": None,
        "newContent": "text",
        "changedBy": "me",
        "actorType": "operator",
        "reason": None,
        "metadata": {"a": 1},
        "createdAt": "2026-02-21T10:00:00.000Z",
        "sessionId": None,
        "requestId": None,
    }
    assert answer.json["history"][1]["metadata"] == "not json"
    assert api.bus.only(GetHistory).body.limit == 1000


# patch


# delete


# recover


# numbers that JSON can spell and SQLite cannot hold


@pytest.mark.parametrize("raw", [b'{"content":"x","importance":1e999}', b'{"content":"x","importance":NaN}'])
def test_numbers_beyond_json_are_refused(api: MemoryApi, raw: bytes) -> None:
    assert api.request("POST", "/api/memory/remember", raw).status == 400


@pytest.mark.parametrize("other", [{"x-signet-agent-id": "bob"}, {"x-signet-actor": "bob"}])
def test_the_same_idempotency_key_of_two_agents_does_not_conflict(api: MemoryApi, other: dict[str, str]) -> None:
    mine = {"Idempotency-Key": "k", "x-signet-agent-id": "alice", "x-signet-actor": "alice"}
    for headers in (mine, mine, mine | other):
        assert api.request("POST", "/api/memory/remember", {"content": "c"}, headers).status == 200
    first, again, others = (sent.body.idempotency.key for sent in api.bus.asked if isinstance(sent.body, Remember))
    assert first == again != others


def test_the_agent_of_the_body_owns_the_idempotency_key(api: MemoryApi) -> None:
    for agent in ("alice", "bob"):
        body = {"content": "c", "agentId": agent, "hints": []}
        assert api.request("POST", "/api/memory/remember", body, {"Idempotency-Key": "k"}).status == 200
    first, second = (sent.body.idempotency.key for sent in api.bus.asked if isinstance(sent.body, Remember))
    assert first != second


@pytest.mark.parametrize(
    ("headers", "body", "field"),
    [
        ({"x-signet-actor": "a" * 201}, {}, "x-signet-actor"),
        ({"x-signet-session-id": "a" * 201}, {}, "x-signet-session-id"),
        ({"x-signet-request-id": "a\tb"}, {}, "x-signet-request-id"),
        ({}, {"changed_by": "a" * 201}, "changed_by"),
        ({}, {"changedBy": "a\nb"}, "changedBy"),
        ({}, {"changed_by": "a\0b"}, "changed_by"),
    ],
)
def test_the_principal_is_one_bounded_line(
    api: MemoryApi, headers: dict[str, str], body: dict[str, Any], field: str
) -> None:
    answer = api.request("POST", "/api/memory/remember", {"content": "c", **body}, headers)
    assert (answer.status, answer.json["field"]) == (400, field)
    assert not [sent for sent in api.bus.asked if isinstance(sent.body, Remember)]


def test_the_principal_is_trimmed_and_may_be_any_name(api: MemoryApi) -> None:
    assert api.request("POST", "/api/memory/remember", {"content": "c", "changed_by": "  Züleyha  "}).status == 200
    assert api.bus.only(Remember).body.principal.changed_by == "Züleyha"
