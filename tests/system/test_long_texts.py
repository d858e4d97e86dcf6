"""A long text is one import: its source is kept, it is recognised when it comes again, and one chunk is no group."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from tests.support.live_daemon import Client

pytestmark = pytest.mark.system

REMEMBER = "/api/memory/remember"


def long_text(topic: str, sentences: int = 12) -> str:
    return " ".join(
        f"The {topic} rollout reached stage number {number} without trouble." for number in range(sentences)
    )


def remembered(room: Client, content: str, **fields: Any) -> Any:
    return room.post(REMEMBER, {"content": content, **fields}).ok()


def test_the_same_long_text_again_returns_the_existing_group(room: Client) -> None:
    first = remembered(room, long_text("mail"))
    for twin in (long_text("mail"), long_text("mail").replace(". ", ".\n\n  "), long_text("MAIL").rstrip(".")):
        assert remembered(room, twin) == {**first, "deduped": True}
    assert len(room.listed()) == first["chunk_count"] > 1


def test_a_keyed_long_text_again_without_a_key_returns_the_existing_group(room: Client) -> None:
    first = remembered(room, long_text("mail"), idempotencyKey="k")
    assert remembered(room, long_text("mail")) == {**first, "deduped": True}
    assert remembered(room, long_text("mail"), idempotencyKey="k") == {**first, "deduped": True}


@pytest.mark.parametrize("former", [{}, {"idempotencyKey": "former"}], ids=["no key", "a key"])
def test_the_same_long_text_under_another_key_is_a_conflict(room: Client, former: dict[str, str]) -> None:
    first = remembered(room, long_text("mail"), **former)
    refused = room.post(REMEMBER, {"content": long_text("mail"), "idempotencyKey": "other"}).refused(409)
    assert (refused["error"], refused["code"]) == ("chunk content already exists", "conflict")
    assert {row["id"] for row in room.listed()} == set(first["ids"])


def test_the_same_source_again_returns_the_existing_group(room: Client) -> None:
    source = {"sourceType": "file", "sourceId": "notes.md"}
    first = remembered(room, long_text("mail"), **source)
    for content in (long_text("mail"), long_text("fax"), "now a short text"):
        assert remembered(room, content, **source) == {**first, "deduped": True}
    assert remembered(room, long_text("fax"), **source, idempotencyKey="k") == {**first, "deduped": True}
    assert len(room.listed()) == first["chunk_count"]
    assert "deduped" not in remembered(room, long_text("fax"), sourceType="file", sourceId="other.md")


def test_a_source_stored_as_a_short_text_returns_the_existing_memory(room: Client) -> None:
    short = room.remember("a short text", sourceId="notes.md")
    again = remembered(room, long_text("mail"), sourceId="notes.md")
    assert again == {**short, "deduped": True}


def test_the_source_of_a_session_does_not_deduplicate_long_texts(room: Client) -> None:
    session = {"sourceId": "session-1", "transcript": "…"}
    remembered(room, long_text("mail"), **session)
    assert "deduped" not in remembered(room, long_text("fax"), **session)


def test_the_history_of_each_chunk_contains_the_callers_source(room: Client) -> None:
    stored = remembered(room, long_text("mail"), sourceType="file", sourceId="notes.md")
    for index, chunk in enumerate(stored["ids"]):
        (created,) = room.get(f"/api/memory/{chunk}/history").ok()["history"]
        assert created["metadata"] == {
            "groupId": stored["group_id"],
            "chunk": index,
            "chunks": stored["chunk_count"],
            "sourceType": "file",
            "sourceId": "notes.md",
        }


@pytest.mark.parametrize("other", [{"project": "p"}, {"scope": "s"}, {"visibility": "private"}])
def test_a_long_text_in_another_scope_is_another_one(room: Client, other: dict[str, str]) -> None:
    first = remembered(room, long_text("mail"), sourceId="notes.md")
    again = remembered(room, long_text("mail"), sourceId="notes.md", **other)
    assert not set(first["ids"]) & set(again["ids"])
    assert remembered(room, long_text("mail"), sourceId="notes.md", **other) == {**again, "deduped": True}


def test_a_long_text_with_a_forgotten_chunk_does_not_count_as_stored(room: Client) -> None:
    first = remembered(room, long_text("mail"))
    room.request("DELETE", f"/api/memory/{first['ids'][0]}", {"reason": "r"}).ok()
    refused = room.post(REMEMBER, {"content": long_text("mail")}).refused(409)
    assert refused["error"] == "chunk content already exists"
    room.post(f"/api/memory/{first['ids'][0]}/recover", {"reason": "r"}).ok()
    assert remembered(room, long_text("mail")) == {**first, "deduped": True}


def test_a_long_text_that_was_forgotten_is_stored_again(room: Client) -> None:
    first = remembered(room, long_text("mail"), sourceId="notes.md")
    room.forget(ids=first["ids"])
    again = remembered(room, long_text("mail"), sourceId="notes.md")
    assert "deduped" not in again
    assert not set(again["ids"]) & set(first["ids"])


@pytest.mark.parametrize("size", [501, 600])
def test_a_text_that_would_be_a_single_chunk_is_one_memory(room: Client, size: int) -> None:
    text = ("lorem " * 200)[: size - 1] + "."
    answer = room.remember(text, sourceType="file", sourceId="n")
    assert (answer["content"], answer["deduped"]) == (text, False)
    memory = room.memory(answer["id"])
    assert (memory["source_type"], memory["source_id"]) == ("file", "n")


def test_an_imported_long_line_is_recognised_by_its_source(room: Client) -> None:
    first = remembered(room, long_text("mail"), sourceId="notes.md")
    line = {"content": long_text("fax"), "sourceId": "notes.md", "agentId": room.headers["x-signet-agent-id"]}
    told = room.post("/api/memory/import", line).ok()
    assert (told["imported"], told["deduped"], told["refused"]) == (0, 1, [])
    short = room.post("/api/memory/import", {**line, "content": "short"}).ok()
    assert (short["imported"], short["deduped"]) == (0, 1)
    assert len(room.listed()) == first["chunk_count"]


def test_a_long_text_that_differs_in_white_space_within_a_word_is_another_one(room: Client) -> None:
    """``rm -rf /srv/build /old`` is not ``rm -rf /srv/build/old``."""
    first = remembered(room, long_text("mail") + " To clean up run rm -rf /srv/build /old at once, says Noor.")
    refused = room.post(
        REMEMBER, {"content": long_text("mail") + " To clean up run rm -rf /srv/build/old at once, says Noor."}
    ).refused(409)
    assert refused["error"] == "chunk content already exists"
    keyed = {"idempotencyKey": "doc-1"}
    other = remembered(room, long_text("fax") + " To clean up run rm -rf /srv/build /old now, says Noor.", **keyed)
    refused = room.post(
        REMEMBER, {"content": long_text("fax") + " To clean up run rm -rf /srv/build/old now, says Noor.", **keyed}
    ).refused(409)
    assert "different chunked content" in refused["error"]
    assert {row["id"] for row in room.listed()} == {*first["ids"], *other["ids"]}


@pytest.mark.parametrize(
    "text",
    [
        "The nightly job failed, and nobody noticed it until noon.\n\n" * 40 + "It was mended then.",
        "| host | state |\n|---|---|\n" + "| web | up |\n| WEB | Up. |\n" * 60,
        "12:00:01 disk is full\n12:00:01 DISK IS FULL!\n" * 40 + "12:00:02 rebooted",
    ],
    ids=["paragraphs", "table", "log"],
)
def test_every_word_of_a_repetitive_text_is_stored(room: Client, text: str) -> None:
    stored = remembered(room, text)
    chunks = [room.get(f"/api/memory/{chunk}").ok()["content"] for chunk in stored["ids"]]
    assert "\n".join(chunks).split() == text.split()
    assert remembered(room, text) == {**stored, "deduped": True}


def test_the_parts_of_a_long_text_are_returned_in_its_order(room: Client) -> None:
    text = long_text("mail")
    stored = remembered(room, text)
    for chunk in stored["ids"]:
        found = room.get(f"/api/memory/{chunk}?withParts=true").ok()
        assert [part["id"] for part in found["parts"]] == stored["ids"]
        assert " ".join(part["content"] for part in found["parts"]) == text
        assert "parts" not in room.get(f"/api/memory/{chunk}").ok()


def test_the_parts_of_a_long_text_are_those_that_are_live(room: Client) -> None:
    first, *others = remembered(room, long_text("fax"))["ids"]
    room.request("DELETE", f"/api/memory/{first}", {"reason": "r"}).ok()
    found = room.get(f"/api/memory/{others[0]}?withParts=true").ok()
    assert [part["id"] for part in found["parts"]] == others


def test_the_parts_of_a_private_long_text_are_returned_to_their_agent_only(room: Client) -> None:
    stored = remembered(room, long_text("mail"), visibility="private", scope="s")
    chunk = stored["ids"][1]
    assert len(room.get(f"/api/memory/{chunk}?withParts=true").ok()["parts"]) == stored["chunk_count"]
    assert room.get(f"/api/memory/{chunk}?withParts=true&agentId=another").status == 404


def test_a_memory_that_is_no_part_of_a_long_text_has_no_parts(room: Client) -> None:
    memory = room.remember("a short text")
    assert "parts" not in room.get(f"/api/memory/{memory['id']}?withParts=true").ok()


@pytest.mark.parametrize("unit", ["\u00e91 ", "ab"])
def test_rows_of_half_a_megabyte_hold_up_neither_a_recall_nor_a_start(room: Client, unit: str) -> None:
    for number in range(6):
        text = f"zorkmid treasury note {number} " + unit * (500_000 // len(unit.encode()))
        row = json.dumps({"id": str(uuid.uuid4()), "content": text})
        assert room.request("POST", "/api/memory/import", row.encode()).ok()["imported"] == 1
    short = room.remember("The zorkmid treasury opens at nine", type="decision")["id"]
    assert short in {
        row["id"] for row in room.post("/api/memory/recall", {"query": "zorkmid treasury"}).ok()["results"]
    }
    prompt = {"harness": "x", "sessionKey": unit, "userMessage": "When does the zorkmid treasury open?"}
    assert "opens at nine" in room.post("/api/hooks/user-prompt-submit", prompt).ok()["inject"]
    start = room.post("/api/hooks/session-start", {"harness": "x", "sessionKey": f"{unit}2"}).ok()
    assert "opens at nine" in start["inject"]
    assert all(len(memory["content"]) <= 8_000 for memory in start["memories"])
