"""What a person sees of memories: their lines, short ids, and one number.

Source: docs/cli.md "Output".
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from signet_actors.cli.memory_rows import SHOWN_LINES, short_ids, text_lines
from tests.support.scripted_daemon import ScriptedDaemon
from tests.support.section_of_facts import FACTS, SECTION
from tests.support.terminal_screen import on_screen

LAYOUTS: Final = (
    ("one line", ["one line"]),
    ("", [""]),
    ("two\nlines", ["two", "lines"]),
    ("two\r\nlines", ["two", "lines"]),
    ("a blank line\n\nbetween", ["a blank line", "between"]),
    ("# Ports and hosts\n\nThe API has port 8090.", ["Ports and hosts", "The API has port 8090."]),
    ("## Reset", ["Reset"]),
    ("###### six", ["six"]),
    ("####### seven", ["####### seven"]),
    ("#hashtag", ["#hashtag"]),
    ("#!/bin/sh\necho", ["#!/bin/sh", "echo"]),
    ("# ", ["#"]),
    ("issue #42 is open", ["issue #42 is open"]),
    ("## Reset\n\n```sh\ndocker compose down -v\nmake seed\n```", ["Reset", "docker compose down -v", "make seed"]),
    ("~~~\n# a comment, no heading\n~~~", ["# a comment, no heading"]),
    ("```\nif x:\n    return y\n```", ["if x:", "    return y"]),
    ("```\na\n\nb\n```\n# After", ["a", "b", "After"]),
    ("- one\n  - nested\n- two", ["- one", "  - nested", "- two"]),
    ("| env | port |\n|---|---|\n| local | 5434 |", ["| env | port |", "|---|---|", "| local | 5434 |"]),
    ("kv/orderdesk/<env>", ["kv/orderdesk/<env>"]),
    ("\tindented", ["    indented"]),
    ("**Never** on a `Friday`", ["**Never** on a `Friday`"]),
    ("\x1b[31mred", ["\\u001b[31mred"]),
    ("Überweisung\nfällig", ["Überweisung", "fällig"]),
)
BATCH: Final = {"source_type": "markdown"}


def row(id_: str, **more: Any) -> dict[str, Any]:
    return {"id": id_, "content": f"text of {id_}", "type": "fact", "created_at": "2026-02-21T11:57:00.000Z", **more}


def recalled(*rows: dict[str, Any], options: tuple[str, ...] = (), method: str = "hybrid", query: str = "x") -> str:
    daemon = ScriptedDaemon()
    try:
        daemon.on("POST", "/api/memory/recall", {"results": list(rows), "method": method, "meta": {}})
        return on_screen(daemon.url, "recall", query, *options, width=80)[1]
    finally:
        daemon.close()


def test_markdown_and_code_keep_their_lines_without_their_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert [(text, text_lines(text, 40)) for text, _ in LAYOUTS] == list(LAYOUTS)


def test_a_long_text_ends_after_six_lines_with_the_command_that_shows_it_whole() -> None:
    lines = [f"step {number}" for number in range(1, 12)]
    shown = recalled(row("m1", content="\n".join(lines), relevance=0.9)).splitlines()
    assert shown[0] == "0.90  step 1"
    assert shown[SHOWN_LINES - 1 : SHOWN_LINES + 1] == ["      step 6", "      … (signet show m1)"]
    six = recalled(row("m1", content="\n".join(lines[:6]), relevance=0.9))
    assert "signet show" not in six
    cut = recalled(row("m1", content="the beginning [truncated]", truncated=True, relevance=0.9)).splitlines()
    assert cut[:2] == ["0.90  the beginning", "      … (signet show m1)"]


def test_of_a_section_with_many_facts_the_one_that_was_asked_for_is_shown() -> None:
    for question, fact in FACTS.items():
        shown = recalled({**row("a"), "content": SECTION, "relevance": 0.9}, query=question)
        assert f"{fact}, as agreed" in shown, (question, shown)
        assert (shown.startswith("0.90  Facts\n"), "(signet show a)" in shown) == (True, True), shown
        assert len(shown.splitlines()) <= SHOWN_LINES + 4, shown
    for question in ("something else", "the of and", "spring"):
        assert "port 5173" in recalled({**row("a"), "content": SECTION, "relevance": 0.9}, query=question)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([row("01a223e6-05e8-7ecf-b465-b74c17ac705b")], ["01a223e6-05e8"]),
        ([row("01a223e6-05e8-7ecf-b465-b74c17ac705b", source_type="manual")], ["01a223e6-05e8"]),
        ([row("01a223e6-05e8-7ecf-b465-b74c17ac705b", **BATCH)], ["01a223e6-05e8-7ecf-b465"]),
        (
            [row("01a223e6-05e8-7ecf-b465-b74c17ac705b"), row("01a223e6-05e8-7aaa-b465-b74c17ac705b")],
            ["01a223e6-05e8-7ecf", "01a223e6-05e8-7aaa"],
        ),
        (
            [row("01a223e6-05e8-7ecf-b465-b74c17ac705b"), row("01a223e6-05e8-7ecf-b465-000000000000")],
            ["01a223e6-05e8-7ecf-b465-b74c17ac705b", "01a223e6-05e8-7ecf-b465-000000000000"],
        ),
        ([row("m1"), row("an id of another program")], ["m1", "an id of another program"]),
        (
            [row("turn:3", type="session_turn", session_key="0b7d8a52-3f0e-4f43-9a2f-2a1d1c9f7e10")],
            ["0b7d8a52-3f0e"],
        ),
    ],
)
def test_an_id_is_as_short_as_it_can_be_without_meaning_two_memories(
    rows: list[dict[str, Any]], expected: list[str]
) -> None:
    assert short_ids(rows) == expected


def test_what_answers_stands_first_then_sessions_and_the_rest_is_only_counted() -> None:
    rows = (
        row("weak", relevance=0.31),
        row("strong", relevance=0.94),
        row("edge", relevance=0.5),
        row("turn:1", relevance=1.0, type="session_turn", session_key="s-1", project="/home/you/orderdesk"),
        row("none", relevance=0.0),
    )
    shown = recalled(*rows)
    assert [line[:20].rstrip() for line in shown.splitlines() if line[0].isdigit() and ". " not in line] == [
        "0.94  text of strong",
        "0.50  text of edge",
        "1.00  text of turn:1",
        "3 found with relevan",
    ]
    assert "session s-1 · 3 min ago · orderdesk" in shown
    assert shown.endswith("3 found with relevance 0.5 or more; 2 below: add --all\n")
    everything = recalled(*rows, options=("--all",))
    assert everything.index("text of turn:1") < everything.index("probably not about this")
    assert everything.index("probably not about this") < everything.index("0.31  text of weak")
    assert "0.00  text of none" in everything
    assert everything.endswith("3 found with relevance 0.5 or more\n")


def test_a_threshold_of_the_caller_decides_alone_what_is_shown() -> None:
    assert "0.31  text of weak" in recalled(row("weak", relevance=0.31), options=("--min-relevance", "0.3"))


def test_without_an_answer_a_person_is_told_how_many_others_there_are() -> None:
    shown = recalled(row("weak", relevance=0.31), method="keyword")
    assert shown == "Nothing found with relevance 0.5 or more, by words alone; 1 below: add --all\n"


def test_a_memory_is_named_by_its_file_and_not_by_the_daemon_that_imported_it() -> None:
    path = "/home/you/orderdesk-notes/02-ports.md"
    imported = row("m1", relevance=0.9, who="daemon", source_path=path, tags="ports", pinned=True)
    assert "      m1 · fact · 3 min ago · pinned · orderdesk-notes/02-ports.md · ports\n" in recalled(imported)
    assert "daemon" not in recalled(imported)
    assert "claude-code" in recalled(row("m2", relevance=0.9, who="claude-code"))


def test_turns_asks_for_what_was_said_alone() -> None:
    daemon = ScriptedDaemon()
    try:
        daemon.on("POST", "/api/memory/recall", {"results": [], "method": "hybrid", "meta": {}})
        on_screen(daemon.url, "recall", "x", "--turns", width=80)
        assert daemon.asked[0].body["type"] == "session_turn"
        assert on_screen(daemon.url, "recall", "x", "--turns", "--type", "fact", width=80)[0] == 2
    finally:
        daemon.close()


def test_a_result_names_the_newer_memory_that_says_what_has_changed() -> None:
    older = row("01a2244d-ebad-7cdb-bdd6-1f193cb56e3e", relevance=0.9, newer_id="01a2244e-0620-744d-80cb-36fc23939193")
    assert "see the newer 01a2244e-0620" in recalled(older)
    assert "see the newer" not in recalled(row("01a2244d-ebad-7cdb-bdd6-1f193cb56e3e", relevance=0.9))


def test_a_person_sees_of_which_project_a_memory_is() -> None:
    shop = row("01a2244d-ebad-7cdb-bdd6-1f193cb56e3e", relevance=0.9, project="/home/you/shop/")
    assert "01a2244d-ebad · fact · 3 min ago · project shop\n" in recalled(shop)
    assert "project" not in recalled(row("01a2244d-ebad-7cdb-bdd6-1f193cb56e3e", relevance=0.9, project=None))
    daemon = ScriptedDaemon()
    try:
        daemon.on("GET", "/api/memories", {"memories": [shop], "total": 28})
        shown = on_screen(daemon.url, "list", "-n", "1", width=80)[1]
        assert "project shop" in shown
        assert shown.endswith("1-1 of 28 memories; more with `--offset 1`, or `-n 28`\n")
        daemon.on("POST", "/api/memory/remember", {**shop, "type": "fact", "tags": None})
        assert (
            "(fact · project shop)"
            in on_screen(daemon.url, "remember", "x", "--project", "/home/you/shop", width=80)[1]
        )
        daemon.on("GET", f"/api/memory/{shop['id']}", {**shop, "visibility": "global"})
        fields = on_screen(daemon.url, "show", shop["id"], width=80)[1]
        assert "global" not in fields
        assert "every agent but isolated ones" in fields
        assert "/home/you/shop/" in fields
    finally:
        daemon.close()


TYPES: Final = (
    *(("rulez", "rule"), ("facts", "fact"), ("descision", "decision"), ("preferance", "preference"), ("isue", "issue")),
    *(("constrain", "constraint"), ("learnings", "learning"), ("rational", "rationale"), ("procedure", "procedural")),
    *(
        ("semantics", "semantic"),
        ("session-summary", "session_summary"),
        ("Rules", "rule"),
        ("prefrence", "preference"),
    ),
    *(("todo", ""), ("recipe", ""), ("gizmo", ""), ("wiki", ""), ("person", ""), ("url", ""), ("haiku", "")),
)


def test_a_type_that_is_not_known_is_taken_and_told_with_what_may_be_meant() -> None:
    daemon = ScriptedDaemon()
    id_ = "01a2244d-ebad-7cdb-bdd6-1f193cb56e3e"
    try:
        daemon.on("PATCH", f"/api/memory/{id_}", {"id": id_, "status": "updated", "newVersion": 2})
        for given, meant in TYPES:
            code, shown, *_ = on_screen(daemon.url, "edit", id_, "--type", given, width=80)
            assert code == 0
            hint = f"Did you mean {meant}? " if meant else ""
            assert f"{given} is an unknown type. {hint}Known: fact," in " ".join(shown.split()), given
        for given in ("fact", "rule", "decision", "Preference", "session_summary"):
            assert "unknown type" not in on_screen(daemon.url, "edit", id_, "--type", given, width=80)[1]
    finally:
        daemon.close()


LONG_LINE: Final = "Much of this is about something else that nobody asked for. " * 12


def test_the_part_of_a_long_line_that_was_asked_for_is_shown() -> None:
    text = f"User: Which port?\n\nAssistant: {LONG_LINE}The crawler has port 9070. {LONG_LINE}"
    turn = row("turn:1", relevance=0.9, type="session_turn", session_key="s-1", content=text)
    shown = recalled(turn, query="port of the crawler")
    assert "The crawler has port 9070." in " ".join(shown.split())
    assert "signet show s-1" in shown
    assert len(shown.splitlines()) <= SHOWN_LINES + 3
