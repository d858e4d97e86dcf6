"""Imports of other formats: what becomes a memory, what is refused, and how an interrupted one continues.

Source: docs/transfer.md "Other formats".
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import Result

from signet_actors.cli import import_export
from signet_actors.cli.import_export import IMPORTERS
from signet_actors.cli.importers import basic_memory, claude_mem, markdown, mem0, reference
from signet_actors.cli.importers.source import Findings, NotThisFormat
from tests.support.foreign_memories import (
    COFFEE,
    MEM0,
    NOTE,
    OBSERVATION,
    REFERENCE_ROW,
    SUMMARY,
    UUID,
    database,
    written,
)
from tests.support.scripted_daemon import Asked, ScriptedDaemon

IMPORT = "/api/memory/import"


def sent(daemon: ScriptedDaemon) -> list[Asked]:
    """Return the requests that store something."""
    return [one for one in daemon.asked if one.method == "POST"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "signet"


def memories_of(importer: ModuleType, path: Path, **options: bool) -> list[dict[str, Any]]:
    """The memories of a source in which everything can be read and kept."""
    findings = Findings()
    found = list(importer.memories(path, findings, **options))
    assert (findings.unreadable, findings.warnings) == ([], [])
    return found


def test_a_section_of_markdown_is_a_memory_with_its_headings_as_tags(tmp_path: Path) -> None:
    found = list(memories_of(markdown, written(tmp_path / "deploy.md", NOTE)))
    assert [(one["content"], one["tags"][3:]) for one in found] == [
        ("Read this before a release.", []),
        ("# When\n\nNever on Fridays.", ["when"]),
        ("## Exceptions\n\n```sh\n# this is no heading\nmake release\n```", ["when", "exceptions"]),
        ("Setext heading\n--------------\n\nBelow it.", ["when", "setext-heading"]),
        ("## 例外\n\n緊急時のみ。", ["empty", "例外"]),
    ]
    assert all(one["tags"][:3] == ["ops", "C++", "deployments"] for one in found)
    about = {"project": "orderdesk", "who": "noor", "createdAt": "2026-01-02", "sourceType": "markdown"}
    assert found[1].items() >= {**about, "sourcePath": str(tmp_path / "deploy.md")}.items()
    assert found[2]["sourceId"].startswith("deploy.md#when/exceptions@")


def test_a_heading_with_nothing_below_it_is_a_memory(tmp_path: Path) -> None:
    rules = "# Rules\n## Always use tabs\n## Never push on Friday\n## Setup\nrun make\n### Use python 3.12\n"
    found = list(memories_of(markdown, written(tmp_path / "rules.md", rules + "\n# Off\n### Deep\n## \n# Last\n")))
    assert [(one["content"], one["tags"]) for one in found] == [
        ("## Always use tabs", ["rules", "always-use-tabs"]),
        ("## Never push on Friday", ["rules", "never-push-on-friday"]),
        ("## Setup\nrun make", ["rules", "setup"]),
        ("### Use python 3.12", ["rules", "setup", "use-python-3.12"]),
        ("### Deep", ["off", "deep"]),
        ("# Last", ["last"]),
    ]


def test_the_title_of_a_note_is_a_tag_that_does_not_change_where_a_section_is(tmp_path: Path) -> None:
    file = written(tmp_path / "a.md", "---\ntitle: Payments API\n---\n# One\ntext\n")
    (found,) = memories_of(markdown, file)
    assert found["tags"] == ["payments-api", "one"]
    assert found["sourceId"].startswith("a.md#one@")


def test_with_the_format_text_every_file_is_plain_text(tmp_path: Path) -> None:
    written(tmp_path / "TODO", "# buy milk\n# buy eggs\n\n# no heading\n")
    written(tmp_path / "a.md", "# One\n\nTwo\n")
    for path, expected in (("TODO", ["# buy milk\n# buy eggs", "# no heading"]), ("", ["# One", "Two"])):
        assert [one["content"] for one in memories_of(markdown, tmp_path / path, plain=True)] == expected


def test_a_directory_that_cannot_be_read_is_refused(
    tmp_path: Path, daemon: ScriptedDaemon, signet: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    written(tmp_path / "a.md", "text")
    closed = tmp_path / "closed"
    closed.mkdir()
    scan = os.scandir

    def refuse(path: str) -> Any:
        if Path(path) == closed:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)  # the tests may run as root, who can read everything
    result = signet("import", str(tmp_path), "--from", "markdown")
    assert (result.exit_code, daemon.asked) == (1, [])
    assert f"cannot read {closed}: Permission denied" in result.stderr


BAD_NOTES = {
    "a.md": b"---\ntitle: A\ndate: {{date}}\n---\ntext",
    "b.md": b"---\ndate: 2024-02-30\n---\ntext",
    "c.md": b"---\ntags: [one\n---\ntext",
    "d.md": "ok\n\nschön".encode("latin-1"),
    "e.txt": b"one\ntwo\0",
}
WRONG_PLACES = {
    "a.md": "line 3, column",
    "b.md": "line 2, column 7",
    "c.md": "line 3",
    "d.md": "line 3",
    "e.txt": "line 2",
}
"""The line of each mistake in its file, which begins with line 1."""


def test_every_file_that_cannot_be_read_is_named_with_its_line_and_nothing_is_stored(
    tmp_path: Path, daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    written(tmp_path / "good.md", "good")
    for name, data in BAD_NOTES.items():
        (tmp_path / name).write_bytes(data)
    result = signet("import", str(tmp_path), "--from", "markdown")
    assert (result.exit_code, daemon.asked) == (1, [])
    summary, *told = result.stderr.splitlines()
    assert summary.startswith("signet: 5 files cannot be read; nothing was imported.")
    assert "--skip-unreadable" in summary
    for (name, place), sentence in zip(WRONG_PLACES.items(), told, strict=True):
        assert str(tmp_path / name) in sentence
        assert f"{place}" in sentence
        assert any(remedy in sentence for remedy in ("correct it", "convert it", "move the file away")), sentence


def test_the_files_that_can_be_read_are_imported_on_request_and_the_others_listed(
    tmp_path: Path, daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    for name, data in BAD_NOTES.items():
        (notes / name).write_bytes(data)
    command = ("import", str(notes), "--from", "markdown", "--skip-unreadable")
    result = signet(*command)
    assert (result.exit_code, daemon.asked) == (1, []), "nothing is left to import"
    written(notes / "good.md", "good")
    daemon.on("POST", IMPORT, {"imported": 1, "deduped": 0, "redacted": 0, "refused": []})
    result = signet(*command)
    assert (result.exit_code, result.stdout) == (0, "Imported 1 memory, 0 existed already, 0 refused.\n")
    listed = [text for text in result.stderr.splitlines() if text.startswith("left out: ")]
    assert len(listed) == len(BAD_NOTES)
    assert all(str(notes / name) in text for name, text in zip(BAD_NOTES, listed, strict=True))
    assert [one.body["content"] for one in sent(daemon)] == ["good"]
    assert len(json.loads(signet(*command, "--json").stdout)["leftOut"]) == len(BAD_NOTES)
    assert signet("import", str(written(tmp_path / "lines", {"content": "x"})), "--skip-unreadable").exit_code == 2


def test_memories_that_name_no_project_are_of_the_one_that_the_import_names(
    tmp_path: Path, daemon: ScriptedDaemon, signet: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    daemon.on("POST", IMPORT, {"imported": 1, "deduped": 0, "redacted": 0, "refused": []})
    for number, (given, expected) in enumerate({".": f"{tmp_path}/.", "shop": "shop", "": None}.items()):
        notes = tmp_path / str(number)
        notes.mkdir()
        written(notes / "a.md", "of none")
        written(notes / "b.md", "---\nproject: ferry\n---\nof its own")
        daemon.asked.clear()
        assert signet("import", str(notes), *(("--project", given) if given else ())).exit_code == 0
        sent = [json.loads(line) for line in daemon.asked[-1].body.splitlines()]
        assert [one.get("project") for one in sent] == [expected, "ferry"]


def test_an_export_keeps_its_own_projects(tmp_path: Path, signet: Callable[..., Result]) -> None:
    lines = str(written(tmp_path / "lines", {"content": "x"}))
    for arguments in ((lines,), (str(tmp_path), "--from", "signet-markdown")):
        result = signet("import", *arguments, "--project", ".")
        assert (result.exit_code, "has the project of each memory" in result.stderr) == (2, True), arguments


def test_values_that_a_memory_cannot_have_are_left_out_with_one_warning_each(
    tmp_path: Path, daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    matter = "type: a meeting\nauthor: [Ann, Bo]\nproject: {a: b}\ndate: soon\ntags: 7\n"
    path = written(tmp_path / "a.md", f"---\n{matter}---\n# One\nfirst\n# Two\nsecond\n")
    daemon.on("POST", IMPORT, {"imported": 2, "deduped": 0, "redacted": 0, "refused": []})
    result = signet("import", str(path), "--from", "markdown")
    assert result.exit_code == 0
    told = result.stderr.splitlines()
    for key in ("type", "author", "project", "date", "tags"):
        assert len([text for text in told if text.startswith(f"warning: {path}: `{key}` is left out: ")]) == 1, told
    assert len(told) == 5
    found = [json.loads(text) for text in sent(daemon)[0].body.splitlines()]
    assert all(not {"type", "who", "project"} & one.keys() for one in found)


def test_each_type_that_a_remember_takes_is_kept(tmp_path: Path) -> None:
    for name in ("meeting", "decision", "how-to"):
        (found,) = memories_of(markdown, written(tmp_path / "a.md", f"---\ntype: {name}\n---\ntext"))
        assert found["type"] == name


@pytest.mark.parametrize("date", ["31.12.2024", "December 31, 2024", "2024-12-31"])
def test_a_full_date_in_any_form_that_a_recall_understands_is_kept(tmp_path: Path, date: str) -> None:
    (found,) = memories_of(markdown, written(tmp_path / "a.md", f"---\ndate: {date}\n---\ntext"))
    assert found["createdAt"] == "2024-12-31"


def test_files_without_text_are_counted(tmp_path: Path, daemon: ScriptedDaemon, signet: Callable[..., Result]) -> None:
    for name, text in (("a.md", "text"), ("b.md", ""), ("c.md", "---\ntitle: C\n---\n"), ("d.txt", " \n")):
        written(tmp_path / name, text)
    daemon.on("POST", IMPORT, {"imported": 1, "deduped": 0, "redacted": 0, "refused": []})
    result = signet("import", str(tmp_path), "--from", "markdown")
    assert (result.exit_code, result.stderr) == (0, "3 files had no text.\n")


def test_an_empty_memory_of_mem0_and_its_values_that_are_no_time_are_left_out_with_a_warning(tmp_path: Path) -> None:
    entries = [
        {"id": "m1", "memory": "first", "created_at": "heute"},
        {"id": "m2", "memory": " "},
        {"id": "m3", "memory": None},
        {},
        {"id": "m5", "memory": "last"},
    ]
    path, findings = tmp_path / "all.json", Findings()
    found = list(mem0.memories(written(path, {"results": entries}), findings))
    assert [(one["content"], "createdAt" in one) for one in found] == [("first", False), ("last", False)]
    assert findings.warnings == [
        f"{path}: the memory m1: `created_at` is left out: 'heute' is not a time such as 2026-01-31",
        f"{path}: the memory m2 is left out: it has no text",
        f"{path}: the memory m3 is left out: it has no text",
        f"{path}: the memory number 4 is left out: it has no text",
    ]


def test_a_heading_keeps_its_letters_as_a_tag(tmp_path: Path) -> None:
    (found,) = memories_of(markdown, written(tmp_path / "a.md", "# Große Straße\ntext"))
    assert found["tags"] == ["große-straße"]


def test_a_directory_is_read_in_order_without_hidden_files_links_libraries_and_other_endings(tmp_path: Path) -> None:
    for name in ("b", ".git", "node_modules/lodash", "b/node_modules", "lib/python3.11/site-packages"):
        (tmp_path / name).mkdir(parents=True)
    libraries = ("node_modules/lodash/README.md", "b/node_modules/no.md", "lib/python3.11/site-packages/LICENSE.txt")
    for name in ("b/two.md", "one.txt", ".git/no.md", ".no.md", "no.py", *libraries):
        written(tmp_path / name, f"of {name}")
    (tmp_path / "link.md").symlink_to(tmp_path / "no.py")
    assert [one["content"] for one in memories_of(markdown, tmp_path)] == ["of one.txt", "of b/two.md"]
    assert [one["sourceId"].partition("#")[0] for one in memories_of(markdown, tmp_path)] == ["one.txt", "b/two.md"]


def test_a_paragraph_of_plain_text_is_a_memory(tmp_path: Path) -> None:
    file = written(tmp_path / "notes.txt", "first\n  indented\n\n \n# no heading\r\n\r\n")
    assert [one["content"] for one in memories_of(markdown, file)] == ["first\n  indented", "# no heading"]


def test_an_edited_section_is_another_source_and_an_unchanged_one_the_same(tmp_path: Path) -> None:
    file = written(tmp_path / "a.md", "# One\nsame\n# Two\nold\n")
    before = [one["sourceId"] for one in memories_of(markdown, file)]
    after = [one["sourceId"] for one in memories_of(markdown, written(file, "# One\nsame\n# Two\nnew\n"))]
    assert (before[0] == after[0], before[1] == after[1]) == (True, False)


def test_an_observation_and_a_relation_of_basic_memory_are_memories(tmp_path: Path) -> None:
    written(tmp_path / "coffee.md", COFFEE)
    written(tmp_path / "readme.md", "not a note")
    found = list(memories_of(basic_memory, tmp_path))
    told = [(one["content"], one["tags"], one.get("type")) for one in found]
    always = ["coffee", "brewing"]
    assert told[:3] == [
        ("Coffee Brewing Methods: Pour over provides more flavor clarity", [*always, "method"], None),
        (
            "Coffee Brewing Methods: Water at 93 degrees #brewing (since May)",
            ["coffee", "brewing", "decision"],
            "decision",
        ),
        ("Coffee Brewing Methods relates to Coffee Bean Origins", [*always, "relation"], None),
    ]
    rest = "\n".join(content for content, _, _ in told[3:])
    assert "Two ways, compared." in rest
    assert "- [ ] a task\n- [x] a done task\n- [a link](https://example.com)" in rest
    assert "- [[Only a link]]" in rest
    assert {one["sourceType"] for one in found} == {"basic-memory"}


MADE_BY_THE_TOOL = Path(__file__).parent / "fixtures" / "importers"


def test_a_reply_that_mem0_made_itself_is_imported() -> None:
    release, tabs = memories_of(mem0, MADE_BY_THE_TOOL / "mem0.json")
    assert (release["content"], release["who"]) == ("The site is released from the release branch", "noor")
    assert release["createdAt"] == "2026-11-26T22:41:01.613290+00:00"
    assert (tabs["content"], tabs["tags"], tabs["sessionId"]) == (
        "Noor prefers four spaces over tabs",
        ["style"],
        "run-7",
    )
    assert tabs["sourceId"] == "mem0:15739019-bab9-4aaa-b8ce-d22d6cb42ae5"


def test_a_note_that_basic_memory_wrote_itself_is_imported_whole() -> None:
    found = list(memories_of(basic_memory, MADE_BY_THE_TOOL / "basic-memory"))
    of_note = ["coffee", "kitchen"]
    assert [(one["content"], one["tags"], one.get("type")) for one in found] == [
        (
            "Coffee Brewing: Pour over gives a clean cup #brewing (after a week of tests)",
            [*of_note, "method", "brewing"],
            None,
        ),
        (
            "Coffee Brewing: Water at 94 °C, never boiling #temperature #water",
            [*of_note, "preference", "temperature", "water"],
            "preference",
        ),
        ("Coffee Brewing requires Burr Grinder", [*of_note, "relation"], None),
        ("Coffee Brewing part of Kitchen (since the move)", [*of_note, "relation"], None),
        (
            "Coffee Brewing: Beans come from the market on Saturdays #beans",
            [*of_note, "decision", "beans"],
            "decision",
        ),
        ("# Coffee brewing\n\nThe kettle stands in the kitchen.", [*of_note, "coffee-brewing"], None),
    ]
    assert {one["sourceId"].partition("#")[0] for one in found} == {"guides/Coffee Brewing.md"}


PAYMENTS = """---
title: Payments
permalink: payments
---
# Rules

