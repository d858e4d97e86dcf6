"""Pinning sets importance 1.0 by every way in, unless the request gives an importance; against a live daemon."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner

from signet_actors.cli.main import cli
from tests.support.live_daemon import Client, LiveDaemon

pytestmark = pytest.mark.system


def stored(room: Client, memory_id: str) -> tuple[int, float]:
    memory = room.memory(memory_id)
    return memory["pinned"], memory["importance"]


@pytest.mark.parametrize(
    ("content", "fields", "expected"),
    [
        ("critical: rotate the signing keys", {}, (1, 1.0)),
        ("the deploy key lives in the safe", {"pinned": True}, (1, 1.0)),
        ("the pager number never changes", {"pinned": True, "importance": 0.4}, (1, 0.4)),
        ("critical: the vault has two doors", {"importance": 0.4}, (1, 0.4)),
        ("the build needs a clean cache", {"pinned": False}, (0, 0.8)),
    ],
)
def test_a_remember_that_pins_stores_full_importance_unless_it_names_one(
    room: Client, content: str, fields: dict[str, Any], expected: tuple[int, float]
) -> None:
    answer = room.remember(content, **fields)
    assert (int(answer["pinned"]), answer["importance"]) == expected
    assert stored(room, answer["id"]) == expected


def test_a_patch_that_pins_stores_full_importance_unless_it_names_one(room: Client) -> None:
    plain = room.remember("The staging cluster sleeps at night", importance=0.3)["id"]
    named = room.remember("The printer is on the third floor", importance=0.3)["id"]
    room.request("PATCH", f"/api/memory/{plain}", {"pinned": True, "reason": "r"}).ok()
    room.request("PATCH", f"/api/memory/{named}", {"pinned": True, "importance": 0.5, "reason": "r"}).ok()
    assert stored(room, plain) == (1, 1.0)
    assert stored(room, named) == (1, 0.5)
    room.request("PATCH", f"/api/memory/{plain}", {"pinned": False, "reason": "r"}).ok()
    assert stored(room, plain) == (0, 1.0), "unpinning changes no importance"


def test_a_batch_that_pins_stores_full_importance_unless_the_patch_names_one(room: Client) -> None:
    ids = [room.remember(f"Batch item number {number} waits", importance=0.2)["id"] for number in range(2)]
    patches = [{"id": ids[0], "pinned": True}, {"id": ids[1], "pinned": True, "importance": 0.6}]
    room.post("/api/memory/modify", {"reason": "r", "patches": patches}).ok()
    assert [stored(room, memory_id) for memory_id in ids] == [(1, 1.0), (1, 0.6)]


def test_an_imported_line_that_pins_stores_full_importance_unless_it_names_one(room: Client) -> None:
    lines = [
        {
            "content": "Imported: the router hangs on the wall",
            "pinned": True,
            "agentId": room.headers["x-signet-agent-id"],
        },
        {
            "content": "Imported: the switch is in the cellar",
            "pinned": True,
            "importance": 0.7,
            "agentId": room.headers["x-signet-agent-id"],
        },
    ]
    raw = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    assert room.request("POST", "/api/memory/import", raw).ok()["imported"] == 2
    by_content = {memory["content"]: (memory["pinned"], memory["importance"]) for memory in room.listed()}
    assert [by_content[line["content"]] for line in lines] == [(1, 1.0), (1, 0.7)]


def test_the_command_line_pins_with_full_importance_unless_it_names_one(daemon: LiveDaemon, room: Client) -> None:
    def signet(*arguments: str) -> str:
        agent = room.headers["x-signet-agent-id"]
        result = CliRunner().invoke(cli, ["--url", f"http://127.0.0.1:{daemon.port}", *arguments, "--agent", agent])
        assert result.exit_code == 0, result.output
        return result.stdout.strip()

    pinned = signet("remember", "The lift stops between floors", "--pinned")
    assert stored(room, pinned) == (1, 1.0)
    edited = signet("remember", "The stairs are on the left", "--importance", "0.3")
    signet("edit", edited, "--pin")
    assert stored(room, edited) == (1, 1.0)
    signet("edit", edited, "--unpin")
    signet("edit", edited, "--pin", "--importance", "0.4")
    assert stored(room, edited) == (1, 0.4)
