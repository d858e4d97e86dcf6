"""Past sessions on the command line.

Source: docs/cli.md "Memories".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.support.scripted_daemon import ScriptedDaemon
from tests.support.terminal_screen import on_screen

KEY: Final = "0b7d8a52-3f0e-4f43-9a2f-2a1d1c9f7e10"
SESSION: Final[dict[str, Any]] = {
    "sessionKey": KEY,
    "agentId": "default",
    "harness": "claude-code",
    "project": "/home/you/orderdesk",
    "startedAt": "2026-02-21T10:00:00.000Z",
    "updatedAt": "2026-02-21T11:00:00.000Z",
    "turns": 4,
    "prompt": "What was left to do\non the price list import?",
    "summary": None,
}
TRANSCRIPT: Final[dict[str, Any]] = {
    "sessionKey": KEY,
    "harness": "claude-code",
    "turnCount": 2,
    "updatedAt": "2026-02-21T11:00:00.000Z",
    "turns": [
        {"role": "user", "content": "What was left?", "at": None},
        {"role": "assistant", "content": "def f():\n    pass", "at": "2026-02-21T11:59:30.000Z"},
    ],
}


@pytest.fixture
def daemon() -> Iterator[ScriptedDaemon]:
    daemon = ScriptedDaemon()
    daemon.on("GET", "/api/sessions/past", {"sessions": [SESSION], "total": 1})
    daemon.on("GET", "/api/memories/by-prefix", {"memories": []})
    daemon.on("GET", f"/api/sessions/{KEY}/transcript", TRANSCRIPT)
    for unknown in (KEY, "0b7d8a"):
        daemon.on("GET", f"/api/memory/{unknown}", {"error": "Not found", "code": "not_found"}, status=404)
    yield daemon
    daemon.close()


def test_a_session_is_listed_by_its_first_prompt(daemon: ScriptedDaemon) -> None:
    assert on_screen(daemon.url, "sessions", "--project", "orderdesk", width=80)[1].splitlines()[:2] == [
        "1 hour ago  What was left to do on the price list import?",
        "            0b7d8a52-3f0e · claude-code · orderdesk · 4 turns",
    ]
    assert daemon.asked[0].query == {"project": "orderdesk", "limit": "20"}


def test_no_session_is_said_so(daemon: ScriptedDaemon) -> None:
    daemon.script("GET", "/api/sessions/past", {"sessions": [], "total": 0})
    assert on_screen(daemon.url, "sessions", width=80) == (0, "There are no sessions.\n")


@pytest.mark.parametrize("given", [KEY, "0b7d8a", "0b7d"])
def test_show_prints_what_was_said_in_a_session(daemon: ScriptedDaemon, given: str) -> None:
    code, shown = on_screen(daemon.url, "show", given, width=80)
    assert (code, shown.partition("\n\n")[2]) == (
        0,
        "User\nWhat was left?\n\nAssistant (just now)\ndef f():\n    pass\n",
    )


@pytest.mark.parametrize("given", [KEY, "0b7d8a", "0b7d"])
def test_forget_erases_what_was_said_in_a_session(daemon: ScriptedDaemon, given: str) -> None:
    path = f"/api/sessions/{KEY}/transcript"
    daemon.on("DELETE", path, {"sessionKey": KEY, "turns": 2, "success": True})
    for unknown in (KEY, "0b7d8a"):
        daemon.on("DELETE", f"/api/memory/{unknown}", {"error": "Not found", "code": "not_found"}, status=404)
    code, shown = on_screen(daemon.url, "forget", given, width=80)
    assert (code, f"{KEY} is a session of 2 turns" in shown) == (1, True), shown
    assert not any(one.path == path and one.method == "DELETE" for one in daemon.asked)
    code, shown = on_screen(daemon.url, "forget", given, "--yes", width=80)
    assert (code, f"Erased what was said in the session {KEY}." in shown) == (0, True), shown
    assert any(one.path == path and one.method == "DELETE" for one in daemon.asked)


@pytest.mark.parametrize(
    ("ids", "told"),
    [
        (["a"], "A summary of it stays: `signet forget a` forgets it."),
        (["a", "b"], "Summaries of it stay: `signet forget a b` forgets them."),
    ],
)
def test_forget_names_the_summaries_of_a_session_that_stay(daemon: ScriptedDaemon, ids: list[str], told: str) -> None:
    unknown = {"error": "Not found", "code": "not_found"}
    daemon.on("DELETE", f"/api/memory/{KEY}", unknown, status=404)
    daemon.on("DELETE", f"/api/sessions/{KEY}/transcript", {"sessionKey": KEY, "turns": 2, "saidBy": ids})
    code, shown = on_screen(daemon.url, "forget", KEY, "--yes", width=80)
    assert (code, told in " ".join(shown.split())) == (0, True), shown


def test_an_id_of_neither_a_memory_nor_a_session_is_named(daemon: ScriptedDaemon) -> None:
    daemon.script("GET", "/api/sessions/past", {"sessions": [], "total": 0})
    code, shown = on_screen(daemon.url, "show", "0b7d8a", width=80)
    assert (code, "the memory 0b7d8a was not found" in shown) == (1, True)


def test_the_beginning_of_several_sessions_lists_them(daemon: ScriptedDaemon) -> None:
    second = {**SESSION, "sessionKey": f"{KEY[:-1]}1", "prompt": "Another"}
    daemon.script("GET", "/api/sessions/past", {"sessions": [SESSION, second], "total": 2})
    code, shown = on_screen(daemon.url, "show", "0b7d8a", width=80)
    assert code == 2
    assert f"  {KEY[:-1]}1  Another" in shown


def test_a_project_without_a_session_is_said_so_when_something_is_remembered(daemon: ScriptedDaemon) -> None:
    daemon.on("POST", "/api/memory/remember", {"id": KEY, "type": "fact"}, status=201)
    told = "No session has run in a directory named orderdsk yet"
    assert told not in on_screen(daemon.url, "remember", "x", "--project", "orderdsk", width=80)[1]
    daemon.script("GET", "/api/sessions/past", {"sessions": [], "total": 0})
    assert told in on_screen(daemon.url, "remember", "x", "--project", "orderdsk", width=80)[1]
    assert told not in on_screen(daemon.url, "remember", "x", "--project", "/home/you/orderdsk", width=80)[1]


def test_lines_that_do_not_fit_are_broken_between_words(daemon: ScriptedDaemon) -> None:
    said = "Every word of this sentence stays whole although the terminal is narrow. " * 5
    turn = {"role": "assistant", "content": f"{said}\n    pass", "at": None}
    daemon.script("GET", f"/api/sessions/{KEY}/transcript", {**TRANSCRIPT, "turns": [turn]})
    shown = on_screen(daemon.url, "show", KEY, width=40)[1]
    assert max(map(len, shown.splitlines())) <= 40
    assert " ".join(said.split()) in " ".join(shown.split())
    assert shown.endswith("\n    pass\n")


def test_sessions_of_all_ages_begin_in_one_column(daemon: ScriptedDaemon) -> None:
    times = ("2026-02-21T11:59:59.000Z", "2026-02-21T11:56:00.000Z", "2026-02-21T02:00:00.000Z")
    rows = [{**SESSION, "sessionKey": f"key-{number}", "updatedAt": time} for number, time in enumerate(times)]
    daemon.script("GET", "/api/sessions/past", {"sessions": rows, "total": 9})
    shown = on_screen(daemon.url, "sessions", width=80)[1]
    assert len({line.index("What") for line in shown.splitlines() if "What" in line}) == 1
    assert "1-3 of 9 sessions; more with `--offset 3`" in shown
