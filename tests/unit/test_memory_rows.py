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


def test_what_is_shown_beside_the_results_has_a_heading_and_is_no_result() -> None:
    rule = row("rule", relevance=0.0, supplementary=True, supplementary_reason="constraint")
    shown = recalled(row("strong", relevance=0.94), rule)
    assert shown.index("0.94  text of strong") < shown.index("rules of what you name") < shown.index("text of rule")
    assert "0.00" not in shown
    assert shown.endswith("1 found with relevance 0.5 or more\n")


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


def test_what_does_not_fit_beside_the_id_stands_in_more_lines_and_can_be_copied() -> None:
    newer = "01a22637-7601-77aa-b8d1-6f193cb56e3e"
    older = row(
        "01a22637-75dc-7754-b8d1-1f193cb56e3e", relevance=0.9, newer_id=newer, tags="ports,hosts,staging,databases"
    )
    older |= {"source_path": "/home/you/orderdesk-notes/02-ports.md", "project": "/home/you/orderdesk", **BATCH}
    assert recalled(older).splitlines()[1:4] == [
        "      01a22637-75dc-7754-b8d1 · fact · 3 min ago ·",
        "      see the newer 01a22637-7601-77aa-b8d1 · project orderdesk ·",
        "      orderdesk-notes/02-ports.md · ports, hosts, staging, databases",
    ]
    both = recalled(older, row(newer, relevance=0.8))
    assert "see the newer 01a22637-7601 ·" in both
    assert "      01a22637-7601 · fact" in both
    many = recalled(row("m1", relevance=0.9, tags=",".join(f"tag-{number}" for number in range(200))))
    assert len(many.splitlines()) == 4
    assert many.splitlines()[2].endswith("…")


NUMBERS: Final = (
    ("two answers", (("a", 0.96), ("b", 1.0)), "ba"),
    ("three of them", (("a", 0.55), ("b", 0.61), ("c", 0.58)), "bca"),
    ("what looks equal is as it was ranked", (("b", 0.996), ("a", 0.998)), "ba"),
    ("below the line", (("a", 0.9), ("b", 0.14), ("c", 0.45), ("d", 0.0)), "acbd"),
    ("all below", (("a", 0.1), ("b", 0.2)), "ba"),
    ("as ranked", (("a", 0.9), ("b", 0.8), ("c", 0.2)), "abc"),
    ("one", (("a", 0.7),), "a"),
)


def test_rows_stand_in_the_order_of_their_number_above_and_below_the_line() -> None:
    for name, numbers, expected in NUMBERS:
        rows = [row(id_, relevance=number, content=f"{id_}{id_}{id_} {id_}x{id_}") for id_, number in numbers]
        shown = recalled(*rows, options=("--all",)).splitlines()
        assert [line[6] for line in shown if line[:1].isdigit() and line[1] == "."] == list(expected), (name, shown)


def test_a_newer_version_that_was_ranked_first_stays_there_and_says_so() -> None:
    old = row("01a22637-75dc-7754-b8d1-1f193cb56e3e", content="The local postgres listens on port 5434")
    new = row("01a22637-7601-77aa-b8d1-6f193cb56e3e", content="The local postgres listens on port 5442")
    old |= {"created_at": "2026-02-20T11:57:00.000Z", "relevance": 1.0}
    new |= {"relevance": 0.95}
    other = row("01a22637-7701-77aa-b8d1-6f193cb56e3e", content="Backups are made at night", relevance=0.97)
    shown = recalled(new, other, old)
    assert [line for line in shown.splitlines() if line[0] in "01"] == [
        "0.95  The local postgres listens on port 5442",
        "1.00  The local postgres listens on port 5434",
        "0.97  Backups are made at night",
    ]
    assert "01a22637-7601 · fact · 3 min ago · newer than 01a22637-75dc\n" in shown
    assert shown.count("newer than") == 1
    corrected = recalled({**new, "content": "Postgres moved"}, {**old, "newer_id": new["id"]})
    assert corrected.index("Postgres moved") < corrected.index("5434")
    assert "newer than 01a22637-75dc" in corrected
    assert recalled(old, new).index("5434") < recalled(old, new).index("5442"), "as ranked: the past was asked for"


def entry(number: int, **more: Any) -> dict[str, Any]:
    id_ = f"01a22637-{number:04x}-7754-b8d1-1f193cb56e3e"
    about = {"temporal_facet": "captured", "temporal_start_at": "2026-02-21T11:57:00.000Z", "subject_type": "memory"}
    return {**row(f"temporal:memory:{id_}:captured"), **about, "subject_id": id_, "relevance": 1.0, **more}


def test_of_a_day_the_notes_that_were_imported_are_one_line() -> None:
    notes = [
        entry(number, source_path=f"/home/you/notes/{number}.md", source_type="markdown", content=f"note {number}")
        for number in range(17)
    ]
    own = [entry(number, content=f"said {number}") for number in range(20, 23)]
    own[0]["source_path"] = "/home/you/shop/src/app.py"  # which an agent named
    session = entry(30, subject_type="session", subject_id="s-1", type="session", content="User: commit it")
    daemon = ScriptedDaemon()
    try:
        first, every = [session, *notes[:9]], [session, session, *notes, *own]
        daemon.script(
            "POST", "/api/memory/recall", {"results": first}, {"results": every}, {"results": first}, {"results": every}
        )
        shown = on_screen(daemon.url, "recall", "what did we do today?", width=80)[1]
        assert [line[11:] for line in shown.splitlines() if line.startswith("3 min ago")] == [
            "User: commit it",
            *(f"said {number}" for number in range(20, 23)),
            "17 notes imported from notes (--all lists them)",
        ]
        assert shown.endswith("\n21 found\n")
        assert [asked.body["limit"] for asked in daemon.asked] == [10, 100]
        every_row = on_screen(daemon.url, "recall", "what did we do today?", "--all", width=80)[1]
        assert "note 16\n" in every_row
        assert every_row.endswith("\n21 found\n")
        assert " · fact · notes/8.md\n" in every_row
        daemon.script("POST", "/api/memory/recall", {"results": [notes[0], own[0]]})
        assert "note 0" in on_screen(daemon.url, "recall", "today", width=80)[1], "one is no crowd"
    finally:
        daemon.close()


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
