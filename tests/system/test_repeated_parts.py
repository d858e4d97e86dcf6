"""A long text of a hook or of an import is never lost because a part of it, or all of it, is stored already.

Source: docs/operations.md "Long texts"; memory-api.txt "POST /api/hooks/compaction-complete".
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable

import pytest

from tests.support.live_daemon import Client

pytestmark = pytest.mark.system

REMEMBER = "/api/memory/remember"
Store = Callable[[Client, str], str]


def paragraph(topic: str) -> str:
    """Return a text that is one chunk, whatever stands before and after it."""
    return " ".join(
        (
            f"The {topic} was moved to the new rack in the cellar on Friday.",
            f"Before that the {topic} had stood in the corridor for years.",
            f"Everybody who needs the {topic} has to ask Noor for the key now.",
            f"She wrote down what to do if the {topic} should stop at night.",
            "Nobody was there when it did.",
        )
    )


PRINTER, FAX, MAIL, SWITCH, CAMERA = map(paragraph, ("printer", "fax", "mail relay", "switch", "door camera"))
SMALL = "One thing is new: the lift works again, and the stairs at the back are closed until the end of the month."
CYRILLIC = "Сервер перенесли в подвал, и ключ теперь взяла Нурия. " * 5 + "Ночью он остановился."
CHINESE = "打印机已经搬到地下室的新机架上。以前它在走廊里放了很多年。" * 9 + "现在钥匙在努尔那里。"
CODE = "\n".join(f"    def step_{number}(self) -> int:\n        return self.rack[{number}] + 1" for number in range(5))
TABLE = "| host | state |\n|---|---|\n" + "\n".join(f"| rack-{number} | up since Friday |" for number in range(10))
BULLETS = "\n".join(f"- Cable {number} goes to port {number + 20} of the switch in the cellar" for number in range(6))


def joined(*paragraphs: str) -> str:
    return "\n\n".join(paragraphs)


CASES: dict[str, tuple[str, str]] = {
    "the first paragraph": (joined(PRINTER, FAX), joined(PRINTER, MAIL)),
    "the last paragraph": (joined(PRINTER, FAX), joined(MAIL, FAX)),
    "a paragraph in the middle": (joined(PRINTER, FAX, MAIL), joined(SWITCH, FAX, CAMERA)),
    "the first as the last": (joined(PRINTER, FAX), joined(MAIL, PRINTER)),
    "the last as the first": (joined(PRINTER, FAX), joined(FAX, MAIL)),
    "two in another order": (joined(PRINTER, FAX), joined(FAX, PRINTER)),
    "all but one": (joined(PRINTER, FAX, MAIL, SWITCH), joined(PRINTER, FAX, MAIL, CAMERA)),
    "two of three apart": (joined(PRINTER, FAX, MAIL), joined(PRINTER, SWITCH, MAIL)),
    "all, and something after it": (joined(PRINTER, FAX, MAIL), joined(PRINTER, FAX, MAIL, SMALL)),
    "all, and something before it": (joined(PRINTER, FAX, MAIL), joined(SWITCH, PRINTER, FAX, MAIL)),
    "the beginning": (joined(PRINTER, FAX, MAIL, SWITCH), joined(PRINTER, FAX)),
    "the end": (joined(PRINTER, FAX, MAIL, SWITCH), joined(MAIL, SWITCH)),
    "all of it twice": (joined(PRINTER, FAX), joined(PRINTER, FAX, PRINTER, FAX)),
    "a paragraph in capitals": (joined(PRINTER, FAX), joined(PRINTER.replace("Nobody", "NOBODY"), MAIL)),
    "a paragraph with other white space": (joined(PRINTER, FAX), joined(PRINTER.replace(". ", ".  "), MAIL)),
    "a short memory": (PRINTER, joined(PRINTER, FAX)),
    "a short memory at the end": (FAX, joined(PRINTER, FAX)),
    "a Russian paragraph": (joined(CYRILLIC, FAX), joined(CYRILLIC, MAIL)),
    "a Chinese paragraph": (joined(FAX, CHINESE), joined(MAIL, CHINESE)),
    "code": (joined(FAX, CODE), joined(MAIL, CODE)),
    "a table": (joined(FAX, TABLE), joined(MAIL, TABLE)),
    "a list": (joined(FAX, BULLETS), joined(MAIL, BULLETS)),
}
TWINS: dict[str, tuple[str, str]] = {
    "the same text": (joined(PRINTER, FAX, MAIL), joined(PRINTER, FAX, MAIL)),
    "the same text in other lines": (joined(PRINTER, FAX), f"{PRINTER} {FAX}"),
    "the same text without its final stop": (joined(PRINTER, FAX), joined(PRINTER, FAX).removesuffix(".")),
}


def compacted(room: Client, text: str) -> str:
    """Report the summary of a compaction, as the program of the hooks does; return the id of what is stored."""
    key = uuid.uuid4().hex
    body = {"harness": "claude-code", "sessionKey": key, "summary": text, "idempotencyKey": f"hook-{key}"}
    told = room.post("/api/hooks/compaction-complete", body).ok()
    assert told["success"] is True, told
    assert room.post("/api/hooks/compaction-complete", body).ok()["memoryId"] == told["memoryId"]
    return str(told["memoryId"])


def kept(room: Client, text: str) -> str:
    """Store a text that the agent wants to keep; return the id of what is stored."""
    key = uuid.uuid4().hex
    body = {"harness": "claude-code", "sessionKey": key, "content": text, "idempotencyKey": f"hook-{key}"}
    told = room.post("/api/hooks/remember", body).ok()
    assert told["saved"] is True, told
    return str(told["id"])


def imported(room: Client, text: str) -> str:
    """Import a line without an id; return the id of what holds its text."""
    line = {"content": text, "agentId": room.headers["x-signet-agent-id"]}
    assert room.request("POST", "/api/memory/import", json.dumps(line).encode()).ok()["refused"] == []
    holders = {room.memory(row["id"])["source_id"] or row["id"] for row in room.listed()}
    (stored,) = [holder for holder in holders if are_same(text_of(room, holder).rstrip("."), text.rstrip("."))]
    return str(stored)


HOOKS = pytest.mark.parametrize("store", [compacted, kept, imported])


def text_of(room: Client, stored: str) -> str:
    """Return the text of a memory, or that of the chunks of a group."""
    for row in room.listed():
        if row["id"] == stored:
            return str(row["content"])
        if room.memory(row["id"])["source_id"] == stored:
            parts = room.get(f"/api/memory/{row['id']}?withParts=true").ok()["parts"]
            return "\n".join(part["content"] for part in parts)
    raise AssertionError(f"{stored} is not stored")


def are_same(one: str, other: str) -> bool:
    return one.casefold().split() == other.casefold().split()


@HOOKS
def test_a_long_text_of_a_hook_that_shares_parts_with_a_stored_one_is_stored_whole(
    empty_rooms: Callable[[], Client], store: Store
) -> None:
    for name, (first, second) in CASES.items():
        room = empty_rooms()
        earlier = store(room, first)
        later = store(room, second)
        assert later != earlier, name
        assert are_same(text_of(room, earlier), first), name
        assert are_same(text_of(room, later), second), name
        hashes = [row["content"].casefold() for row in room.listed()]
        assert len(set(hashes)) == len(hashes), name
        assert store(room, second) == later, f"{name}: it is known when it comes again"


@HOOKS
def test_a_long_text_of_a_hook_that_shares_parts_with_a_remembered_one_is_stored_whole(
    empty_rooms: Callable[[], Client], store: Store
) -> None:
    for name, (first, second) in CASES.items():
        room = empty_rooms()
        room.post(REMEMBER, {"content": first}).ok()
        assert are_same(text_of(room, store(room, second)), second), name


@HOOKS
def test_a_long_text_of_a_hook_that_is_stored_already_is_that_one(
    empty_rooms: Callable[[], Client], store: Store
) -> None:
    for name, (first, second) in TWINS.items():
        room = empty_rooms()
        earlier = store(room, first)
        count = len(room.listed())
        assert store(room, second) == earlier, name
        assert len(room.listed()) == count, name


@HOOKS
def test_many_reports_that_grow_are_all_stored_whole(room: Client, store: Store) -> None:
    paragraphs = [paragraph(f"machine {chr(ord('a') + number) * 3}") for number in range(8)]
    for count in range(2, 9):
        text = joined(*paragraphs[:count], SMALL)
        assert are_same(text_of(room, store(room, text)), text), count


def test_a_remembered_long_text_that_shares_a_part_is_a_conflict_and_leaves_nothing(room: Client) -> None:
    first = room.post(REMEMBER, {"content": joined(PRINTER, FAX)}).ok()
    for key in ({}, {"idempotencyKey": "k"}):
        refused = room.post(REMEMBER, {"content": joined(PRINTER, MAIL), **key}).refused(409)
        assert refused["error"] == "chunk content already exists"
    assert {row["id"] for row in room.listed()} == set(first["ids"])


def test_a_key_of_another_long_text_is_a_conflict_for_a_hook_too(room: Client) -> None:
    body = {"harness": "claude-code", "content": joined(PRINTER, FAX), "idempotencyKey": "mine"}
    assert room.post("/api/hooks/remember", body).ok()["saved"] is True
    told = room.post("/api/hooks/remember", {**body, "content": joined(PRINTER, MAIL)}).ok()
    assert (told["skipped"], told["reason"]) == (True, "conflict")


def test_a_report_that_repeats_a_partly_forgotten_one_is_stored_whole(room: Client) -> None:
    text = joined(PRINTER, FAX, MAIL)
    first = kept(room, text)
    part = next(row["id"] for row in room.listed() if room.memory(row["id"])["source_id"] == first)
    room.request("DELETE", f"/api/memory/{part}", {"reason": "r"}).ok()
    again = kept(room, text)
    assert again != first
    assert are_same(text_of(room, again), text)


def test_what_is_new_in_a_report_that_repeats_another_is_recalled(room: Client) -> None:
    compacted(room, joined(PRINTER, FAX, MAIL))
    compacted(room, joined(PRINTER, FAX, MAIL, SMALL))
    assert any(
        "the lift works again" in room.memory(found)["content"] for found in room.recalled("does the lift work again?")
    )
