"""Texts as people and programs write them: what counts as a prefix, and which texts say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.live_daemon import Client

pytestmark = pytest.mark.system

LOG_LINES = (
    "[ERROR]: connection refused by upstream",
    "[warn]: the disk is almost full",
    "[1]: https://example.org/spec",
    "[docs]: https://example.org/docs",
    "[2024-05-01 10:00:00]: Server started",
    "CRITICAL: database down at 03:12, recovered by itself",
)


def hook_remember(client: Client, content: str) -> Any:
    return client.post("/api/hooks/remember", {"harness": "t", "content": content}).ok()


def over_mcp(client: Client, content: str, **arguments: Any) -> Any:
    """Store a memory as a model does, and return the reply."""
    call = {"name": "memory_store", "arguments": {"content": content, **arguments}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    return json.loads(client.request("POST", "/mcp", message, headers).ok()["result"]["content"][0]["text"])


@pytest.mark.parametrize("content", LOG_LINES)
def test_a_log_line_and_a_link_of_markdown_are_stored_as_they_are(room: Client, content: str) -> None:
    for stored in (room.remember(content), hook_remember(room, content)):
        kept = room.memory(stored["id"])
        assert (kept["content"], kept["pinned"], kept["tags"]) == (content, 0, None)


def test_prefixes_count_in_a_remember_and_in_that_of_a_hook_and_not_over_mcp(room: Client) -> None:
    for store in (room.remember, lambda text: hook_remember(room, text)):
        stored = store("critical: [auth,Login-v2]: never log access tokens")
        assert (stored["content"], stored["pinned"], stored["tags"]) == (
            "never log access tokens",
            True,
            "auth,login-v2",
        )
    text = "critical: [auth]: tokens live for an hour"
    stored = over_mcp(room, text, tags=["jwt"])
    assert (stored["content"], stored["pinned"], stored["tags"]) == (text, False, "jwt")
    plain = room.remember("[auth]: keys rotate daily", prefixes=False)
    assert (plain["content"], plain["tags"]) == ("[auth]: keys rotate daily", None)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Latency must be < 50 ms", "Latency must be > 50 ms"),
        ("The offset of the clock is -5", "The offset of the clock is 5"),
        ("The parser is written in C++", "The parser is written in C"),
        ("The discount is 5%", "The discount is 5"),
        ("Pin the client to ^1.2.3", "Pin the client to ~1.2.3"),
        ("Lint all of **/*.ts", "Lint all of *.ts"),
        ("Team a owns the pager", "Team owns the pager"),
        ("Is the cache on", "The cache is on"),
    ],
)
def test_a_hook_stores_what_differs_in_one_sign(room: Client, first: str, second: str) -> None:
    assert len({hook_remember(room, first)["id"], hook_remember(room, second)["id"]}) == 2


def test_a_hook_stores_a_statement_once_however_it_is_punctuated(room: Client) -> None:
    first = hook_remember(room, "The staging database of the shop listens on port 5433.")
    for again in (
        "the staging database of our shop, listens on port 5433!",
        "“The staging database of the shop listens on port 5433”",
        "Please note: the staging\u200b database of the shop\nlistens on port 5433",
    ):
        stored = hook_remember(room, again)
        assert (stored["id"], stored["deduped"]) == (first["id"], True)
