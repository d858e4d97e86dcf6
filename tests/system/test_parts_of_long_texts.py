"""What is said of a long text when one of its parts is forgotten, edited or recalled, and how the whole is forgotten.

Source: docs/operations.md "Long texts"; docs/cli.md "Memories".
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.live_daemon import Client, live_daemon, signet
from tests.system.test_long_texts import long_text

pytestmark = pytest.mark.system


def stored(room: Client, topic: str = "mail") -> list[str]:
    parts: list[str] = room.post("/api/memory/remember", {"content": long_text(topic, 14)}).ok()["ids"]
    assert len(parts) > 2
    return parts


def delete(room: Client, memory: str, **fields: Any) -> Any:
    return room.request("DELETE", f"/api/memory/{memory}", {"reason": "wrong", **fields}).ok()


def live(room: Client) -> set[str]:
    return {row["id"] for row in room.listed()}


def tool(room: Client, name: str, **arguments: Any) -> Any:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    done = room.post("/mcp", call, **headers).ok()
    return json.loads(done["result"]["content"][0]["text"])


def test_the_answers_of_a_forget_and_an_edit_name_the_other_live_parts(room: Client) -> None:
    parts = stored(room)
    edited = room.request("PATCH", f"/api/memory/{parts[0]}", {"content": "New words", "reason": "r"}).ok()
    assert edited["otherParts"] == parts[1:]
    assert "otherParts" not in room.request("PATCH", f"/api/memory/{parts[0]}", {"pinned": False, "reason": "r"}).ok()
    preview = room.post("/api/memory/forget", {"ids": parts[:2]}).ok()
    assert preview["otherParts"] == parts[2:]
    assert delete(room, parts[0])["otherParts"] == parts[1:]
    assert room.forget(ids=[parts[1]])["otherParts"] == parts[2:]
    assert "otherParts" not in room.forget(ids=parts[2:])


def test_a_short_memory_has_no_other_parts(room: Client) -> None:
    stored(room)
    for fields in ({}, {"sourceType": "file", "sourceId": "notes.md"}):
        memory = room.remember(f"The harbour opens at nine {len(fields)}", **fields)["id"]
        assert "otherParts" not in room.post("/api/memory/forget", {"ids": [memory]}).ok()
        done = delete(room, memory, whole=True)
        assert {"otherParts", "forgottenWith"}.isdisjoint(done)


@pytest.mark.parametrize("at", [0, 1, -1])
def test_a_whole_text_is_forgotten_and_recovered_by_any_of_its_parts(room: Client, at: int) -> None:
    parts, others = stored(room), set(stored(room, "fax"))
    one = parts[at]
    done = delete(room, one, whole=True)
    assert sorted(done["forgottenWith"]) == sorted(set(parts) - {one})
    assert "otherParts" not in done
    assert set(done.get("saidBy", ())) <= others, "what is gone does not say it"
    assert live(room) == others
    again = room.post(f"/api/memory/{one}/recover", {"reason": "r", "whole": True}).ok()
    assert sorted(again["recoveredWith"]) == sorted(set(parts) - {one})
    assert live(room) == others | set(parts)


def test_a_pinned_part_stays_and_is_named_unless_forced(room: Client) -> None:
    parts = stored(room)
    room.request("PATCH", f"/api/memory/{parts[1]}", {"pinned": True, "reason": "r"}).ok()
    done = delete(room, parts[0], whole=True)
    assert (done["otherParts"], live(room)) == ([parts[1]], {parts[1]})
    delete(room, parts[1], whole=True, force=True)
    assert live(room) == set()


def test_parts_that_another_agent_may_not_read_are_neither_named_nor_forgotten() -> None:
    agents = "agents:\n  roster:\n    - {name: ada, read_policy: isolated}\n    - {name: bob, read_policy: isolated}\n"
    with live_daemon(config=agents) as daemon:
        ada, bob = daemon.agent("ada"), daemon.agent("bob")
        parts = stored(ada)
        bob.request("DELETE", f"/api/memory/{parts[0]}", {"reason": "r", "whole": True}).refused(404)
        assert "otherParts" not in bob.post("/api/memory/forget", {"ids": parts[:1]}).ok()
        assert live(ada) == set(parts)


def test_the_tools_of_models_say_what_is_a_part_and_forget_the_whole(room: Client) -> None:
    parts = stored(room)
    found = tool(room, "memory_search", query="mail rollout stage number 3")["results"]
    assert found
    assert {row["source_type"] for row in found} == {"chunk"}
    edited = tool(room, "memory_modify", id=parts[0], content="New words", reason="r")
    assert edited["otherParts"] == parts[1:]
    assert tool(room, "memory_forget", id=parts[0], reason="r")["otherParts"] == parts[1:]
    done = tool(room, "memory_forget", id=parts[1], reason="r", whole=True)
    assert sorted(done["forgottenWith"]) == sorted(parts[2:])
    assert live(room) == set()


def test_the_command_line_forgets_and_recovers_a_whole_text() -> None:
    with live_daemon() as daemon:
        api = daemon.api
        parts = stored(api)
        told = signet(daemon, "forget", parts[0], "--yes", "--json")
        assert json.loads(told)["otherParts"] == parts[1:]
        signet(daemon, "forget", parts[1], "--whole", "--yes")
        assert live(api) == set()
        signet(daemon, "recover", parts[0], "--whole")
        assert live(api) == set(parts)
        shown = signet(daemon, "forget", parts[0], "--whole", "--preview")
        assert all(part in shown for part in parts)
        assert live(api) == set(parts)
        signet(daemon, "forget", parts[0], "--whole", "--permanently", "--yes")
        assert live(api) == set()
        signet(daemon, "recover", parts[0], exit_code=1)
