"""The HTTP routes of import and export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from signet_actors.errors import ErrorCode
from signet_actors.protocol.searcher import ExportMemories, MemoriesExported
from signet_actors.protocol.writer import ImportMemories, LineRefused, MemoriesImported, TemporalEdge
from tests.support.memory_api import DIMENSIONS, MemoryApi

IMPORT, EXPORT = "/api/memory/import", "/api/memory/export"
AWS_KEY = "AK" + "IA" + "QYLPMN5HFIQR7B2X"  # built here, so that no complete one is in the repository
ID = "6f1c3b52-6c52-4d10-9d6e-4a7e7a2f0b11"
HEADER = {"format": "signet-memories", "version": 1}


@pytest.fixture
def api(tmp_path: Path) -> MemoryApi:
    made = MemoryApi(tmp_path)
    made.bus.script[ImportMemories] = lambda asked: MemoriesImported(len(asked.lines), 0, [])
    return made


def body(*lines: Any) -> bytes:
    return b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)


def test_lines_become_one_message_with_one_frame_of_vectors(api: MemoryApi) -> None:
    api.embedder.meaningless = {"..."}
    answer = api.request("POST", IMPORT, body(HEADER, {"content": "one"}, {"content": "..."}, {"content": " two "}))
    assert answer.json == {"imported": 3, "deduped": 0, "redacted": 0, "refused": []}
    sent = api.bus.only(ImportMemories)
    assert [line.memory.content for line in sent.body.lines] == ["one", "...", " two"]
    assert [line.line for line in sent.body.lines] == [2, 3, 4]
    (frame,) = sent.frames
    vectors = np.frombuffer(frame, "<f4").reshape(3, DIMENSIONS)
    places = [line.memory.vector.frame if line.memory.vector else None for line in sent.body.lines]
    assert places == [0, None, 2]
    assert np.array_equal(vectors[2], api.embedder.embed_query("two"))


def test_a_line_says_everything_that_a_memory_has(api: MemoryApi) -> None:
    api.request(
        "POST",
        IMPORT,
        body(
            {
                "content": "critical: [a]: stays as it is",
                "id": ID.upper(),
                "type": "Decision",
                "tags": ["x", "y"],
                "importance": 0.25,
                "pinned": True,
                "who": "alice",
                "project": "p",
                "scope": "s",
                "agentId": "alice",
                "visibility": "private",
                "sourceType": "note",
                "sourceId": "n",
                "sourcePath": "/n",
                "runtimePath": "/r",
                "idempotencyKey": "k",
                "sessionId": "session",
                "createdAt": "2020-01-02",
                "updatedAt": "2021-01-02T00:00:00Z",
                "accessCount": 3,
                "injectedCount": 2,
                "lastAccessed": "2022-01-02T00:00:00Z",
                "times": [{"facet": "valid", "start": "2020-01-01"}],
            }
        ),
        {"x-signet-actor": "importer"},
    )
    command = api.bus.only(ImportMemories).body
    (line,) = command.lines
    memory = line.memory
    assert command.principal.changed_by == "importer"
    assert (memory.content, memory.type, memory.tags) == ("critical: [a]: stays as it is", "decision", ("x", "y"))
    assert (memory.importance, memory.pinned, memory.who, memory.project) == (0.25, True, "alice", "p")
    assert (memory.scope, memory.agent_id, memory.visibility) == ("s", "alice", "private")
    assert (memory.source_type, memory.source_id, memory.source_path, memory.runtime_path) == ("note", "n", "/n", "/r")
    assert (memory.idempotency_key, memory.created_at) == ("k", "2020-01-02T00:00:00.000Z")
    assert memory.temporal == (TemporalEdge("valid", "2020-01-01T00:00:00.000Z", None),)
    assert (line.id, line.session_id, line.updated_at) == (ID, "session", "2021-01-02T00:00:00.000Z")
    assert (line.access_count, line.injected_count, line.last_accessed) == (3, 2, "2022-01-02T00:00:00.000Z")


def test_a_foreign_id_is_replaced_and_a_line_without_one_is_recognised_by_its_source(api: MemoryApi) -> None:
    api.request(
        "POST", IMPORT, body({"content": "a", "id": "mem_1", "sourceId": "s"}, {"content": "b", "sourceId": "s"})
    )
    foreign, bare = api.bus.only(ImportMemories).body.lines
    assert (foreign.id, foreign.memory.session_bound) == (None, True)
    assert (bare.id, bare.memory.session_bound) == (None, False)


@pytest.mark.parametrize(
    ("line", "code", "field"),
    [
        (b"{not json", "invalid_request", None),
        (b'"text"', "invalid_request", None),
        (b"\xff\xfe", "invalid_request", None),
        (b"[" * 5000, "invalid_request", None),
        (b'{"content":"x","z":[' + b"[]," * 60_000 + b"[]]}", "invalid_request", None),
        ({"content": ""}, "invalid_request", "content"),
        ({"type": "fact"}, "invalid_request", "content"),
        ({"content": 7}, "invalid_request", "content"),
        ({"content": "x" * 1_000_001}, "payload_too_large", "content"),
        ({"content": "x", "importance": 2}, "invalid_request", "importance"),
        ({"content": "x", "visibility": "archived"}, "invalid_request", "visibility"),
        ({"content": "x", "accessCount": -1}, "invalid_request", "accessCount"),
        ({"content": "x", "accessCount": 1.5}, "invalid_request", "accessCount"),
        ({"content": "x", "createdAt": "yesterday"}, "invalid_request", "createdAt"),
        ({"content": "x", "agentId": "a\u0001"}, "invalid_request", "agentId"),
        ({"content": "x", "times": [{"facet": "never"}]}, "invalid_request", "times"),
        ({"content": "x", "times": {"facet": "valid"}}, "invalid_request", "times"),
        ({"content": "x", "type": AWS_KEY.lower() + " x"}, "invalid_request", "type"),
    ],
)
def test_a_wrong_line_is_refused_by_its_number_and_the_others_are_stored(
    api: MemoryApi, line: Any, code: str, field: str | None
) -> None:
    answer = api.request("POST", IMPORT, body({"content": "before"}, b"", line, {"content": "after"}))
    assert answer.status == 200
    assert answer.json["imported"] == 2
    (refused,) = answer.json["refused"]
    assert (refused["line"], refused["code"], refused.get("field")) == (3, code, field)
    assert [item.line for item in api.bus.only(ImportMemories).body.lines] == [1, 4]


def test_what_the_writer_refuses_stands_between_what_the_edge_refused(api: MemoryApi) -> None:
    api.bus.script[ImportMemories] = MemoriesImported(1, 1, [LineRefused(2, ErrorCode.CONFLICT, "exists", None)])
    answer = api.request("POST", IMPORT, body(b"{", {"content": "a"}, b"[", {"content": "b"}, {"content": "c"}))
    assert (answer.json["imported"], answer.json["deduped"]) == (1, 1)
    assert [(line["line"], line["code"]) for line in answer.json["refused"]] == [
        (1, "invalid_request"),
        (2, "conflict"),
        (3, "invalid_request"),
    ]


def test_a_body_without_a_good_line_asks_the_writer_nothing(api: MemoryApi) -> None:
    assert api.request("POST", IMPORT, body(b"{")).json["imported"] == 0
    assert api.request("POST", IMPORT, body(HEADER)).json["refused"] == []
    assert [sent for sent in api.bus.asked if isinstance(sent.body, ImportMemories)] == []


@pytest.mark.parametrize(
    ("raw", "status", "field"),
    [
        (b"", 400, None),
        (b"\n \n", 400, None),
        (body({"format": "other", "version": 1}, {"content": "x"}), 400, "format"),
        (body({"format": "signet-memories", "version": 2}, {"content": "x"}), 400, "version"),
        (body({"format": "signet-memories", "version": True}, {"content": "x"}), 400, "version"),
        (b"{}\n" * 1003, 413, None),
        (body(*({"content": "x" * 900_000} for _ in range(4)), {"content": "y" * 80_000}), 413, None),
        (body(*({"content": " ".join(f"word{n} is here." for n in range(9000))} for _ in range(14))), 413, None),
    ],
)
def test_a_body_that_is_no_batch_is_refused_whole(api: MemoryApi, raw: bytes, status: int, field: str | None) -> None:
    answer = api.request("POST", IMPORT, raw)
    assert answer.status == status, answer.json
    assert answer.json.get("field") == field
    assert api.bus.asked == []


def test_secrets_are_cut_out_of_every_part_of_a_line(api: MemoryApi) -> None:
    answer = api.request(
        "POST",
        IMPORT,
        body(
            {"content": f"the key is {AWS_KEY}", "tags": ["t"]},
            {"content": "plain", "who": AWS_KEY, "sourceId": AWS_KEY, "idempotencyKey": AWS_KEY},
            {"content": "plain too", "who": AWS_KEY},
            {"content": "nothing"},
        ),
    )
    assert (answer.json["redacted"], answer.json["redactions"]) == (3, ["aws-key"])
    sent = api.bus.only(ImportMemories)
    assert AWS_KEY.encode() not in repr(sent.body).encode()


def test_an_oversized_line_goes_in_parts_but_a_row_of_an_export_stays_one(api: MemoryApi) -> None:
    text = " ".join(f"Sentence number {number} is about nothing." for number in range(60))
    api.request("POST", IMPORT, body({"content": text}, {"content": text, "id": ID}))
    parts, whole = api.bus.only(ImportMemories).body.lines
    assert len(parts.chunks) > 2
    assert [vector.frame for vector in parts.vectors] == list(range(len(parts.chunks)))
    assert whole.chunks == ()
    assert whole.memory.vector.frame == len(parts.chunks)


def test_a_line_of_many_parts_is_stored_where_it_comes_alone(api: MemoryApi) -> None:
    long = {"content": " ".join(f"Number {number} is one of very many sentences." for number in range(18_000))}
    assert api.request("POST", IMPORT, body(*[{"content": "x"}] * 990, long)).status == 413
    assert api.request("POST", IMPORT, body(long)).json["imported"] == 1
    assert len(api.bus.only(ImportMemories).body.lines[0].chunks) > 510


def test_lines_that_state_much_keep_other_writes_waiting_for_a_few_of_them_only(api: MemoryApi) -> None:
    entities = [{"name": f"Entity {number}"} for number in range(50)]
    attributes = [f"fact {number}" for number in range(200)]
    aspects = [{"entity": "Signet", "aspect": "store", "attributes": attributes}]
    line = {"content": "x", "structured": {"entities": entities, "aspects": aspects}}
    assert api.request("POST", IMPORT, body(*[line] * 10, *[{"content": "y"}] * 10)).status == 200
    lines = [len(sent.body.lines) for sent in api.bus.asked if isinstance(sent.body, ImportMemories)]
    assert lines == [2, 2, 2, 2, 12]
    assert api.request("POST", IMPORT, body(*[line] * 100)).status == 413


def test_memories_are_imported_without_vectors_where_the_model_fails(api: MemoryApi) -> None:
    api.embedder.failure = RuntimeError("broken")
    assert api.request("POST", IMPORT, body({"content": "x"})).json["imported"] == 1
    sent = api.bus.only(ImportMemories)
    assert (sent.frames, sent.body.lines[0].memory.vector) == ([], None)


def test_the_key_of_a_batch_covers_its_body(api: MemoryApi) -> None:
    for text in ("one", "two"):
        api.request("POST", IMPORT, body({"content": text}), {"idempotency-key": "k"})
    first, second = (sent.body.idempotency for sent in api.bus.asked if isinstance(sent.body, ImportMemories))
    assert first.key == second.key
    assert first.body_digest != second.body_digest


def test_the_first_page_of_an_export_begins_with_the_header_and_names_the_next(api: MemoryApi) -> None:
    api.bus.script[ExportMemories] = (MemoriesExported(1, 7), [b'{"content":"x"}\n'])
    answer = api.request("GET", f"{EXPORT}?agentId=bob&scope=s&limit=20")
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["x-signet-next-cursor"] == "7"
    assert [json.loads(line) for line in answer.raw.splitlines()] == [HEADER, {"content": "x"}]
    asked = api.bus.only(ExportMemories).body
    assert (asked.read.agent_id, asked.read.scope, asked.after, asked.limit) == ("bob", "s", 0, 20)


def test_the_last_page_of_an_export_names_no_next(api: MemoryApi) -> None:
    api.bus.script[ExportMemories] = (MemoriesExported(0, None), [b""])
    answer = api.request("GET", f"{EXPORT}?after=7&limit=9999")
    assert (answer.status, answer.raw) == (200, b"")
    assert "x-signet-next-cursor" not in answer.headers
    assert api.bus.only(ExportMemories).body.limit == 1000
