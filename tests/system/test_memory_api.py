"""Remembering, reading and changing one memory as documented in memory-api.txt, against a live daemon."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import Any

import pytest

from signet_actors.domain.chunking import distinct_chunks
from tests.support.bus_harness import eventually
from tests.support.live_daemon import Answer, Client, LiveDaemon, live_daemon

pytestmark = pytest.mark.system

MISSING = "00000000-0000-7000-8000-000000000000"
REMEMBERS = ("/api/memory/remember", "/api/memory/save", "/api/hook/remember")
SECRET = "AK" + "IA" + "QYLPMN5HFIQR7B2X"


def oversized(topic: str, sentences: int = 12) -> str:
    """More than 500 characters that fall into several chunks."""
    return " ".join(
        f"The {topic} rollout reached stage number {number} without any trouble." for number in range(sentences)
    )


# remember


def test_a_remember_answers_and_stores_every_documented_field(room: Client) -> None:
    body = {
        "content": "User prefers vim keybindings",
        "who": "claude-code",
        "project": "my-project",
        "importance": 0.9,
        "tags": "preference,editor",
        "pinned": False,
        "sourceType": "manual",
        "sourceId": "optional-external-id",
        "sourcePath": "/absolute/or/original/source.md",
        "runtimePath": "memory/MEMORY.md",
        "idempotencyKey": "stable-import-key",
        "createdAt": "2026-02-21T10:00:00.000Z",
        "occurredAt": "2026-02-20T15:00:00.000Z",
        "observedAt": "2026-02-21T09:55:00.000Z",
        "sourceCreatedAt": "2026-02-20T15:05:00.000Z",
        "validFrom": "2026-02-20T00:00:00.000Z",
        "validUntil": "2026-03-01T00:00:00.000Z",
        "visibility": "global",
    }
    answer = room.post("/api/memory/remember", body).ok()
    memory_id = answer.pop("id")
    assert answer == {
        "type": "preference",
        "tags": "preference,editor",
        "pinned": False,
        "importance": 0.9,
        "content": "User prefers vim keybindings",
        "embedded": True,
        "deduped": False,
    }
    memory = room.memory(memory_id)
    expected = {
        "id": memory_id,
        "content": "User prefers vim keybindings",
        "type": "preference",
        "importance": 0.9,
        "tags": "preference,editor",
        "pinned": 0,
        "who": "claude-code",
        "source_id": "optional-external-id",
        "source_type": "manual",
        "source_path": "/absolute/or/original/source.md",
        "runtime_path": "memory/MEMORY.md",
        "idempotency_key": "stable-import-key",
        "sourcePath": "/absolute/or/original/source.md",
        "runtimePath": "memory/MEMORY.md",
        "idempotencyKey": "stable-import-key",
        "project": "my-project",
        "session_id": None,
        "confidence": None,
        "access_count": 0,
        "last_accessed": None,
        "is_deleted": 0,
        "deleted_at": None,
        "version": 1,
        "created_at": "2026-02-21T10:00:00.000Z",
        "updated_by": "claude-code",
    }
    assert {name: memory[name] for name in expected} == expected
    assert isinstance(memory["embedding_model"], str)
    assert isinstance(memory["extraction_status"], str)
    assert isinstance(memory["updated_at"], str)
    edges = room.daemon.read(
        "SELECT facet, start_at, end_at FROM temporal_edges WHERE subject_id = ? ORDER BY facet", memory_id
    )
    assert edges == [
        ("observed", "2026-02-21T09:55:00.000Z", "2026-02-21T09:55:00.000Z"),
        ("occurred", "2026-02-20T15:00:00.000Z", "2026-02-20T15:00:00.000Z"),
        ("source", "2026-02-20T15:05:00.000Z", "2026-02-20T15:05:00.000Z"),
        ("valid", "2026-02-20T00:00:00.000Z", "2026-03-01T00:00:00.000Z"),
    ]


def test_content_alone_is_enough(room: Client) -> None:
    answer = room.remember("The sky over the office is grey")
    memory_id = answer.pop("id")
    assert answer == {
        "type": "fact",
        "tags": None,
        "pinned": False,
        "importance": 0.8,
        "content": "The sky over the office is grey",
        "embedded": True,
        "deduped": False,
    }
    assert room.memory(memory_id)["who"] == "daemon"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("critical: never push to main", {"content": "never push to main", "pinned": True, "importance": 1.0}),
        ("[Ops,deploy]: restart the queue", {"content": "restart the queue", "tags": "ops,deploy", "pinned": False}),
        (
            "critical: [ops]: keep the pager on",
            {"content": "keep the pager on", "tags": "ops", "pinned": True, "importance": 1.0},
        ),
        ("[]: brackets without a tag", {"content": "[]: brackets without a tag", "tags": None}),
    ],
)
def test_prefixes_are_parsed(room: Client, content: str, expected: dict[str, Any]) -> None:
    answer = room.remember(content)
    assert {name: answer[name] for name in expected} == expected


def test_fields_of_the_body_override_prefixes(room: Client) -> None:
    answer = room.remember(
        "critical: [ops]: rotate the keys", importance=0.3, pinned=False, tags=["security"], type="procedural"
    )
    expected = {
        "content": "rotate the keys",
        "importance": 0.3,
        "pinned": False,
        "tags": "security",
        "type": "procedural",
    }
    assert {name: answer[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("Ana prefers tea", "preference"),
        ("We decided on Postgres", "decision"),
        ("Today I learned about WAL", "learning"),
        ("The login page is broken", "issue"),
        ("Always run the tests", "rule"),
        ("Mustard is yellow", "fact"),
    ],
)
def test_the_type_is_inferred_from_the_words(room: Client, content: str, kind: str) -> None:
    assert room.remember(content)["type"] == kind


@pytest.mark.parametrize(
    ("tags", "stored"),
    [
        ("alpha, beta", "alpha,beta"),
        (["alpha", "beta"], "alpha,beta"),
        (["alpha, beta", " "], "alpha,beta"),
        ([], None),
        ("", None),
        (None, None),
    ],
)
def test_tags_may_be_a_string_or_an_array(room: Client, tags: Any, stored: str | None) -> None:
    answer = room.remember("Tagged in some way", tags=tags)
    assert answer["tags"] == stored
    assert room.memory(answer["id"])["tags"] == stored


@pytest.mark.parametrize("nested", [False, True], ids=["in the body", "in metadata"])
def test_snake_case_names_are_accepted(room: Client, *, nested: bool) -> None:
    provenance = {"source_path": "/notes/a.md", "runtime_path": "memory/A.md", "idempotency_key": "import-1"}
    fields: dict[str, Any] = {"metadata": provenance} if nested else provenance
    answer = room.remember(
        "Imported from elsewhere",
        source_type="import",
        source_id="ext-7",
        created_at="2025-06-01",
        occurred_at="2025-05-31T12:00:00+02:00",
        **fields,
    )
    memory = room.memory(answer["id"])
    for name, value in {**provenance, "source_type": "import", "source_id": "ext-7"}.items():
        assert memory[name] == value
    assert memory["created_at"] == "2025-06-01T00:00:00.000Z"
    occurred = room.daemon.read("SELECT start_at FROM temporal_edges WHERE subject_id = ?", answer["id"])
    assert occurred == [("2025-05-31T10:00:00.000Z",)]


def test_an_agent_may_be_named_in_either_spelling_or_in_a_header(daemon: LiveDaemon) -> None:
    for client, fields in (
        (daemon.api, {"agentId": "lone"}),
        (daemon.api, {"agent_id": "lone"}),
        (daemon.agent("lone"), {}),
        (daemon.api.acting(x_signet_session_key="agent:lone:1"), {}),
    ):
        answer = client.remember("The same words of one agent", **fields)
        assert daemon.agent("lone").memory(answer["id"])["agent_id"] == "lone"
    assert answer["deduped"] is True


def test_an_agent_seen_for_the_first_time_reads_what_is_global(daemon: LiveDaemon) -> None:
    common = daemon.api.remember("A newcomer may read this global line")["id"]
    newcomer = daemon.agent("newcomer-1")
    assert newcomer.get(f"/api/memory/{common}").status == 404
    newcomer.remember("The newcomer's first words")
    assert daemon.read("SELECT read_policy FROM agents WHERE id = 'newcomer-1'") == [("shared",)]
    assert newcomer.memory(common)["id"] == common


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": ""}, "content"),
        ({"content": "  \n "}, "content"),
        ({"content": "critical:"}, "content"),
        ({"content": 7}, "content"),
        ({"content": ["a"]}, "content"),
        ({"content": "x", "who": 1}, "who"),
        ({"content": "x", "project": {}}, "project"),
        ({"content": "x", "importance": "much"}, "importance"),
        ({"content": "x", "importance": True}, "importance"),
        ({"content": "x", "importance": 1.5}, "importance"),
        ({"content": "x", "tags": 3}, "tags"),
        ({"content": "x", "tags": ["a", 3]}, "tags"),
        ({"content": "x", "pinned": "perhaps"}, "pinned"),
        ({"content": "x", "type": 9}, "type"),
        ({"content": "x", "type": "no type at all"}, "type"),
        ({"content": "x", "sourceType": 1}, "sourceType"),
        ({"content": "x", "sourceId": 1}, "sourceId"),
        ({"content": "x", "source_path": 1}, "source_path"),
        ({"content": "x", "runtimePath": []}, "runtimePath"),
        ({"content": "x", "idempotencyKey": 5}, "idempotencyKey"),
        ({"content": "x", "metadata": "text"}, "metadata"),
        ({"content": "x", "transcript": {}}, "transcript"),
        ({"content": "x", "structured": "no"}, "structured"),
        ({"content": "x", "changed_by": []}, "changed_by"),
        ({"content": "x", "agentId": 1}, "agentId"),
        ({"content": "x", "agentId": "a" * 201}, "agentId"),
        ({"content": "x", "agent_id": "a\nb"}, "agent_id"),
        ({"content": "x", "agentId": "team/alice"}, "agentId"),
        ({"content": "x", "agentId": "agent:alice"}, "agentId"),
        ({"content": "x", "agentId": "..\\alice"}, "agentId"),
        ({"content": "x", "visibility": "hidden"}, "visibility"),
        ({"content": "x", "createdAt": "yesterday"}, "createdAt"),
        ({"content": "x", "createdAt": 1700000000}, "createdAt"),
        ({"content": "x", "occurredAt": "2026-02-30T00:00:00Z"}, "occurredAt"),
        ({"content": "x", "observedAt": "no"}, "observedAt"),
        ({"content": "x", "sourceCreatedAt": "no"}, "sourceCreatedAt"),
        ({"content": "x", "validFrom": "no"}, "validFrom"),
        ({"content": "x", "validUntil": "no"}, "validUntil"),
        ({"content": "x", "validFrom": "2026-03-01", "validUntil": "2026-03-01"}, "validUntil"),
        ({"content": "x", "validFrom": "2026-03-02", "validUntil": "2026-03-01"}, "validUntil"),
    ],
)
def test_a_wrong_field_is_refused_by_name_and_nothing_is_stored(room: Client, body: Any, field: str) -> None:
    room.post("/api/memory/remember", body).refused(400, code="invalid_request", field=field)
    assert room.listed() == []


def test_error_texts_are_the_documented_ones(room: Client) -> None:
    for body, text in (
        ({}, "content is required"),
        ({"content": "critical:"}, "content is required"),
        ({"content": "x", "createdAt": "no"}, "createdAt must be a valid ISO timestamp"),
        ({"content": "x", "validFrom": "2026-03-02", "validUntil": "2026-03-01"}, "validUntil must be after validFrom"),
        ({"content": 5}, "content must be a string"),
        ({"content": "x", "importance": 1.5}, "importance must be a number between 0 and 1"),
        ({"content": "x", "tags": [1]}, "tags must be a string or an array of strings"),
        ({"content": "x", "visibility": "hidden"}, "visibility must be one of: global, private"),
        ({"content": "x", "metadata": "m"}, "metadata must be an object"),
    ):
        room.post("/api/memory/remember", body).refused(400, error=text)


@pytest.mark.parametrize("raw", [b"", b"{", b'"text"', b"[]", b"null", b"\xff\xfe", b"[" * 5000])
@pytest.mark.parametrize("route", REMEMBERS)
def test_a_body_that_is_no_json_object_is_refused(room: Client, route: str, raw: bytes) -> None:
    room.request("POST", route, raw).refused(400, error="Invalid JSON body")


def test_unknown_fields_are_ignored(room: Client) -> None:
    assert room.remember("Known and unknown fields", mode="auto", extra={"a": 1})["deduped"] is False


def test_content_over_a_million_bytes_is_too_large(room: Client) -> None:
    room.post("/api/memory/remember", {"content": "x" * 1_000_001}).refused(
        413, code="payload_too_large", field="content"
    )
    assert room.listed() == []


def test_a_secret_is_redacted_before_it_is_stored(room: Client) -> None:
    answer = room.remember(f"The bucket opens with {SECRET} and nothing else")
    assert answer["redacted"] is True
    patch = {"content": f"Now it opens with {SECRET}", "reason": "r"}
    assert room.request("PATCH", f"/api/memory/{answer['id']}", patch).ok()["redacted"] is True
    memory = room.memory(answer["id"])
    history = room.get(f"/api/memory/{answer['id']}/history").json
    assert SECRET not in str((answer, memory, history))


@pytest.mark.parametrize("route", REMEMBERS)
def test_every_alias_behaves_like_remember(room: Client, route: str) -> None:
    answer = room.post(route, {"content": "critical: the alias works", "tags": ["alias"]}).ok()
    assert sorted(answer) == ["content", "deduped", "embedded", "id", "importance", "pinned", "tags", "type"]
    assert room.memory(answer["id"])["pinned"] == 1
    assert room.post(REMEMBERS[0], {"content": "the alias works"}).ok()["id"] == answer["id"]


# deduplication


@pytest.mark.parametrize("twin", ["hello world", "  Hello \n\t World  ", "HELLO WORLD!!!", "Hello World."])
def test_content_that_differs_only_in_form_is_deduplicated(room: Client, twin: str) -> None:
    first = room.remember("Hello World", tags="greeting", importance=0.4)
    again = room.remember(twin, tags="other")
    assert again == {**first, "deduped": True}
    assert len(room.listed()) == 1


def test_a_memory_that_is_remembered_again_as_a_pinned_one_is_pinned(room: Client) -> None:
    first = room.remember("Never deploy on a Friday afternoon", idempotencyKey="plain")
    again = room.remember("critical: Never deploy on a Friday afternoon", idempotencyKey="pinned")
    assert (again["id"], again["deduped"], again["pinned"]) == (first["id"], True, True)
    assert room.get(f"/api/memory/{first['id']}").ok()["pinned"] == 1
    assert (
        "Never deploy on a Friday afternoon" in room.post("/api/hooks/session-start", {"harness": "t"}).ok()["inject"]
    )
    assert room.remember("Never deploy on a Friday afternoon")["pinned"] is True, "without a wish the pin stays"


def test_a_retry_of_a_pinned_memory_does_not_pin_it_again(room: Client) -> None:
    body = {"pinned": True, "idempotencyKey": "once"}
    first = room.remember("The deploy key is on the ring", **body)
    reason = {"pinned": False, "reason": "no longer"}
    room.request("PATCH", f"/api/memory/{first['id']}", reason).ok()
    assert room.remember("The deploy key is on the ring", **body)["pinned"] is False


def test_a_source_id_deduplicates_before_a_key_and_a_key_before_the_content(room: Client) -> None:
    by_source = room.remember("Text one", sourceId="s-1")["id"]
    by_key = room.remember("Text two", idempotencyKey="k-1")["id"]
    by_content = room.remember("Text three")["id"]
    every = {"content": "Text three", "sourceId": "s-1", "idempotencyKey": "k-1"}
    for body, expected in (
        (every, by_source),
        ({**every, "sourceId": "s-2"}, by_key),
        ({**every, "sourceId": "s-2", "idempotencyKey": "k-2"}, by_content),
    ):
        answer = room.post("/api/memory/remember", body).ok()
        assert (answer["id"], answer["deduped"]) == (expected, True)
    assert len(room.listed()) == 3


def test_a_retry_with_the_same_key_returns_the_existing_row_whatever_its_content(room: Client) -> None:
    first = room.remember("As it was first imported", idempotencyKey="import-9")
    again = room.remember("As it was imported later", idempotency_key="import-9")
    assert (again["id"], again["content"], again["deduped"]) == (first["id"], "As it was first imported", True)


@pytest.mark.parametrize("by", [{}, {"sourceId": "s"}, {"idempotencyKey": "k"}], ids=["content", "source", "key"])
@pytest.mark.parametrize(
    "elsewhere",
    [{"agentId": "wide"}, {"visibility": "private"}, {"project": "p"}, {"scope": "s"}],
    ids=["agent", "visibility", "project", "scope"],
)
def test_nothing_is_deduplicated_across_scopes(room: Client, by: dict[str, str], elsewhere: dict[str, str]) -> None:
    text = f"Scoped words {room.headers} {by} {elsewhere}"
    first = room.remember(text, **by)
    other = room.remember(text, **by, **elsewhere)
    assert other["deduped"] is False
    assert other["id"] != first["id"]


def test_a_source_id_of_a_session_does_not_deduplicate(room: Client) -> None:
    room.remember("First words of a session", sourceId="session-1", transcript="a long transcript")
    again = room.remember("Second words of a session", sourceId="session-1", transcript="a long transcript")
    assert again["deduped"] is False


def test_forgotten_content_may_be_remembered_again(room: Client) -> None:
    first = room.remember("Said, forgotten, said again", idempotencyKey="again", sourceId="again")["id"]
    room.request("DELETE", f"/api/memory/{first}", {"reason": "no longer"}).ok()
    again = room.remember("Said, forgotten, said again", idempotencyKey="again", sourceId="again")
    assert again["deduped"] is False
    assert again["id"] != first


# oversized content


def test_oversized_content_is_stored_as_chunks(room: Client) -> None:
    text = oversized("billing")
    answer = room.post("/api/memory/remember", {"content": text, "tags": ["rollout"]}).ok()
    assert sorted(answer) == ["chunk_count", "chunked", "group_id", "ids"]
    assert answer["chunked"] is True
    assert answer["chunk_count"] == len(answer["ids"]) > 1
    chunks = [room.memory(chunk) for chunk in answer["ids"]]
    assert " ".join(chunk["content"] for chunk in chunks) == text
    assert all(len(chunk["content"]) <= 600 for chunk in chunks)
    assert {chunk["source_type"] for chunk in chunks} == {"chunk"}
    assert {chunk["source_id"] for chunk in chunks} == {answer["group_id"]}
    assert {chunk["tags"] for chunk in chunks} == {"rollout"}
    assert room.recalled("billing stage number 11", limit=3)[0] in answer["ids"]


def test_a_retried_oversized_import_returns_the_same_group(room: Client) -> None:
    body = {"content": oversized("search"), "idempotencyKey": "import-search"}
    first = room.post("/api/memory/remember", body).ok()
    again = room.post("/api/memory/remember", body).ok()
    assert again == {**first, "deduped": True}
    assert [room.memory(chunk)["idempotency_key"] for chunk in first["ids"]] == [
        f"import-search:chunk:{index}" for index in range(first["chunk_count"])
    ]
    assert len(room.listed()) == first["chunk_count"]


def test_a_key_of_oversized_content_cannot_be_used_for_another_memory(room: Client) -> None:
    chunked = room.post("/api/memory/remember", {"content": oversized("mail"), "idempotencyKey": "big"}).ok()
    room.remember("A small one", idempotencyKey="small")
    before = room.listed()
    for body, text in (
        ({"content": oversized("fax"), "idempotencyKey": "big"}, "different chunked content"),
        ({"content": oversized("fax"), "idempotencyKey": "small"}, "non-chunk content"),
        ({"content": "Small after big", "idempotencyKey": "big"}, "chunked content"),
    ):
        assert text in room.post("/api/memory/remember", body).refused(409, code="conflict")["error"]
    assert room.listed() == before
    assert len(before) == chunked["chunk_count"] + 1


def test_a_chunk_that_exists_already_refuses_the_whole_import(room: Client) -> None:
    text = oversized("ledger")
    chunks = distinct_chunks(text, 300)
    assert len(chunks) > 2
    room.remember(chunks[1])
    refused = room.post("/api/memory/remember", {"content": text, "idempotencyKey": "k"}).refused(409, code="conflict")
    assert "chunk content already exists" in refused["error"]
    assert [row["content"] for row in room.listed()] == [chunks[1]]


def test_of_two_concurrent_identical_oversized_texts_one_is_stored(room: Client) -> None:
    text = oversized("warehouse")
    answers: list[Answer] = []
    gate = threading.Barrier(2)

    def send(key: str) -> None:
        gate.wait(10)
        answers.append(room.post("/api/memory/remember", {"content": text, "idempotencyKey": key}))

    threads = [threading.Thread(target=send, args=(key,)) for key in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(answer.status for answer in answers) == [200, 409]
    stored = next(answer.json for answer in answers if answer.status == 200)
    assert sorted(row["id"] for row in room.listed()) == sorted(stored["ids"])


# the Idempotency-Key header


def test_a_retry_with_the_same_idempotency_key_gets_the_first_response(room: Client) -> None:
    body = {"content": "Once is enough"}
    first = room.post("/api/memory/remember", body, Idempotency_Key="once")
    again = room.post("/api/memory/remember", body, Idempotency_Key="once")
    assert first.ok()["deduped"] is False
    assert again.ok() == first.json
    room.post("/api/memory/remember", {"content": "Twice"}, Idempotency_Key="once").refused(
        409, code="idempotency_conflict", field="Idempotency-Key"
    )
    assert len(room.listed()) == 1


def test_an_idempotency_key_belongs_to_one_principal_and_one_route(room: Client) -> None:
    first = room.post("/api/memory/remember", {"content": "Mine"}, Idempotency_Key="k").ok()
    other = room.acting(x_signet_actor="somebody").post(
        "/api/memory/remember", {"content": "Theirs"}, Idempotency_Key="k"
    )
    alias = room.post("/api/memory/save", {"content": "By the alias"}, Idempotency_Key="k")
    assert len({first["id"], other.ok()["id"], alias.ok()["id"]}) == 3


def test_every_change_of_a_memory_acts_once_per_idempotency_key(room: Client) -> None:
    memory_id = room.remember("To be changed once")["id"]
    for method, target, body in (
        ("PATCH", f"/api/memory/{memory_id}", {"content": "Changed once", "reason": "r"}),
        ("DELETE", f"/api/memory/{memory_id}", {"reason": "r"}),
        ("POST", f"/api/memory/{memory_id}/recover", {"reason": "r"}),
        ("POST", "/api/memory/modify", {"reason": "r", "patches": [{"id": memory_id, "importance": 0.1}]}),
        ("POST", "/api/memory/forget", {"mode": "execute", "reason": "r", "ids": [memory_id]}),
    ):
        key = {"Idempotency-Key": f"{method} {target}"}
        if target.endswith("/forget"):
            body["confirm_token"] = room.post(target, {**body, "mode": "preview"}).ok()["confirmToken"]
        first = room.request(method, target, body, key)
        again = room.request(method, target, body, key)
        assert first.status == 200, first.raw
        assert again.json == first.json
        room.request(method, target, {**body, "reason": "another"}, key).refused(409, code="idempotency_conflict")
    events = [event["event"] for event in room.get(f"/api/memory/{memory_id}/history").ok()["history"]]
    assert events == ["created", "updated", "deleted", "recovered", "updated", "deleted"]


# list, get, history


def test_the_list_shows_the_newest_first_with_stats_and_pages(room: Client) -> None:
    ids = [room.remember(f"Listed number {number}", importance=number / 10)["id"] for number in (1, 9, 10)]
    forgotten = room.remember("Not listed any more", importance=1.0)["id"]
    room.request("DELETE", f"/api/memory/{forgotten}?reason=gone").ok()
    page = room.get("/api/memories").ok()
    assert [memory["id"] for memory in page["memories"]] == ids[::-1]
    assert page["stats"] == {"total": 3, "withEmbeddings": 3, "critical": 2}
    row = page["memories"][0]
    expected = {
        "id": ids[2],
        "content": "Listed number 10",
        "who": "daemon",
        "importance": 1.0,
        "tags": None,
        "source_type": "manual",
        "pinned": 0,
        "type": "fact",
    }
    assert {name: row[name] for name in expected} == expected
    assert isinstance(row["created_at"], str)
    second = room.get("/api/memories", limit=1, offset=1).ok()
    assert [memory["id"] for memory in second["memories"]] == [ids[1]]
    assert second["stats"]["total"] == 3
    assert [row["id"] for row in room.get("/api/memories", limit="1abc", offset="x").ok()["memories"]] == [ids[2]]


def test_a_missing_memory_is_not_found(room: Client) -> None:
    assert room.get(f"/api/memory/{MISSING}").refused(404, error="not found")["code"] == "not_found"
    history = room.get(f"/api/memory/{MISSING}/history").refused(404, error="Not found", memoryId=MISSING)
    assert sorted(history) == ["code", "error", "memoryId"]


def test_a_deleted_memory_is_shown_only_on_request(room: Client) -> None:
    memory_id = room.remember("Deleted but kept")["id"]
    room.request("DELETE", f"/api/memory/{memory_id}?reason=r").ok()
    room.get(f"/api/memory/{memory_id}").refused(404)
    room.get(f"/api/memory/{memory_id}", include_deleted="false").refused(404)
    shown = room.memory(memory_id, include_deleted="true")
    assert (shown["is_deleted"], shown["version"]) == (1, 2)
    assert isinstance(shown["deleted_at"], str)
    (row,) = room.get("/api/memories", deleted="true").ok()["memories"]
    assert (row["id"], row["deleted_at"]) == (memory_id, shown["deleted_at"])
    kept = datetime.fromisoformat(row["recoverable_until"]) - datetime.fromisoformat(row["deleted_at"])
    assert kept == timedelta(days=30)


def test_deleted_memories_are_found_by_words_that_each_of_them_has(room: Client) -> None:
    texts = ("The crane of Pier 40% stands", "The pier_has no crane", "A crane flies", "ÄRZTE der Straße")
    for text in texts:
        room.request("DELETE", f"/api/memory/{room.remember(text)['id']}?reason=r").ok()
    room.remember("A living crane of the pier")
    for words, found in {
        "CRANE pier": texts[:2],
        "rane": texts[:3],
        "ärzte STRASSE": texts[3:],
        "40%": texts[:1],
        "pier_has": texts[1:2],
        "%": texts[:1],
        "crane moon": (),
        " ": texts,
    }.items():
        reply = room.get("/api/memories", deleted="true", words=words).ok()
        assert {row["content"] for row in reply["memories"]} == set(found), words
        assert (reply["total"], reply.get("complete")) == (len(found), None if words == " " else True)
    page = room.get("/api/memories", deleted="true", words="crane", limit=1, offset=1).ok()
    assert [row["content"] for row in page["memories"]] == [texts[1]]
    assert room.get("/api/memories", words="crane").refused(400)["field"] == "words"
    assert room.get("/api/memories", deleted="true", words="a " * 21).refused(400)["field"] == "words"


def test_the_history_lists_all_events_in_order(room: Client) -> None:
    memory_id = room.acting(x_signet_session_id="s-1", x_signet_request_id="r-1").remember("First text", who="ana")[
        "id"
    ]
    target = f"/api/memory/{memory_id}"
    change = {"content": "Second text", "reason": "better", "changed_by": "ben"}
    room.request("PATCH", target, change).ok()
    agent = {"x-signet-actor": "robot", "x-signet-actor-type": "pipeline"}
    room.request("DELETE", target, {"reason": "old"}, agent).ok()
    room.post(f"{target}/recover", {"reason": "needed"}).ok()
    answer = room.get(f"{target}/history").ok()
    assert (answer["memoryId"], answer["count"]) == (memory_id, 4)
    created, updated, deleted, recovered = answer["history"]
    expected = {
        "event": "created",
        "oldContent": None,
        "newContent": "First text",
        "changedBy": "ana",
        "actorType": "operator",
        "reason": None,
        "sessionId": "s-1",
        "requestId": "r-1",
    }
    assert {name: created[name] for name in expected} == expected
    assert (updated["event"], updated["oldContent"], updated["newContent"]) == ("updated", "First text", "Second text")
    assert (updated["changedBy"], updated["reason"], updated["sessionId"]) == ("ben", "better", None)
    assert isinstance(updated["metadata"], dict)
    assert (deleted["event"], deleted["changedBy"], deleted["actorType"]) == ("deleted", "robot", "pipeline")
    assert (recovered["event"], recovered["reason"]) == ("recovered", "needed")
    assert len({event["id"] for event in answer["history"]}) == 4
    first_two = room.get(f"{target}/history", limit=2).ok()
    assert first_two["history"] == [created, updated]


# patch


def test_a_patch_updates_every_field_and_raises_the_version(room: Client) -> None:
    memory_id = room.remember("Before the change", tags="old")["id"]
    answer = room.request(
        "PATCH",
        f"/api/memory/{memory_id}",
        {
            "content": "Updated content",
            "type": "decision",
            "tags": ["updated", "fact"],
            "importance": 0.7,
            "pinned": True,
            "reason": "Correcting outdated information",
            "if_version": 1,
            "changed_by": "operator",
        },
    ).ok()
    assert answer == {
        "id": memory_id,
        "status": "updated",
        "currentVersion": 1,
        "newVersion": 2,
        "contentChanged": True,
        "embedded": True,
        "success": True,
    }
    memory = room.memory(memory_id)
    expected = {
        "content": "Updated content",
        "type": "decision",
        "tags": "updated,fact",
        "importance": 0.7,
        "pinned": 1,
        "version": 2,
        "updated_by": "operator",
    }
    assert {name: memory[name] for name in expected} == expected
    assert room.recalled("updated content") == [memory_id]
    assert room.get("/memory/search", q="before").ok()["results"] == []


@pytest.mark.parametrize(("tags", "stored"), [("a, b", "a,b"), (["a", "b"], "a,b"), (None, None)])
def test_tags_may_be_patched_as_text_or_array_or_removed(room: Client, tags: Any, stored: str | None) -> None:
    memory_id = room.remember("Has tags", tags="one,two")["id"]
    answer = room.request("PATCH", f"/api/memory/{memory_id}", {"tags": tags, "reason": "r"}).ok()
    assert (answer["status"], answer["contentChanged"]) == ("updated", False)
    assert room.memory(memory_id)["tags"] == stored


@pytest.mark.parametrize("field", ["content", "type", "importance", "pinned", "who", "if_version", "changed_by"])
def test_null_in_a_patch_clears_only_tags(room: Client, field: str) -> None:
    stored = room.remember("A full memory", type="rule", tags="a,b", importance=0.7, pinned=True, who="ada")["id"]
    before = room.memory(stored)
    kept = {name: before[name] for name in ("content", "type", "importance", "pinned", "who")}
    alone = room.request("PATCH", f"/api/memory/{stored}", {field: None, "reason": "r"})
    assert alone.refused(400)["error"] == "at least one of content, type, tags, importance, pinned is required"
    batch = {"patches": [{"id": stored, field: None}], "reason": "r"}
    assert [one["status"] for one in room.post("/api/memory/modify", batch).ok()["results"]] == ["invalid_request"]
    assert room.memory(stored) == before
    room.request("PATCH", f"/api/memory/{stored}", {field: None, "tags": "c", "reason": "r"}).ok()
    batch = {"patches": [{"id": stored, field: None, "tags": None}], "reason": "r"}
    assert [one["status"] for one in room.post("/api/memory/modify", batch).ok()["results"]] == ["updated"]
    after = room.memory(stored)
    assert {name: after[name] for name in kept} == kept
    assert (after["tags"], after["version"]) == (None, 3)


def test_a_patch_reads_no_prefixes(room: Client) -> None:
    memory_id = room.remember("Before the patch")["id"]
    room.request("PATCH", f"/api/memory/{memory_id}", {"content": "critical: [ops]: text", "reason": "r"}).ok()
    memory = room.memory(memory_id)
    assert (memory["content"], memory["pinned"], memory["tags"]) == ("critical: [ops]: text", 0, None)


def test_a_patch_without_a_difference_changes_nothing(room: Client) -> None:
    memory_id = room.remember("As it is", tags="t")["id"]
    body = {"content": "As it is", "tags": "t", "importance": 0.8, "pinned": False, "type": "fact", "reason": "r"}
    answer = room.request("PATCH", f"/api/memory/{memory_id}", body).ok()
    assert (answer["id"], answer["status"], answer["contentChanged"]) == (memory_id, "no_changes", False)
    assert room.memory(memory_id)["version"] == 1


def test_a_patch_is_refused_with_its_status(room: Client) -> None:
    memory_id = room.remember("The patched one")["id"]
    twin = room.remember("The other one")["id"]
    gone = room.remember("The deleted one")["id"]
    room.request("DELETE", f"/api/memory/{gone}?reason=r").ok()
    for target, body, status, fields in (
        (MISSING, {"importance": 0.1}, 404, {"status": "not_found", "error": "Not found", "id": MISSING}),
        (gone, {"importance": 0.1}, 409, {"status": "deleted", "error": "Cannot modify deleted memory"}),
        (
            memory_id,
            {"importance": 0.1, "if_version": 7},
            409,
            {"status": "version_conflict", "error": "Version conflict", "currentVersion": 1},
        ),
        (
            memory_id,
            {"content": "the OTHER one."},
            409,
            {"status": "duplicate_content_hash", "error": "Duplicate content hash", "duplicateMemoryId": twin},
        ),
    ):
        answer = room.request("PATCH", f"/api/memory/{target}", {"reason": "r", **body})
        answer.refused(status, **fields)
    assert (room.memory(memory_id)["content"], room.memory(memory_id)["version"]) == ("The patched one", 1)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ({"importance": 0.5}, "reason is required"),
        ({"reason": "  ", "importance": 0.5}, "reason is required"),
        ({"reason": "r"}, "at least one of content, type, tags, importance, pinned is required"),
        ({"reason": "r", "importance": 0.5, "if_version": 0}, "if_version must be a positive integer"),
        ({"reason": "r", "importance": 0.5, "if_version": 1.5}, "if_version must be a positive integer"),
        ({"reason": "r", "importance": 0.5, "if_version": "x"}, "if_version must be a positive integer"),
        ({"reason": "r", "importance": 2}, "importance must be a number between 0 and 1"),
        ({"reason": "r", "pinned": "perhaps"}, "pinned must be a boolean"),
        ({"reason": "r", "content": "  "}, "content must be a non-empty string"),
        ({"reason": "r", "tags": 5}, "tags must be a string or an array of strings"),
    ],
)
def test_an_invalid_patch_is_refused_with_a_reason(room: Client, body: Any, text: str) -> None:
    memory_id = room.remember("Patched wrongly")["id"]
    room.request("PATCH", f"/api/memory/{memory_id}", body).refused(400, error=text, code="invalid_request")
    assert room.memory(memory_id)["version"] == 1


def test_a_version_may_be_given_as_text(room: Client) -> None:
    memory_id = room.remember("Version as text")["id"]
    body = {"importance": 0.5, "reason": "r", "if_version": " 1 "}
    assert room.request("PATCH", f"/api/memory/{memory_id}", body).ok()["newVersion"] == 2


# delete


@pytest.mark.parametrize("where", ["body", "query", "text/plain body"])
def test_a_memory_is_deleted_with_a_reason_in_the_body_or_in_the_query(room: Client, where: str) -> None:
    memory_id = room.remember("Deleted in one of three ways")["id"]
    target = f"/api/memory/{memory_id}"
    if where == "query":
        answer = room.request("DELETE", f"{target}?reason=No%20longer&if_version=1&force=false")
    else:
        headers = {"Content-Type": "text/plain"} if where.startswith("text") else {}
        answer = room.request("DELETE", target, {"reason": "No longer", "force": False, "if_version": 1}, headers)
    assert answer.ok() == {
        "id": memory_id,
        "status": "deleted",
        "currentVersion": 1,
        "newVersion": 2,
        "success": True,
    }
    assert room.recalled("deleted in one of three ways") == []
    assert room.get("/memory/search", q="deleted").ok()["results"] == []


def test_a_delete_is_refused_with_its_status(room: Client) -> None:
    memory_id = room.remember("Deleted twice")["id"]
    pinned = room.remember("critical: pinned for good")["id"]
    gone = room.remember("Already deleted")["id"]
    room.request("DELETE", f"/api/memory/{gone}?reason=r").ok()
    robot = {"x-signet-actor-type": "pipeline"}
    for target, body, headers, status, fields in (
        (MISSING, {}, {}, 404, {"status": "not_found", "error": "Not found"}),
        (gone, {}, {}, 409, {"status": "already_deleted", "currentVersion": 2}),
        (memory_id, {"if_version": 9}, {}, 409, {"status": "version_conflict", "currentVersion": 1}),
        (
            pinned,
            {},
            {},
            409,
            {"status": "pinned_requires_force", "error": "Pinned memories require force=true"},
        ),
        (
            pinned,
            {"force": True},
            robot,
            403,
            {
                "status": "autonomous_force_denied",
                "error": "Autonomous agents cannot force-delete pinned memories",
            },
        ),
        (pinned, {"force": True}, {"x-signet-actor-type": "agent"}, 403, {"status": "autonomous_force_denied"}),
    ):
        room.request("DELETE", f"/api/memory/{target}", {"reason": "r", **body}, headers).refused(status, **fields)
    assert room.memory(memory_id)["version"] == room.memory(pinned)["version"] == 1
    forced = room.request("DELETE", f"/api/memory/{pinned}?reason=r&force=true").ok()
    assert forced["status"] == "deleted"


@pytest.mark.parametrize(
    ("target", "body", "text"),
    [
        ("", None, "reason is required"),
        ("", {}, "reason is required"),
        ("?reason=%20", None, "reason is required"),
        ("?reason=r&force=perhaps", None, "force must be a boolean"),
        ("", {"reason": "r", "force": "perhaps"}, "force must be a boolean"),
        ("?reason=r&if_version=0", None, "if_version must be a positive integer"),
        ("", b"{", "Invalid JSON body"),
        ("", b'"reason"', "Invalid JSON body"),
    ],
)
def test_an_invalid_delete_is_refused_with_a_reason(room: Client, target: str, body: Any, text: str) -> None:
    memory_id = room.remember("Deleted wrongly")["id"]
    room.request("DELETE", f"/api/memory/{memory_id}{target}", body).refused(400, error=text)
    assert room.memory(memory_id)["version"] == 1


# recover


def test_a_deleted_memory_is_recovered_and_found_again(room: Client) -> None:
    memory_id = room.remember("Restored with all its traces")["id"]
    room.request("DELETE", f"/api/memory/{memory_id}?reason=r").ok()
    answer = room.post(f"/api/memory/{memory_id}/recover", {"reason": "Accidentally deleted", "if_version": 2}).ok()
    assert answer == {
        "id": memory_id,
        "status": "recovered",
        "currentVersion": 2,
        "newVersion": 3,
        "retentionDays": 30,
    }
    assert room.memory(memory_id)["is_deleted"] == 0
    assert room.recalled("restored traces") == [memory_id]
    assert [row["id"] for row in room.get("/memory/search", q="traces").ok()["results"]] == [memory_id]


def key_of(room: Client, memory_id: str) -> Any:
    return room.memory(memory_id)["idempotency_key"]


def last_event(room: Client, memory_id: str) -> Any:
    return room.get(f"/api/memory/{memory_id}/history").ok()["history"][-1]


def test_a_recovered_memory_keeps_its_idempotency_key(room: Client) -> None:
    memory_id = room.remember("The north door has a keypad", idempotencyKey="door-1")["id"]
    room.request("DELETE", f"/api/memory/{memory_id}?reason=r").ok()
    room.post(f"/api/memory/{memory_id}/recover", {"reason": "r"}).ok()
    assert key_of(room, memory_id) == "door-1"
    again = room.remember("The north door has another keypad", idempotencyKey="door-1")
    assert (again["id"], again["deduped"]) == (memory_id, True)


def test_a_key_used_by_another_memory_stays_there_and_the_history_records_it(room: Client) -> None:
    first = room.remember("The south door has a bell", idempotencyKey="door-2")["id"]
    room.request("DELETE", f"/api/memory/{first}?reason=r").ok()
    second = room.remember("The south door has a buzzer", idempotencyKey="door-2")["id"]
    assert second != first
    room.post(f"/api/memory/{first}/recover", {"reason": "r"}).ok()
    assert (key_of(room, first), key_of(room, second)) == (None, "door-2")
    recovered = last_event(room, first)
    assert (recovered["event"], recovered["metadata"]) == ("recovered", {"idempotencyKeyHeldBy": second})


def test_a_free_key_is_restored_with_the_memory(room: Client) -> None:
    first = room.remember("The west door has a chain", idempotencyKey="door-3")["id"]
    room.request("DELETE", f"/api/memory/{first}?reason=r").ok()
    second = room.remember("The west door has a bolt", idempotencyKey="door-3")["id"]
    room.request("DELETE", f"/api/memory/{second}?reason=r").ok()
    room.post(f"/api/memory/{first}/recover", {"reason": "r"}).ok()
    assert key_of(room, first) == "door-3"
    assert last_event(room, first)["metadata"] == {"idempotencyKeyRestored": True}
    room.post(f"/api/memory/{second}/recover", {"reason": "r"}).ok()
    assert key_of(room, second) is None
    assert last_event(room, second)["metadata"] == {"idempotencyKeyHeldBy": first}


def test_a_recover_is_refused_with_its_status(room: Client) -> None:
    live = room.remember("Never deleted")["id"]
    gone = room.remember("Deleted and replaced")["id"]
    room.request("DELETE", f"/api/memory/{gone}?reason=r").ok()
    replacement = room.remember("Deleted and replaced")["id"]
    other = room.remember("Deleted at version one")["id"]
    room.request("DELETE", f"/api/memory/{other}?reason=r").ok()
    for target, body, status, fields in (
        (MISSING, {}, 404, {"status": "not_found", "error": "Not found"}),
        (live, {}, 409, {"status": "not_deleted", "error": "Memory is not deleted"}),
        (other, {"if_version": 1}, 409, {"status": "version_conflict", "currentVersion": 2}),
        (gone, {}, 409, {"status": "duplicate_content_hash", "duplicateMemoryId": replacement}),
    ):
        room.post(f"/api/memory/{target}/recover", {"reason": "r", **body}).refused(status, **fields)
    room.post(f"/api/memory/{other}/recover", {}).refused(400, error="reason is required")
    room.request("POST", f"/api/memory/{other}/recover?reason=query&if_version=2").ok()


def test_after_thirty_days_a_memory_cannot_be_recovered_and_a_sweep_purges_it() -> None:
    with live_daemon() as daemon:
        old = daemon.api.remember("Deleted long ago, an aardvark")["id"]
        fresh = daemon.api.remember("Deleted just now, an axolotl")["id"]
        for memory_id in (old, fresh):
            daemon.api.request("DELETE", f"/api/memory/{memory_id}?reason=r").ok()
        assert daemon.stop() == 0
        daemon.edit(
            "UPDATE memories SET deleted_at = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-31 days') WHERE id = ?", old
        )
        daemon.edit("UPDATE request_replies SET created_ms = 0")
        daemon.start()
        daemon.api.post(f"/api/memory/{old}/recover", {"reason": "r"}).refused(
            409, status="retention_expired", error="Recover window expired (30 days)"
        )
        swept = daemon.api.post("/api/repair/retention-sweep").ok()
        assert (swept["action"], swept["success"]) == ("retention_sweep", True)
        assert isinstance(swept["message"], str)
        assert swept["affected"] >= 1
        daemon.api.get(f"/api/memory/{old}", include_deleted="true").refused(404)
        assert daemon.api.post(f"/api/memory/{fresh}/recover", {"reason": "r"}).ok()["status"] == "recovered"
        assert daemon.stop() == 0
        assert daemon.broken_invariants() == []
        assert b"aardvark" not in daemon.database.read_bytes()


# jobs and notes


def test_a_job_is_shown_to_agents_that_may_read_its_memory(room: Client, daemon: LiveDaemon) -> None:
    memory_id = room.remember("To be extracted one day")["id"]
    ((job_id,),) = daemon.read("SELECT id FROM memory_jobs WHERE memory_id = ?", memory_id)
    job = room.get(f"/api/memory/jobs/{job_id}").ok()
    expected = {
        "id": job_id,
        "memory_id": memory_id,
        "document_id": None,
        "job_type": "extract",
        "status": "pending",
        "attempt_count": 0,
        "attempts": 0,
        "max_attempts": 3,
        "next_attempt_at": None,
        "last_error": None,
        "last_error_code": None,
        "error": None,
        "leased_at": None,
        "completed_at": None,
        "failed_at": None,
    }
    assert {name: job[name] for name in expected} == expected
    daemon.agent("lone").get(f"/api/memory/jobs/{job_id}").refused(404, error="Job not found")
    room.get(f"/api/memory/jobs/{MISSING}").refused(404, error="Job not found")


def test_a_note_for_codex_is_written_below_its_home(daemon: LiveDaemon) -> None:
    answer = daemon.api.post(
        "/api/memory/codex-native-note",
        {"content": "Small scoped note to preserve", "title": "../../../Optional title", "tags": "codex,note"},
    ).ok()
    assert answer["ok"] is True
    notes = daemon.root / "codex" / "memories" / "extensions" / "ad_hoc" / "notes"
    (note,) = notes.iterdir()
    assert answer["path"] == str(note)
    assert note.stat().st_mode & 0o777 == 0o600
    text = note.read_text()
    assert "Small scoped note to preserve" in text
    assert "codex, note" in text
    for body, field in (
        ({}, "content"),
        ({"content": "  "}, "content"),
        ({"content": "x" * 8001}, "content"),
        ({"content": 5}, "content"),
        ({"content": "x", "title": 5}, "title"),
        ({"content": "x", "tags": 5}, "tags"),
    ):
        daemon.api.post("/api/memory/codex-native-note", body).refused(400, field=field)
    assert list(notes.iterdir()) == [note]
    body = {"content": "Written once"}
    first, again = (
        daemon.api.post("/api/memory/codex-native-note", body, Idempotency_Key="note").ok() for _ in range(2)
    )
    assert first == again
    assert len(list(notes.iterdir())) == 2
    other = daemon.api.post("/api/memory/codex-native-note", {"content": "Another"}, Idempotency_Key="note")
    other.refused(409, code="idempotency_conflict")


def test_the_memories_that_recalls_return_most_often_come_first(room: Client) -> None:
    often = room.remember("The violin stands in the cellar")["id"]
    once = room.remember("The bicycle has a flat tyre")["id"]
    never = room.remember("Quarterly forms are due in April")["id"]
    for _ in range(3):
        room.recall("violin", limit=1)
    room.recall("bicycle", limit=1)

    def counts() -> list[tuple[str, int]]:
        listed = room.get("/api/memories/most-used").ok()["memories"]
        return [(memory["id"], memory["access_count"]) for memory in listed]

    eventually(lambda: [count for _, count in counts()] == [3, 1, 0], what="the accesses are counted")
    assert [memory_id for memory_id, _ in counts()] == [often, once, never]
    only = room.get("/api/memories/most-used", limit=1).ok()["memories"]
    assert [memory["content"] for memory in only] == ["The violin stands in the cellar"]
    assert only[0].keys() - {"access_count"} == room.get("/api/memories").ok()["memories"][0].keys()
