"""The sessions that ``signet backfill`` finds in the homes and exports of other programs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from signet_actors.cli.backfill import SOURCES
from signet_actors.cli.connect import OWN_MEMORIES, PAST_SESSIONS
from signet_actors.cli.import_export import OF_THIS_MACHINE
from signet_actors.cli.importers.source import NotThisFormat
from signet_actors.cli.main import cli
from signet_actors.cli.past_sessions import chat_export, line_files, opencode
from signet_actors.cli.past_sessions.session import PastSession, Unreadable
from tests.support import past_sessions as homes

EXPORTS = homes.FIXTURES / "exports"


def texts(session: PastSession) -> list[tuple[str, str, str | None]]:
    return [(message["role"], message["content"], message["timestamp"]) for message in session.messages()]


def test_a_session_of_claude_code_has_its_project_and_none_of_a_subagent_is_found(tmp_path: Path) -> None:
    path = homes.claude_code(tmp_path)
    os.utime(path, (1_795_000_000, 1_795_000_000))
    [session] = line_files.claude_code({"HOME": str(tmp_path)})
    assert (session.key, session.project, session.path) == (homes.CLAUDE, homes.PROJECT, path)
    assert (session.modified_ms, session.size) == (1_795_000_000_000, path.stat().st_size)
    assert texts(session)[0] == ("user", "How often does the upload worker retry?", "2026-11-20T09:00:00.000Z")


def test_links_and_empty_files_are_no_sessions(tmp_path: Path) -> None:
    path = homes.claude_code(tmp_path)
    path.with_name("11111111-1111-4111-8111-111111111111.jsonl").symlink_to(path)
    path.with_name("22222222-2222-4222-8222-222222222222.jsonl").touch()
    assert [session.key for session in line_files.claude_code({"HOME": str(tmp_path)})] == [homes.CLAUDE]


def test_sessions_of_codex_are_known_by_the_name_in_their_file_name(tmp_path: Path) -> None:
    homes.codex(tmp_path)
    found = {session.key: session for session in line_files.codex({"HOME": str(tmp_path)})}
    assert sorted(found) == sorted([homes.CODEX, homes.CODEX_FORMER])
    assert (found[homes.CODEX].project, found[homes.CODEX_FORMER].project) == (homes.PROJECT, None)
    assert [text for _, text, _ in texts(found[homes.CODEX_FORMER])] == [
        "Rename the ferry to barge.",
        "Renamed in 3 files.",
    ]


@pytest.mark.parametrize("add", [homes.opencode_database, homes.opencode_files])
def test_a_session_of_opencode_has_what_was_said_in_order(tmp_path: Path, add: Any) -> None:
    add(tmp_path)
    [session] = opencode.sessions({"HOME": str(tmp_path)})
    assert (session.key, session.project, session.modified_ms) == (homes.OPENCODE, homes.PROJECT, 1795168860000)
    assert texts(session) == [
        ("user", "How long is the price list cached?", "2026-11-20T10:00:00.000Z"),
        ("assistant", "For 15 minutes.", "2026-11-20T10:00:05.000Z"),
    ]


def test_a_session_that_opencode_has_moved_into_its_database_is_found_once(tmp_path: Path) -> None:
    homes.opencode_files(tmp_path)
    (tmp_path / ".local/share/opencode/storage").rename(tmp_path / "storage")
    (tmp_path / ".local/share/opencode").rmdir()
    homes.opencode_database(tmp_path)
    (tmp_path / "storage").rename(tmp_path / ".local/share/opencode/storage")
    assert len(list(opencode.sessions({"HOME": str(tmp_path)}))) == 1


def test_a_damaged_database_of_opencode_is_named(tmp_path: Path) -> None:
    folder = tmp_path / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.db").write_bytes(b"SQLite format 3\0" + b"\1" * 4096)
    with pytest.raises(Unreadable, match=r"opencode\.db cannot be read"):
        list(opencode.sessions({"HOME": str(tmp_path)}))


def test_an_export_of_claude_has_what_was_said_and_when() -> None:
    [session] = chat_export.sessions(EXPORTS / "claude.json")
    assert (session.source, session.key) == ("claude", "6f1c1f6e-9d1b-4b7e-8f0a-2b9f3a7d1c01")
    assert session.modified_at == "2025-03-02T16:01:10.000Z"
    assert texts(session) == [
        ("human", "In which format do we publish the timetable?", "2025-03-02T15:59:24.000Z"),
        ("assistant", "As GTFS, every Monday.", "2025-03-02T15:59:31.000Z"),
    ]


def test_of_an_export_of_chatgpt_the_branch_that_was_shown_last_is_kept() -> None:
    [session] = chat_export.sessions(EXPORTS / "chatgpt.json")
    assert (session.source, session.key) == ("chatgpt", "6788e2c8-2f1c-8001-9a3e-0c6f5f7d1b10")
    assert texts(session) == [
        ("user", "Which fare applies in winter?", "2025-01-15T12:30:01.000Z"),
        ("assistant", "The winter fare is 12 euros.", "2025-01-15T12:30:30.000Z"),
    ]


@pytest.mark.parametrize(
    "content",
    ["no JSON", "{}", "[1]", '[{"title": "x"}]', '[{"chat_messages": []}]', '[{"mapping": {}, "id": " "}]'],
)
def test_another_file_is_refused_with_what_is_wanted(tmp_path: Path, content: str) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(NotThisFormat, match=r"give the file conversations\.json of a data export of Claude or ChatGPT"):
        list(chat_export.sessions(path))


def test_a_branch_of_chatgpt_that_leads_back_to_itself_ends(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    said = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Hello"]}}
    node = {"message": said, "parent": "a"}
    path.write_text(json.dumps([{"id": "c-1", "current_node": "a", "mapping": {"a": node}}]), encoding="utf-8")
    [session] = chat_export.sessions(path)
    assert [text for _, text, _ in texts(session)] == ["Hello"]


def test_connect_names_the_command_for_past_sessions(tmp_path: Path) -> None:
    program = tmp_path / "signet-hook"
    program.touch(mode=0o755)
    runner = CliRunner(env={"HOME": str(tmp_path), "PATH": "", "CLAUDE_CONFIG_DIR": ""})
    connected = runner.invoke(cli, ["connect", "claude-code", "--command", str(program)])
    assert (connected.exit_code, "`signet backfill claude-code --dry-run`" in connected.stderr) == (0, True)
    assert "`signet import --from claude-memory`" in connected.stderr
    assert set(PAST_SESSIONS) == set(SOURCES)
    assert set(OWN_MEMORIES.values()) == OF_THIS_MACHINE