- See also [[ADR 7]]: deploys on Friday are forbidden, ask Ann first
- depends_on [[Ledger]] (only for refunds)
- relates_to [[A]] and [[B]]
- [decision] Retry five times
  because the provider fails in bursts #retry

      backoff: exponential
  - at most a minute
  - [limit] Ten calls a second
- [x] done

## Observations
- [owner] Ann

## Empty
"""


def test_an_import_of_basic_memory_keeps_every_word_of_a_note(tmp_path: Path) -> None:
    found = list(memories_of(basic_memory, written(tmp_path / "payments.md", PAYMENTS)))
    told = {one["content"]: one["tags"] for one in found}
    assert told == {
        "Payments depends on Ledger (only for refunds)": ["relation"],
        "Payments: Retry five times\nbecause the provider fails in bursts #retry\n\n    backoff: exponential\n"
        "- at most a minute": ["decision", "retry"],
        "Payments: Ten calls a second": ["limit"],
        "Payments: Ann": ["owner"],
        "# Rules\n\n- See also [[ADR 7]]: deploys on Friday are forbidden, ask Ann first\n"
        "- relates_to [[A]] and [[B]]\n- [x] done": ["payments", "rules"],
        "## Empty": ["payments", "rules", "empty"],
    }


@pytest.mark.parametrize("form", [MEM0, MEM0["results"], {"memories": MEM0["results"]}])
def test_the_reply_of_mem0_is_imported(tmp_path: Path, form: Any) -> None:
    assert list(memories_of(mem0, written(tmp_path / "all.json", form))) == [
        {
            "content": "Likes pizza",
            "tags": ["food", "home"],
            "who": "alice",
            "sessionId": "run-7",
            "createdAt": "2026-01-02T10:00:00.123456-08:00",
            "sourceType": "mem0",
            "sourceId": f"mem0:{UUID}",
        }
    ]


def test_the_export_and_the_database_of_claude_mem_give_the_same_memories(tmp_path: Path) -> None:
    export = {"observations": [OBSERVATION], "sessions": [], "summaries": [SUMMARY], "prompts": [{"prompt_text": "p"}]}
    found = list(memories_of(claude_mem, written(tmp_path / "export.json", export)))
    file = database(tmp_path / "claude-mem.db", observations=[OBSERVATION], session_summaries=[SUMMARY])
    assert list(memories_of(claude_mem, file)) == found
    assert found[0] == {
        "content": "Retry with backoff\nThe payment provider fails in bursts.\n- at most 5 times\n- with jitter",
        "project": "orderdesk",
        "sessionId": "session-1",
        "createdAt": "2026-01-02T10:00:00.000Z",
        "who": "claude-mem",
        "sourceType": "claude-mem",
        "sourceId": "claude-mem:observation:7:1767348000000",
        "type": "decision",
        "tags": ["decision", "trade-off"],
    }
    assert found[1]["content"] == "request: Make payments robust\nlearned: Bursts last a minute"
    assert found[1]["type"] == "session_summary"


def test_active_directives_of_claude_mem_become_rules(tmp_path: Path) -> None:
    rule = {"id": 1, "project": None, "content": "Never push to main", "status": "active", "created_at_epoch": 1}
    rules = [rule, {**rule, "id": 2, "status": "archived"}]
    tables = {"observations": [OBSERVATION], "session_summaries": [SUMMARY], "directives": rules}
    found = list(memories_of(claude_mem, database(tmp_path / "m.db", **tables)))
    assert [(one["content"], one["type"]) for one in found[2:]] == [("Never push to main", "rule")]


def test_live_memories_of_the_reference_daemon_are_imported_and_its_database_is_not_changed(tmp_path: Path) -> None:
    row = REFERENCE_ROW
    gone = {**row, "id": "2", "is_deleted": 1}
    file = database(tmp_path / "memories.db", memories=[row, gone, {**row, "id": "odd", "tags": "a,b", "pinned": 0}])
    before = file.read_bytes()
    found = list(memories_of(reference, file))
    assert file.read_bytes() == before
    assert found[0] == {
        "content": "User prefers vim",
        "who": "claude-code",
        "sourceType": "manual",
        "sourceId": "s1",
        "id": UUID,
        "type": "preference",
        "tags": ["editor", "C++"],
        "importance": 0.9,
        "pinned": True,
        "createdAt": "2026-02-21T10:00:00.000Z",
        "accessCount": 4,
    }
    assert len(found) == 2
    assert ("id" in found[1], found[1]["tags"]) == (False, ["a", "b"])


def test_memories_of_the_reference_daemon_keep_their_owner_and_the_archived_are_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {**REFERENCE_ROW, "agent_id": "alice", "visibility": "private", "why": "extracted-fact"}
    rows = [row, {**row, "visibility": "archived"}, {**row, "agent_id": None, "visibility": None, "why": None}]
    found = list(memories_of(reference, database(tmp_path / "memories.db", memories=rows)))
    assert [(one.get("agentId"), one.get("visibility"), one["tags"][2:]) for one in found] == [
        ("alice", "private", ["extracted-fact"]),
        (None, None, []),
    ]
    assert "Left out: 1 archived memories" in capsys.readouterr().err


def refused_files(tmp_path: Path) -> dict[str, dict[str, tuple[Path, str]]]:
    """By format: files of other formats, and a part of the sentence that refuses each."""
    (tmp_path / "empty").mkdir()
    nothing = tmp_path / "empty"
    words = written(tmp_path / "words.json", "no json")
    other = written(tmp_path / "other.json", {"results": [{"text": "x"}]})
    page = written(tmp_path / "page.json", {"count": 250, "next": None, **MEM0})
    linked = written(tmp_path / "linked.json", {"next": "https://api.mem0.ai/v2/memories/?page=2", **MEM0})
    secret = database(tmp_path / "secret.db", memories=[{**REFERENCE_ROW, "visibility": "secret"}])
    image = tmp_path / "image.md"
    image.write_bytes(b"\x89PNG\xff")
    broken = written(tmp_path / "broken.md", "---\ntitle: [\n---\ntext")
    laugh = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}' if n else 'lol'] * 9)}]\n" for n in range(11))
    bomb = written(tmp_path / "bomb.md", f"---\n{laugh}title: *l10\ntags: *l10\nproject: *l10\n---\ntext")
    template = written(tmp_path / "template.md", "---\ntitle: a\ndate: {{date}}\n---\ntext")
    plain = written(tmp_path / "plain.md", "text")
    stranger = database(tmp_path / "stranger.db", things=[{"a": 1}])
    own = database(tmp_path / "own.db", memories=[{"id": "1", "content": "x", "importance": 1}], memory_tags=[{"a": 1}])
    torn = tmp_path / "torn.db"
    torn.write_bytes(b"SQLite format 3\0" + b"\xff" * 200)
    return {
        "markdown": {
            "nothing": (nothing, "has no Markdown or plain text"),
            "binary": (image, "is not UTF-8 text"),
            "front matter": (broken, "line 3, column 1"),
            "aliases": (bomb, "stand for more than 65536 characters"),
            "template": (template, "not valid YAML: line 3, column 8: a list or a mapping is used as a key"),
        },
        "basic-memory": {"no note": (plain, "`--from markdown` imports any Markdown")},
        "mem0": {
            "no JSON": (words, "get_all"),
            "other JSON": (other, "get_all"),
            "too few": (page, "1 of 250 memories"),
            "a next page": (linked, "1 of more memories: ask for each page"),
        },
        "claude-mem": {
            "no JSON": (words, "export-memories"),
            "other JSON": (other, "is not an export of claude-mem"),
            "database": (stranger, "not one of claude-mem"),
            "torn": (torn, "cannot be read"),
        },
        "reference": {
            "no database": (words, "give the file memories.db"),
            "database": (stranger, "not one of the reference daemon"),
            "our own": (own, "`signet restore`"),
            "visibility": (secret, "has the unknown visibility 'secret'"),
        },
    }


def test_what_is_not_the_format_is_refused_with_a_sentence_that_helps(
    tmp_path: Path, daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    for name, files in refused_files(tmp_path).items():
        for case, (path, sentence) in files.items():
            result = signet("import", str(path), "--from", name)
            assert (result.exit_code, sentence in result.stderr) == (1, True), (name, case, result.stderr)
            assert str(path) in result.stderr
    assert daemon.asked == []
    assert not list(tmp_path.glob("*.import-state"))


def test_a_file_of_another_format_is_not_taken_for_json_lines(
    tmp_path: Path, daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    for name, hint in (("a.txt", "--from markdown"), ("a.db", "--from claude-mem")):
        result = signet("import", str(written(tmp_path / name, "x")))
        assert (result.exit_code, hint in result.stderr) == (2, True), result.stderr
    daemon.on("POST", IMPORT, {"imported": 1, "deduped": 0, "redacted": 0, "refused": []})
    assert signet("import", str(written(tmp_path / "lines.txt", {"content": "x"}))).exit_code == 0
    for name in IMPORTERS:
        assert signet("import", str(tmp_path / "missing"), "--from", name).exit_code == 2


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.md", "# Ports", "Imported 1 memory"),
        ("deep/b.markdown", "# Ports", "Imported 1 memory"),
        ("c.txt", "Ports", "name its format with"),
        ("d.md.bak", "# Ports", "name its format with"),
    ],
)
def test_markdown_needs_no_name_of_its_format(
    tmp_path: Path, daemon: ScriptedDaemon, signet: Callable[..., Result], name: str, text: str, expected: str
) -> None:
    daemon.on("POST", IMPORT, {"imported": 1, "deduped": 0, "redacted": 0, "refused": []})
    (tmp_path / "notes" / name).parent.mkdir(parents=True)
    written(tmp_path / "notes" / name, text)
    for path in (tmp_path / "notes", tmp_path / "notes" / name):
        assert expected in signet("import", str(path)).output


def samples(tmp_path: Path, count: int) -> dict[str, Path]:
    """Files of each format with ``count`` memories."""
    numbers = range(1, count + 1)
    for number in numbers:
        for folder, text in (("notes", f"note {number}"), ("basic", f"---\npermalink: n{number}\n---\nnote {number}")):
            (tmp_path / folder).mkdir(exist_ok=True)
            written(tmp_path / folder / f"{number:04}.md", text)
    observations = [{**OBSERVATION, "id": number, "title": f"note {number}"} for number in numbers]
    rows = [{**REFERENCE_ROW, "id": str(number), "content": f"note {number}"} for number in numbers]
    remembered = [{"id": str(number), "memory": f"note {number}"} for number in numbers]
    exported = {"observations": observations, "summaries": []}
    summaries = [{**SUMMARY, "request": None, "learned": None}]
    return {
        "markdown": tmp_path / "notes",
        "text": written(tmp_path / "notes.txt", "\n\n".join(f"note {number}" for number in numbers)),
        "basic-memory": tmp_path / "basic",
        "mem0": written(tmp_path / "mem0.json", {"results": remembered}),
        "claude-mem": written(tmp_path / "claude-mem.json", exported),
        "claude-mem database": database(tmp_path / "c.db", observations=observations, session_summaries=summaries),
        "reference": database(tmp_path / "r.db", memories=rows),
    }


FORMATS = ("markdown", "text", "basic-memory", "mem0", "claude-mem", "claude-mem database", "reference")
READABLE = {
    "markdown": {"markdown", "text", "basic-memory"},
    "text": {"markdown", "text", "basic-memory"},
    "claude-mem": {"claude-mem", "claude-mem database"},
}
"""What an importer reads besides its own format: a note of Basic Memory is Markdown."""


@pytest.mark.parametrize("name", IMPORTERS)
def test_a_file_of_another_importer_is_refused(
    tmp_path: Path, daemon: ScriptedDaemon, signet: Callable[..., Result], name: str
) -> None:
    files = {**samples(tmp_path, 1), "export": written(tmp_path / "e.jsonl", '{"format": "x"}\n{"content": "y"}\n')}
    for kind, path in files.items():
        if kind not in READABLE.get(name, {name}):
            result = signet("import", str(path), "--from", name)
            assert (result.exit_code, str(path) in result.stderr) == (1, True), (kind, result.stderr)
            assert "remove it" not in result.stderr
    assert daemon.asked == []


@pytest.mark.parametrize("kind", FORMATS)
def test_an_interrupted_import_of_each_format_continues(
    tmp_path: Path,
    daemon: ScriptedDaemon,
    signet: Callable[..., Result],
    monkeypatch: pytest.MonkeyPatch,
    cache: Path,
    kind: str,
) -> None:
    monkeypatch.setattr(import_export, "CONNECTIONS", 1)  # the responses are scripted in the order of the batches
    monkeypatch.setattr(import_export, "BATCH_LINES", 2)
    path = samples(tmp_path, 6)[kind]
    command = ("import", str(path), "--from", kind.partition(" ")[0])

    def stored(count: int, receipt: str) -> dict[str, Any]:
        return {"imported": count, "deduped": 0, "redacted": 0, "refused": [], "receipt": receipt}

    daemon.on("POST", IMPORT, stored(2, "r1"))
    daemon.on("POST", IMPORT, {"error": "full", "code": "storage_full"}, status=507)
    assert signet(*command).exit_code == 4
    (state,) = cache.iterdir()
    assert not list(tmp_path.glob("*.import-state*"))
    assert json.loads(state.read_bytes())["done"]["line"] == 3
    first = sent(daemon)[0]

    daemon.asked.clear()
    daemon.script("POST", IMPORT, stored(2, "r1"), stored(2, "r2"), stored(2, "r3"))
    result = signet(*command)
    assert (result.exit_code, result.stdout) == (0, "Imported 6 memories, 0 existed already, 0 refused.\n"), (
        result.stderr
    )
    assert "Continuing at line 3." in result.stderr
    assert not state.exists()
    keys = [one.headers["idempotency-key"] for one in sent(daemon)]
    assert keys[0] == first.headers["idempotency-key"]
    assert len(set(keys)) == 3
    contents = [json.loads(text)["content"] for one in sent(daemon) for text in one.body.splitlines()]
    assert [content.splitlines()[0] for content in contents] == [f"note {number}" for number in range(1, 7)]


def test_an_import_goes_on_if_its_progress_cannot_be_saved(
    tmp_path: Path, daemon: ScriptedDaemon, signet: Callable[..., Result]
) -> None:
    written(tmp_path / "cache", "a file, so that no directory can be made of it")
    daemon.on("POST", IMPORT, {"imported": 2, "deduped": 0, "redacted": 0, "refused": []})
    result = signet("import", str(written(tmp_path / "a.txt", "one\n\ntwo")), "--from", "text")
    assert (result.exit_code, result.stderr.count("The progress cannot be saved")) == (0, 1), result.stderr


@pytest.mark.parametrize(
    ("format_", "content", "place"),
    [
        ("markdown", "# One\nfirst\n# Two\nsecond\n", "a.file#two@"),
        ("mem0", [{"id": "m1", "memory": "first"}, {"id": "m2", "memory": "second"}], "mem0:m2"),
    ],
)
def test_a_refusal_names_the_place_in_the_source(
    tmp_path: Path, daemon: ScriptedDaemon, signet: Callable[..., Result], format_: str, content: Any, place: str
) -> None:
    refused = [{"line": 2, "error": "scope must not contain a secret", "code": "invalid_request", "field": "scope"}]
    daemon.on("POST", IMPORT, {"imported": 1, "deduped": 0, "redacted": 0, "refused": refused})
    path = written(tmp_path / "a.file", content)
    result = signet("import", str(path), "--from", format_)
    assert (result.exit_code, result.stderr.startswith(place)) == (1, True), result.stderr
    assert ": scope must not contain a secret (scope)\n" in result.stderr
    (told,) = json.loads(signet("import", str(path), "--from", format_, "--json").stdout)["refused"]
    assert ("line" in told, told["source"].startswith(place)) == (False, True)


HOSTILE = {
    "a value made of nothing": ("hex(zeroblob(400000000))", 1),
    "a value made of one letter": ("printf('%.*c', 400000000, 'x')", 1),
    "a value that replaces its letters": ("replace(hex(zeroblob(8000000)), '0', 'longer and longer')", 1),
    "a quoted value": ("quote(zeroblob(30000000))", 1),
    "a blob": ("zeroblob(400000000)", 1),
    "many values of the size that is allowed": ("hex(zeroblob(7000000))", 300),
    "many smaller values": ("hex(zeroblob(50000))", 20_000),
    "many columns of the size that is allowed": (" || ".join(["hex(zeroblob(2000000))"] * 3), 1),
}


@pytest.mark.parametrize("kind", [*HOSTILE, "a view", "a table that is a view's name", "a long stored text"])
def test_a_database_whose_columns_make_text_of_nothing_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "hostile.db"
    value, count = HOSTILE.get(kind, ("''", 1))
    columns = 45 if kind == "many columns of the size that is allowed" else 1
    made = ", ".join(f"c{number} GENERATED ALWAYS AS ({value}) VIRTUAL" for number in range(columns))
    with closing(sqlite3.connect(path)) as connection, connection:
        if kind in HOSTILE:
            connection.execute(f"CREATE TABLE memories (id, content, importance, {made})")
            rows = [(str(number), "x", 0.5) for number in range(count)]
            connection.executemany("INSERT INTO memories (id, content, importance) VALUES (?, ?, ?)", rows)
        elif kind == "a long stored text":
            connection.execute("CREATE TABLE memories (id, content, importance)")
            connection.execute("INSERT INTO memories VALUES ('1', ?, 0.5)", ("x" * 17_000_000,))
        else:
            name = "memories" if kind == "a view" else "memories_of"
            connection.execute(f"CREATE VIEW {name} AS SELECT hex(zeroblob(400000000)) AS content")
    with pytest.raises(NotThisFormat) as refused:
        list(reference.memories(path, Findings()))
    assert "cannot be read" in str(refused.value) or "not one of" in str(refused.value)


def test_a_large_database_that_is_no_larger_than_its_file_is_imported(tmp_path: Path) -> None:
    quoted = '"\\\t' * 100_000
    rows = [{**REFERENCE_ROW, "id": f"{number:08}-0000-7000-8000-000000000000"} for number in range(2000)]
    long = [
        {**REFERENCE_ROW, "id": f"{number:08}-0000-7000-8000-000000000001", "content": quoted} for number in range(40)
    ]
    assert len(memories_of(reference, database(tmp_path / "memories.db", memories=[*rows, *long]))) == 2040
