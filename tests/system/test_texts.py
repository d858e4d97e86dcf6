"""Texts as people and programs write them: what counts as a prefix, and which texts say the same."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.support.live_daemon import Client

pytestmark = pytest.mark.system

STARTS = itertools.count()
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
    """Store a memory as a model does, and return it."""
    call = {"name": "memory_store", "arguments": {"content": content, **arguments}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    stored = json.loads(client.request("POST", "/mcp", message, headers).ok()["result"]["content"][0]["text"])
    return client.memory(stored["id"])


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
    assert (stored["content"], stored["pinned"], stored["tags"]) == (text, 0, "jwt")
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


@pytest.mark.parametrize(
    ("first", "second", "count"),
    [
        ("Ship on Friday", "Ship on Friday?", 2),
        ("Ship on Friday?", "Ship on Friday?!", 1),
        ("Ship on Friday.", "ship on  friday", 1),
        ("Look in /A/b", "Look in /a/B", 2),
        ("The caf\u00e9 is open", "The cafe\u0301 is open", 1),
        ("The caf\u00e9 is open", "The cafe is open", 2),
        ("The cache is on", "The ca\u200bche is on", 1),
        ("Port 5433", "\uff30\uff4f\uff52\uff54\u3000\uff15\uff14\uff13\uff13", 1),
    ],
)
def test_a_text_is_stored_once_however_it_is_encoded(room: Client, first: str, second: str, count: int) -> None:
    assert len({room.remember(first)["id"], room.remember(second)["id"]}) == count


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("Die Stra\u00dfe zum Lager ist gesperrt", "STRASSE"),
        ("Die Gr\u00f6\u00dfe der Warteschlange ist 512", "groesse"),
        ("Biuro jest w \u0141odzi, \u0141\u00f3d\u017a", "lodz"),
        ("I\u015f\u0131k servisi kapal\u0131", "\u0131\u015f\u0131k"),
        ("the pod is in CrashLoopBackOff", "crash loop back off"),
        ("cleanupScopeMappings runs after each import", "scope mappings cleanup"),
        ("PAY-1234 breaks refunds", "PAY1234"),
        ("commit 9f2c41ab7 broke the login", "9f2c41ab7deadbeef0011223344556677889900a"),
        ("\U0001f680\U0001f525 is the marker for hotfix releases", "\U0001f680"),
        ("\U0001f984", "\U0001f984"),
    ],
)
def test_a_word_is_found_in_another_spelling(room: Client, content: str, query: str) -> None:
    room.remember("the boats are in the harbour")
    stored = room.remember(content)["id"]
    best = room.recall(query, min_relevance=0.5)["results"][0]
    assert best["id"] == stored


def started(client: Client, **fields: Any) -> list[str]:
    """Return the lines of a start below the heading of constraints."""
    body = {"harness": "t", "sessionKey": f"start-{next(STARTS)}", **fields}
    inject = client.post("/api/hooks/session-start", body).ok()["inject"]
    below = inject.partition("## Active Constraints\n")[2].partition("\n## ")[0]
    return [line for line in below.splitlines() if line.startswith("- ")]


def test_casual_sentences_are_no_constraints_and_push_out_none(room: Client) -> None:
    named = room.remember("Only Dana may approve schema changes of the shop", type="constraint", createdAt="2026-10-01")
    rule = room.remember("The deploy of the shop needs two people", type="rule", createdAt="2026-10-01")
    for number in range(60):
        room.remember(
            f"The load test number {number} must have run on the old cluster because the graph always shows it"
        )
    room.remember("I never liked that movie")
    room.remember("The build always fails on Mondays when the cache is cold")
    room.remember("Bob must have left early")
    order = room.remember("Never push to the main branch of the shop")
    german = room.remember("Nie ohne Freigabe deployen")
    pinned = room.remember("critical: the pager number is on the desk", createdAt="2026-09-01")
    lines = started(room)
    expected = [pinned, named, rule, order, german]
    assert len(lines) == len(expected)
    places = [next(at for at, line in enumerate(lines) if one["content"] in line) for one in expected]
    assert places[0] == 0
    assert set(places[1:3]) == {1, 2}
    assert set(places[3:]) == {3, 4}


def test_a_type_that_is_named_later_makes_a_constraint_and_another_text_takes_the_order_away(room: Client) -> None:
    casual = room.remember("The build always fails on Mondays")
    order = room.remember("Always water the plants")
    assert [order["content"] in line for line in started(room)] == [True]
    patch = {"reason": "r", "type": "rule"}
    assert room.request("PATCH", f"/api/memory/{casual['id']}", patch).status == 200
    patch = {"reason": "r", "content": "The plants were always dry"}
    assert room.request("PATCH", f"/api/memory/{order['id']}", patch).status == 200
    assert [casual["content"] in line for line in started(room)] == [True]


def test_an_export_and_an_import_leave_inferred_what_was_inferred(daemon: Any, empty_rooms: Any) -> None:
    source, target = empty_rooms(), empty_rooms()
    source.remember("I never liked that movie")
    source.remember("Only Dana may approve", type="rule")
    exported = source.get("/api/memory/export").raw.decode()
    lines = [json.loads(line) for line in exported.splitlines() if '"content"' in line]
    assert [line.get("typeInferred", False) for line in lines] == [True, False]
    agent = target.headers["x-signet-agent-id"]
    body = "".join(json.dumps({**line, "id": None, "agentId": agent}) + "\n" for line in lines).encode()
    assert target.request("POST", "/api/memory/import", body, {"Content-Type": "application/x-ndjson"}).status == 200
    assert ["Only Dana may approve" in line for line in started(target)] == [True]
