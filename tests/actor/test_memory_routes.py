"""The routes of a single memory: their messages to writer and searchers, and their responses."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import UNSET

from signet_actors.config.pipeline_schema import GuardrailsConfig, MemoryConfig, PipelineV2Config
from signet_actors.config.schema import Config, RedactionConfig
from signet_actors.errors import Busy, Conflict, OutcomeUnknown, StorageFull
from signet_actors.protocol.memories import Filters, HistoryEvent, Job, ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.searcher import (
    GetHistory,
    GetJob,
    GetMemory,
    HistoryFound,
    JobFound,
    ListMemories,
    MemoryFound,
    MemoryListed,
)
from signet_actors.protocol.writer import (
    ChunksRemembered,
    ForgetMemory,
    Forgotten,
    Modified,
    ModifyMemory,
    Recovered,
    RecoverMemory,
    Remember,
    RememberChunks,
    Remembered,
    TemporalEdge,
)
from tests.support.memory_api import DIMENSIONS, MemoryApi, memory

AWS_KEY = "AK" + "IA" + "QYLPMN5HFIQR7B2X"  # built here, so that no complete one is in the repository


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    made = MemoryApi(tmp_path)
    made.bus.script[Remember] = remembered
    made.bus.script[ModifyMemory] = Modified("m1", "updated", 2, 3, content_changed=True, embedded=True)
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


def test_remember_answers_the_documented_shape(api: MemoryApi) -> None:
    answer = api.request(
        "POST",
        "/api/memory/remember",
        {
            "content": "User prefers vim keybindings",
            "who": "claude-code",
            "importance": 0.9,
            "tags": "preference,editor",
            "agentId": "alice",
        },
    )
    assert (answer.status, answer.json) == (
        200,
        {
            "id": "new",
            "type": "preference",
            "tags": "preference,editor",
            "pinned": False,
            "importance": 0.9,
            "content": "User prefers vim keybindings",
            "embedded": True,
            "deduped": False,
        },
    )
    sent = api.bus.only(Remember)
    assert sent.body.memory.agent_id == "alice"
    assert sent.body.memory.vector is not None
    assert len(sent.frames[sent.body.memory.vector.frame]) == 4 * DIMENSIONS


@pytest.mark.parametrize("path", ["/api/memory/remember", "/api/memory/save", "/api/hook/remember"])
def test_every_alias_of_remember_is_the_same_handler(api: MemoryApi, path: str) -> None:
    assert api.request("POST", path, {"content": "hello"}).json["id"] == "new"
    assert api.bus.only(Remember).body.memory.content == "hello"


def test_content_alone_gets_the_documented_defaults(api: MemoryApi) -> None:
    api.request("POST", "/api/memory/remember", {"content": "  The  sky\nis blue "})
    kept = api.bus.only(Remember).body.memory
    assert (kept.content, kept.type, kept.importance, kept.tags, kept.pinned, kept.who) == (
        "  The  sky\nis blue",
        "fact",
        0.8,
        (),
        False,
        "daemon",
    )
    assert (kept.agent_id, kept.visibility, kept.source_type, kept.session_bound) == (
        "default",
        "global",
        "manual",
        False,
    )


def test_no_tags_are_answered_as_null(api: MemoryApi) -> None:
    assert api.request("POST", "/api/memory/remember", {"content": "x y"}).json["tags"] is None


def test_prefixes_pin_and_tag(api: MemoryApi) -> None:
    api.request("POST", "/api/memory/remember", {"content": "critical: [Auth, ops]: rotate tokens weekly"})
    kept = api.bus.only(Remember).body.memory
    assert (kept.content, kept.pinned, kept.importance, kept.tags) == (
        "rotate tokens weekly",
        True,
        1.0,
        ("auth", "ops"),
    )


def test_body_fields_win_over_prefixes(api: MemoryApi) -> None:
    api.request(
        "POST",
        "/api/memory/remember",
        {"content": "critical: [a]: text", "tags": ["B"], "pinned": False, "importance": 0.3, "type": "Decision"},
    )
    kept = api.bus.only(Remember).body.memory
    assert (kept.pinned, kept.importance, kept.tags, kept.type) == (False, 0.3, ("B",), "decision")


@pytest.mark.parametrize("tags", ["alpha, beta", ["alpha", "beta"], ["alpha, beta", " "]])
def test_tags_are_a_string_or_an_array(api: MemoryApi, tags: Any) -> None:
    assert api.request("POST", "/api/memory/remember", {"content": "x y", "tags": tags}).json["tags"] == "alpha,beta"


def test_provenance_is_read_in_both_spellings_and_from_metadata(api: MemoryApi) -> None:
    api.request(
        "POST",
        "/api/memory/remember",
        {
            "content": "imported",
            "source_id": "s1",
            "sourceType": "file",
            "metadata": {"source_path": "/x.md", "runtime_path": "memory/x.md", "idempotency_key": "k"},
        },
    )
    kept = api.bus.only(Remember).body.memory
    assert (kept.source_id, kept.source_type, kept.source_path, kept.runtime_path, kept.idempotency_key) == (
        "s1",
        "file",
        "/x.md",
        "memory/x.md",
        "k",
    )


def test_a_field_of_the_body_wins_over_the_metadata(api: MemoryApi) -> None:
    body = {"content": "imported", "idempotencyKey": "body", "metadata": {"idempotency_key": "meta"}}
    api.request("POST", "/api/memory/remember", body)
    assert api.bus.only(Remember).body.memory.idempotency_key == "body"


def test_explicit_times_become_temporal_edges(api: MemoryApi) -> None:
    api.request(
        "POST",
        "/api/memory/remember",
        {
            "content": "release",
            "createdAt": "2026-02-21T10:00:00+01:00",
            "occurredAt": "2026-02-20T15:00:00Z",
            "observed_at": "2026-02-21",
            "sourceCreatedAt": "2026-02-20T15:05:00.000Z",
            "validFrom": "2026-02-20",
            "validUntil": "2026-03-01",
        },
    )
    kept = api.bus.only(Remember).body.memory
    assert kept.created_at == "2026-02-21T09:00:00.000Z"
    assert kept.temporal == (
        TemporalEdge("occurred", "2026-02-20T15:00:00.000Z", "2026-02-20T15:00:00.000Z"),
        TemporalEdge("observed", "2026-02-21T00:00:00.000Z", "2026-02-21T00:00:00.000Z"),
        TemporalEdge("source", "2026-02-20T15:05:00.000Z", "2026-02-20T15:05:00.000Z"),
        TemporalEdge("valid", "2026-02-20T00:00:00.000Z", "2026-03-01T00:00:00.000Z"),
    )


def test_a_transcript_makes_the_source_id_a_session_key(api: MemoryApi) -> None:
    api.request("POST", "/api/memory/remember", {"content": "x y", "sourceId": "s", "transcript": "User: hi"})
    assert api.bus.only(Remember).body.memory.session_bound is True


def test_the_agent_is_read_from_the_session_key_if_not_given(api: MemoryApi) -> None:
    api.request("POST", "/api/memory/remember", {"content": "x y"}, {"x-signet-session-key": "agent:bob:main"})
    assert api.bus.only(Remember).body.memory.agent_id == "bob"


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


def test_the_principal_is_read_from_the_headers(api: MemoryApi) -> None:
    api.request(
        "POST",
        "/api/memory/remember",
        {"content": "x y", "changed_by": "body"},
        {
            "x-signet-actor": "opencode-plugin",
            "x-signet-actor-type": "harness",
            "x-signet-session-id": "s1",
            "x-signet-request-id": "r1",
        },
    )
    assert api.bus.only(Remember).body.principal == Principal("opencode-plugin", "harness", "s1", "r1")


def test_the_idempotency_key_travels_with_a_digest_of_the_body(api: MemoryApi) -> None:
    for content in ("one", "one", "two"):
        api.request("POST", "/api/memory/remember", {"content": content}, {"Idempotency-Key": "k"})
    first, second, third = (sent.body.idempotency for sent in api.bus.asked)
    assert first == second
    assert first.key == third.key
    assert first.body_digest != third.body_digest


@pytest.mark.parametrize(
    ("body", "error", "field"),
    [
        ({}, "content is required", "content"),
        ({"content": None}, "content is required", "content"),
        ({"content": "   "}, "content is required", "content"),
        ({"content": "critical:"}, "content is required", "content"),
        ({"content": 5}, "content must be a string", "content"),
        ({"content": "x", "importance": 1.5}, "importance must be a number between 0 and 1", "importance"),
        ({"content": "x", "importance": "0.5"}, "importance must be a number", "importance"),
        ({"content": "x", "importance": True}, "importance must be a number", "importance"),
        ({"content": "x", "pinned": "maybe"}, "pinned must be a boolean", "pinned"),
        ({"content": "x", "tags": 7}, "tags must be a string or an array of strings", "tags"),
        ({"content": "x", "tags": [1]}, "tags must be a string or an array of strings", "tags"),
        ({"content": "x", "who": ["a"]}, "who must be a string", "who"),
        ({"content": "x", "type": "no such type!"}, "type must be a name", "type"),
        ({"content": "x", "visibility": "archived"}, "visibility must be one of: global, private", "visibility"),
        ({"content": "x", "createdAt": "yesterday"}, "createdAt must be a valid ISO timestamp", "createdAt"),
        ({"content": "x", "occurredAt": 5}, "occurredAt must be a valid ISO timestamp", "occurredAt"),
        (
            {"content": "x", "validFrom": "2026-02-02", "validUntil": "2026-02-01"},
            "validUntil must be after validFrom",
            "validUntil",
        ),
        ({"content": "x", "metadata": "m"}, "metadata must be an object", "metadata"),
        ({"content": "x", "transcript": {}}, "transcript must be a string", "transcript"),
        ({"content": "x", "agentId": 5}, "agentId must be a string", "agentId"),
        ({"content": "x", "agentId": "a" * 201}, "agentId must be an agent's name: 1 to 200 characters", "agentId"),
        ({"content": "x", "agent_id": "a\nb"}, "agent_id must be an agent's name", "agent_id"),
        ({"content": "x", "agentId": "team/alice"}, "agentId must be an agent's name", "agentId"),
        ({"content": "x", "agentId": "agent:alice"}, "agentId must be an agent's name", "agentId"),
        ({"content": "x", "agentId": "..\\alice"}, "agentId must be an agent's name", "agentId"),
        ({"content": "x", "sessionKey": "agent:a/b:1"}, "sessionKey must be an agent's name", "sessionKey"),
        ({"content": "x", "sessionKey": 5}, "sessionKey must be a string", "sessionKey"),
        ({"content": "x", "changed_by": []}, "changed_by must be a string", "changed_by"),
        ({"content": "x", "structured": "no"}, "structured must be an object", "structured"),
        ({"content": "x", "sourcePath": 1}, "sourcePath must be a string", "sourcePath"),
    ],
)
def test_a_refused_remember_names_the_field(api: MemoryApi, body: dict[str, Any], error: str, field: str) -> None:
    answer = api.request("POST", "/api/memory/remember", body)
    assert answer.status == 400
    assert answer.json["error"].startswith(error)
    assert (answer.json["code"], answer.json["field"]) == ("invalid_request", field)
    assert api.bus.asked == []


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'"text"', b"\xff", b"[" * 5000])
def test_a_body_that_is_no_object_is_invalid_json(api: MemoryApi, raw: bytes) -> None:
    answer = api.request("POST", "/api/memory/remember", raw)
    assert (answer.status, answer.json["error"]) == (400, "Invalid JSON body")


def test_unknown_fields_are_ignored(api: MemoryApi) -> None:
    body = {"content": "x y", "id": "mine", "version": 9, "is_deleted": 1, "mode": "async", "structured": {}}
    assert api.request("POST", "/api/memory/remember", body).json["id"] == "new"


def test_a_content_over_the_cap_is_413(api: MemoryApi) -> None:
    answer = api.request("POST", "/api/memory/remember", {"content": "a" * 1_000_001})
    assert (answer.status, answer.json["code"]) == (413, "payload_too_large")


def test_nul_characters_never_reach_the_store(api: MemoryApi) -> None:
    api.request("POST", "/api/memory/remember", {"content": "a\0b c", "who": "w\0ho"})
    kept = api.bus.only(Remember).body.memory
    assert (kept.content, kept.who) == ("ab c", "who")


def test_a_secret_is_cut_before_it_is_sent_to_the_writer(api: MemoryApi) -> None:
    answer = api.request("POST", "/api/memory/remember", {"content": f"the deploy key is {AWS_KEY}"})
    assert answer.json["redacted"] is True
    assert AWS_KEY not in str(api.bus.only(Remember).body)
    assert all(AWS_KEY not in text for text in api.embedder.texts)


def test_redaction_can_be_switched_off(tmp_path: Path) -> None:
    api = MemoryApi(tmp_path, config=Config(redaction=RedactionConfig(memories=False)))
    api.bus.script[Remember] = remembered
    answer = api.request("POST", "/api/memory/remember", {"content": f"the deploy key is {AWS_KEY}"})
    assert "redacted" not in answer.json
    assert AWS_KEY in answer.json["content"]


@pytest.mark.parametrize("failure", [RuntimeError("tokenizer"), OSError("disk")])
def test_a_memory_that_cannot_be_embedded_is_stored_without_a_vector(api: MemoryApi, failure: Exception) -> None:
    api.embedder.failure = failure
    assert api.request("POST", "/api/memory/remember", {"content": "x y"}).json["embedded"] is False


def test_a_text_without_tokens_is_stored_without_a_vector(api: MemoryApi) -> None:
    api.embedder.meaningless.add("…")
    assert api.request("POST", "/api/memory/remember", {"content": "…"}).json["embedded"] is False


def test_embedding_switched_off_stores_without_a_vector(api: MemoryApi) -> None:
    api.state.embedder = None
    assert api.request("POST", "/api/memory/remember", {"content": "x y"}).json["embedded"] is False


def test_a_repeated_memory_is_answered_with_the_existing_row(api: MemoryApi) -> None:
    api.bus.script[Remember] = Remembered("old", "fact", [], True, 1.0, "x y", True, True, 4)
    answer = api.request("POST", "/api/memory/remember", {"content": "x y"})
    assert (answer.status, answer.json["id"], answer.json["deduped"], answer.json["tags"]) == (200, "old", True, None)


def test_an_oversized_content_becomes_chunks(tmp_path: Path) -> None:
    api = MemoryApi(tmp_path, config=with_guardrails(max_content_chars=60, chunk_target_chars=50))
    api.bus.script[RememberChunks] = lambda request: ChunksRemembered(
        [f"c{index}" for index, _ in enumerate(request.chunks)], "g", deduped=False
    )
    text = "The first sentence is here. The second sentence follows. And this is the third one."
    answer = api.request("POST", "/api/memory/remember", {"content": f"critical: [a]: {text}", "who": "me"})
    sent = api.bus.only(RememberChunks)
    assert answer.json == {"chunked": True, "chunk_count": 3, "ids": ["c0", "c1", "c2"], "group_id": "g"}
    assert " ".join(sent.body.chunks) == sent.body.memory.content == text
    assert (sent.body.memory.tags, sent.body.memory.pinned, sent.body.memory.who) == (("a",), True, "me")
    assert [vector.frame for vector in sent.body.vectors] == [0, 1, 2]
    assert len(sent.frames) == 3


def test_a_repetitive_content_is_stored_completely_in_different_chunks(tmp_path: Path) -> None:
    api = MemoryApi(tmp_path, config=with_guardrails(max_content_chars=50, chunk_target_chars=50))
    api.bus.script[RememberChunks] = lambda request: ChunksRemembered(list(request.chunks), "g", deduped=False)
    first, second = "All of this is written in it once more.", "And here is something else in between."
    answer = api.request("POST", "/api/memory/remember", {"content": f"{first} {second} {first.upper()} {second}"})
    assert answer.json["ids"] == [first, second, f"{first.upper()} {second}"]


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


def test_a_refused_import_is_409_with_the_writers_text(tmp_path: Path) -> None:
    api = MemoryApi(tmp_path, config=with_guardrails(max_content_chars=50, chunk_target_chars=50))
    api.bus.script[RememberChunks] = Conflict("chunk content already exists")
    answer = api.request("POST", "/api/memory/remember", {"content": "word " * 30})
    assert (answer.status, answer.json["error"]) == (409, "chunk content already exists")


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


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/memory/remember"),
        ("POST", "/api/memory/save"),
        ("POST", "/api/hook/remember"),
        ("PATCH", "/api/memory/m1"),
        ("DELETE", "/api/memory/m1"),
        ("POST", "/api/memory/m1/recover"),
        ("POST", "/api/memory/forget"),
        ("POST", "/api/memory/modify"),
        ("POST", "/api/memory/codex-native-note"),
    ],
)
def test_the_kill_switch_refuses_every_write(tmp_path: Path, method: str, path: str) -> None:
    frozen = Config(memory=MemoryConfig(pipeline_v2=PipelineV2Config(mutations_frozen=True)))
    api = MemoryApi(tmp_path, config=frozen)
    answer = api.request(method, path, {"content": "x", "reason": "r", "mode": "execute", "ids": ["m1"]})
    assert answer.headers["retry-after"] == "60"
    assert (answer.status, answer.json["error"]) == (503, "Mutations are frozen (kill switch active)")
    assert api.bus.asked == []


# list, read, history, jobs


def test_a_list_has_the_documented_shape(api: MemoryApi) -> None:
    api.bus.script[ListMemories] = MemoryListed([memory()], total=1247, with_embeddings=1200, critical=12, matching=3)
    answer = api.request("GET", "/api/memories?limit=5&offset=10&type=preference&agent_id=bob")
    listed = answer.json["memories"][0]
    assert {
        "id": "m1",
        "content": "User prefers vim keybindings",
        "created_at": "2026-02-21T10:00:00.000Z",
        "who": "claude-code",
        "importance": 0.9,
        "tags": "preference,editor",
        "source_type": "manual",
        "pinned": 0,
        "type": "preference",
    }.items() <= listed.items()
    assert answer.json["stats"] == {"total": 1247, "withEmbeddings": 1200, "critical": 12}
    assert answer.json["total"] == 3
    assert api.bus.only(ListMemories).body == ListMemories(
        read=ReadScope("bob"), filters=Filters(type="preference"), limit=5, offset=10
    )
    assert api.bus.told == []


def test_tombstones_are_listed_when_asked_for(api: MemoryApi) -> None:
    tombstone = memory(is_deleted=1, deleted_at="2026-02-22T00:00:00.000Z")
    api.bus.script[ListMemories] = MemoryListed([tombstone], total=0, with_embeddings=0, critical=0, matching=1)
    answer = api.request("GET", "/api/memories?deleted=true")
    assert api.bus.only(ListMemories).body.deleted is True
    assert answer.json["memories"][0]["deleted_at"] == "2026-02-22T00:00:00.000Z"


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


def test_a_memory_is_read_with_both_spellings_of_its_provenance(api: MemoryApi) -> None:
    api.bus.script[GetMemory] = MemoryFound(memory())
    answer = api.request("GET", "/api/memory/m1")
    documented = {
        "id": "m1",
        "tags": "preference,editor",
        "pinned": 0,
        "source_path": "/a/b.md",
        "sourcePath": "/a/b.md",
        "runtime_path": "memory/MEMORY.md",
        "runtimePath": "memory/MEMORY.md",
        "idempotency_key": "key-1",
        "idempotencyKey": "key-1",
        "project": None,
        "is_deleted": 0,
        "deleted_at": None,
        "version": 2,
        "updated_by": "operator",
    }
    assert answer.status == 200
    assert documented.items() <= answer.json.items()
    assert api.bus.only(GetMemory).body == GetMemory(id="m1", read=ReadScope())
    assert api.bus.told == []


@pytest.mark.parametrize("query", ["include_deleted=true", "include_deleted=1", "includeDeleted=TRUE"])
def test_a_tombstone_is_read_when_asked_for(api: MemoryApi, query: str) -> None:
    api.bus.script[GetMemory] = MemoryFound(memory(is_deleted=1))
    api.request("GET", f"/api/memory/m1?{query}")
    assert api.bus.only(GetMemory).body.include_deleted is True


def test_a_missing_memory_is_404(api: MemoryApi) -> None:
    api.bus.script[GetMemory] = MemoryFound(None)
    answer = api.request("GET", "/api/memory/nope")
    assert (answer.status, answer.json) == (404, {"error": "not found", "code": "not_found"})


def test_the_history_is_camel_case_with_parsed_metadata(api: MemoryApi) -> None:
    event = HistoryEvent(
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


def test_the_history_of_a_missing_memory_names_it(api: MemoryApi) -> None:
    api.bus.script[GetHistory] = HistoryFound(None)
    answer = api.request("GET", "/api/memory/nope/history")
    assert (answer.status, answer.json) == (404, {"error": "Not found", "code": "not_found", "memoryId": "nope"})


def test_a_job_is_shown_with_both_names_of_its_attempts(api: MemoryApi) -> None:
    job = Job("j1", "m1", None, "extract", "pending", 1, 3, "boom", None, None, None, "c", "u")
    api.bus.script[GetJob] = JobFound(job)
    answer = api.request("GET", "/api/memory/jobs/j1").json
    assert (answer["attempts"], answer["attempt_count"], answer["max_attempts"]) == (1, 1, 3)
    assert (answer["error"], answer["last_error"], answer["last_error_code"], answer["next_attempt_at"]) == (
        "boom",
        "boom",
        None,
        None,
    )


def test_a_missing_job_is_404(api: MemoryApi) -> None:
    api.bus.script[GetJob] = JobFound(None)
    answer = api.request("GET", "/api/memory/jobs/nope")
    assert (answer.status, answer.json["error"]) == (404, "Job not found")


# patch


def test_a_patch_is_sent_with_only_what_changes(api: MemoryApi) -> None:
    answer = api.request(
        "PATCH",
        "/api/memory/m1",
        {"content": " Updated  content ", "tags": ["a", "b"], "reason": "typo", "if_version": 2, "changed_by": "op"},
    )
    assert (answer.status, answer.json) == (
        200,
        {
            "id": "m1",
            "status": "updated",
            "currentVersion": 2,
            "newVersion": 3,
            "contentChanged": True,
            "embedded": True,
            "success": True,
        },
    )
    sent = api.bus.only(ModifyMemory)
    patch = sent.body.patch
    assert (patch.content, patch.tags, patch.if_version, patch.reason) == (" Updated  content", ("a", "b"), 2, "typo")
    assert (patch.type, patch.importance, patch.pinned, patch.who) == (UNSET, UNSET, UNSET, UNSET)
    assert sent.body.principal.changed_by == "op"
    assert len(sent.frames) == 1


def test_null_tags_clear_the_tags(api: MemoryApi) -> None:
    api.request("PATCH", "/api/memory/m1", {"tags": None, "reason": "r"})
    assert api.bus.only(ModifyMemory).body.patch.tags == ()


def test_a_patch_does_not_read_prefixes(api: MemoryApi) -> None:
    api.request("PATCH", "/api/memory/m1", {"content": "critical: text", "reason": "r"})
    patch = api.bus.only(ModifyMemory).body.patch
    assert (patch.content, patch.pinned) == ("critical: text", UNSET)


def test_a_patched_secret_is_cut(api: MemoryApi) -> None:
    answer = api.request("PATCH", "/api/memory/m1", {"content": f"key {AWS_KEY}", "reason": "r"})
    assert answer.json["redacted"] is True
    assert AWS_KEY not in str(api.bus.only(ModifyMemory).body)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"content": "x"}, "reason is required"),
        ({"content": "x", "reason": " "}, "reason is required"),
        ({"reason": "r"}, "at least one of content, type, tags, importance, pinned is required"),
        ({"reason": "r", "who": "x"}, "at least one of content, type, tags, importance, pinned is required"),
        ({"reason": "r", "content": "x", "if_version": 0}, "if_version must be a positive integer"),
        ({"reason": "r", "content": "x", "if_version": 1.5}, "if_version must be a positive integer"),
        ({"reason": "r", "content": "x", "if_version": "x"}, "if_version must be a positive integer"),
        ({"reason": "r", "content": "x", "if_version": True}, "if_version must be a positive integer"),
        ({"reason": "r", "content": "x", "if_version": 10**30}, "if_version must be a positive integer"),
        ({"reason": "r", "content": " "}, "content must be a non-empty string"),
        ({"reason": "r", "content": 7}, "content must be a string"),
        ({"reason": "r", "importance": -0.1}, "importance must be a number between 0 and 1"),
        ({"reason": "r", "pinned": "perhaps"}, "pinned must be a boolean"),
        ({"reason": "r", "tags": {}}, "tags must be a string or an array of strings"),
    ],
)
def test_invalid_patches_are_refused(api: MemoryApi, body: dict[str, Any], error: str) -> None:
    answer = api.request("PATCH", "/api/memory/m1", body)
    assert (answer.status, answer.json["error"]) == (400, error)
    assert api.bus.asked == []


def test_if_version_may_be_text(api: MemoryApi) -> None:
    api.request("PATCH", "/api/memory/m1", {"pinned": True, "reason": "r", "if_version": " 3 "})
    assert api.bus.only(ModifyMemory).body.patch.if_version == 3


@pytest.mark.parametrize(
    ("outcome", "status", "expected"),
    [
        (
            Modified("m1", "no_changes", 2),
            200,
            {"id": "m1", "status": "no_changes", "currentVersion": 2, "contentChanged": False, "success": True},
        ),
        (
            Modified("m1", "updated", 2, 3),
            200,
            {
                "id": "m1",
                "status": "updated",
                "currentVersion": 2,
                "newVersion": 3,
                "contentChanged": False,
                "success": True,
            },
        ),
        (
            Modified("m1", "not_found"),
            404,
            {"id": "m1", "status": "not_found", "error": "Not found", "code": "not_found"},
        ),
        (
            Modified("m1", "deleted", 4),
            409,
            {
                "id": "m1",
                "status": "deleted",
                "currentVersion": 4,
                "error": "Cannot modify deleted memory",
                "code": "conflict",
            },
        ),
        (
            Modified("m1", "version_conflict", 4),
            409,
            {
                "id": "m1",
                "status": "version_conflict",
                "currentVersion": 4,
                "error": "Version conflict",
                "code": "conflict",
            },
        ),
        (
            Modified("m1", "duplicate_content_hash", 4, duplicate_memory_id="m2"),
            409,
            {
                "id": "m1",
                "status": "duplicate_content_hash",
                "currentVersion": 4,
                "duplicateMemoryId": "m2",
                "error": "Duplicate content hash",
                "code": "conflict",
            },
        ),
    ],
)
def test_every_outcome_of_a_patch(api: MemoryApi, outcome: Modified, status: int, expected: dict[str, Any]) -> None:
    api.bus.script[ModifyMemory] = outcome
    answer = api.request("PATCH", "/api/memory/m1", {"pinned": True, "reason": "r"})
    assert (answer.status, answer.json) == (status, expected)


# delete


@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("/api/memory/m1", {"reason": "old", "force": True, "if_version": 3}),
        ("/api/memory/m1?reason=old&force=1&if_version=3", None),
        ("/api/memory/m1?reason=other&if_version=9", {"reason": "old", "force": "true", "if_version": "3"}),
    ],
)
def test_a_deletion_reads_body_or_query(api: MemoryApi, target: str, body: Any) -> None:
    api.bus.script[ForgetMemory] = Forgotten("m1", "deleted", 3, 4)
    answer = api.request("DELETE", target, body)
    assert (answer.status, answer.json) == (
        200,
        {"id": "m1", "status": "deleted", "currentVersion": 3, "newVersion": 4, "success": True},
    )
    sent = api.bus.only(ForgetMemory).body
    assert (sent.reason, sent.force, sent.if_version) == ("old", True, 3)


@pytest.mark.parametrize(
    ("target", "body", "error"),
    [
        ("/api/memory/m1", None, "reason is required"),
        ("/api/memory/m1?reason=", None, "reason is required"),
        ("/api/memory/m1?reason=r&force=maybe", None, "force must be a boolean"),
        ("/api/memory/m1?reason=r&if_version=0", None, "if_version must be a positive integer"),
        ("/api/memory/m1?reason=r", b'"text"', "Invalid JSON body"),
    ],
)
def test_invalid_deletions_are_refused(api: MemoryApi, target: str, body: Any, error: str) -> None:
    answer = api.request("DELETE", target, body)
    assert (answer.status, answer.json["error"]) == (400, error)
    assert api.bus.asked == []


@pytest.mark.parametrize(
    ("outcome", "status", "error", "code"),
    [
        (Forgotten("m1", "not_found"), 404, "Not found", "not_found"),
        (Forgotten("m1", "already_deleted", 3), 409, "Memory is already deleted", "conflict"),
        (Forgotten("m1", "version_conflict", 3), 409, "Version conflict", "conflict"),
        (Forgotten("m1", "pinned_requires_force", 3), 409, "Pinned memories require force=true", "conflict"),
        (
            Forgotten("m1", "autonomous_force_denied", 3),
            403,
            "Autonomous agents cannot force-delete pinned memories",
            "forbidden",
        ),
    ],
)
def test_every_refused_deletion(api: MemoryApi, outcome: Forgotten, status: int, error: str, code: str) -> None:
    api.bus.script[ForgetMemory] = outcome
    answer = api.request("DELETE", "/api/memory/m1?reason=r")
    assert (answer.status, answer.json["error"], answer.json["code"]) == (status, error, code)
    assert (answer.json["id"], answer.json["status"]) == ("m1", outcome.status)
    assert answer.json.get("currentVersion") == outcome.current_version


# recover


def test_a_recovery_answers_the_documented_shape(api: MemoryApi) -> None:
    api.bus.script[RecoverMemory] = Recovered("m1", "recovered", 30, 3, 4)
    answer = api.request("POST", "/api/memory/m1/recover", {"reason": "oops", "if_version": 3})
    assert (answer.status, answer.json) == (
        200,
        {"id": "m1", "status": "recovered", "currentVersion": 3, "newVersion": 4, "retentionDays": 30},
    )
    assert api.bus.only(RecoverMemory).body == RecoverMemory(
        id="m1", reason="oops", principal=Principal(), if_version=3
    )


def test_a_recovery_reads_the_query_too(api: MemoryApi) -> None:
    api.bus.script[RecoverMemory] = Recovered("m1", "recovered", 30, 3, 4)
    assert api.request("POST", "/api/memory/m1/recover?reason=oops&if_version=3").status == 200
    assert api.request("POST", "/api/memory/m1/recover").json["error"] == "reason is required"


@pytest.mark.parametrize(
    ("outcome", "status", "error"),
    [
        (Recovered("m1", "not_found", 30), 404, "Not found"),
        (Recovered("m1", "not_deleted", 30, 3), 409, "Memory is not deleted"),
        (Recovered("m1", "retention_expired", 30, 3), 409, "Recover window expired (30 days)"),
        (Recovered("m1", "version_conflict", 30, 3), 409, "Version conflict"),
        (Recovered("m1", "duplicate_content_hash", 30, 3, duplicate_memory_id="m2"), 409, "Duplicate content hash"),
    ],
)
def test_every_refused_recovery(api: MemoryApi, outcome: Recovered, status: int, error: str) -> None:
    api.bus.script[RecoverMemory] = outcome
    answer = api.request("POST", "/api/memory/m1/recover", {"reason": "r"})
    assert (answer.status, answer.json["error"], answer.json["status"]) == (status, error, outcome.status)
    assert answer.json.get("currentVersion") == outcome.current_version
    assert answer.json.get("duplicateMemoryId") == outcome.duplicate_memory_id


# numbers that JSON can spell and SQLite cannot hold


@pytest.mark.parametrize("raw", [b'{"content":"x","importance":1e999}', b'{"content":"x","importance":NaN}'])
def test_numbers_beyond_json_are_refused(api: MemoryApi, raw: bytes) -> None:
    assert api.request("POST", "/api/memory/remember", raw).status == 400


def test_vectors_travel_as_little_endian_float32(api: MemoryApi) -> None:
    api.request("POST", "/api/memory/remember", {"content": "x y"})
    (frame,) = api.bus.only(Remember).frames
    vector = np.frombuffer(frame, dtype="<f4")
    assert math.isclose(float(np.linalg.norm(vector)), 1.0, rel_tol=1e-6)


def test_static_paths_take_precedence_over_ids(api: MemoryApi) -> None:
    asked: Callable[[str], int] = lambda path: api.request("GET", path).status  # noqa: E731
    assert asked("/api/memory/search") == 400  # q is missing: the search route answered
    assert api.bus.asked == []
    assert json.loads(api.request("GET", "/api/memory/search").raw)["error"] == "query is required"


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
