"""The sessions that ``signet backfill`` finds in the homes and exports of other programs."""

from __future__ import annotations

import io
import json
import os
import tracemalloc
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
from signet_actors.cli.past_sessions.line_files import PastSession, Unreadable
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


def test_sessions_of_codex_are_known_by_their_file_name_and_those_of_subagents_left_out(tmp_path: Path) -> None:
    homes.codex(tmp_path)
    found = {session.key: session for session in line_files.codex({"HOME": str(tmp_path)})}
    assert sorted(found) == sorted([homes.CODEX, homes.CODEX_FORMER])
    assert (found[homes.CODEX].project, found[homes.CODEX_FORMER].project) == (homes.PROJECT, None)
    assert [text for _, text, _ in texts(found[homes.CODEX_FORMER])] == [
        "Rename the ferry to barge.",
        "Renamed in 3 files.",
    ]


def test_sessions_that_codex_has_packed_are_left_out_with_what_to_do(tmp_path: Path) -> None:
    folder = tmp_path / ".codex" / "sessions" / "2026" / "11" / "14"
    folder.mkdir(parents=True)
    key = "019aa5de-7bd4-7c11-8f0e-5a3f1c2d9e"
    not_packed = ["rollout-x.jsonl.zst", f"rollout-2026-{key}01.zst", f"{key}02.jsonl.zst", f"rollout-{key}03.jsonl.gz"]
    for name in not_packed:
        (folder / name).write_bytes(b"\x28\xb5\x2f\xfd")
    homes.codex(tmp_path)
    assert len(list(line_files.codex({"HOME": str(tmp_path)}))) == 2
    archived = tmp_path / ".codex" / "archived_sessions"
    archived.mkdir()
    for number, place in enumerate([folder, archived, folder], 1):
        (place / f"rollout-2026-11-14T10-00-00-{key}1{number}.jsonl.zst").write_bytes(b"\x28\xb5\x2f\xfd")
        found = CliRunner().invoke(cli, ["backfill", "codex", "--dry-run", "--json"], env={"HOME": str(tmp_path)})
        done = json.loads(found.stdout)
        (left,) = done["leftOut"]
        assert (left["session"], sum(row["sessions"] for row in done["found"])) == ("codex", 2)
        assert left["reason"].startswith(
            f"{number} session{'s' * (number > 1)} packed by Codex (.jsonl.zst); unpack with"
        )
        assert f"`zstd -d {archived if number > 1 else folder}/rollout-2026" in left["reason"]
    for path in (tmp_path / ".codex").rglob("*1?.jsonl.zst"):
        path.with_suffix("").write_bytes(b"")
    assert len(list(line_files.codex({"HOME": str(tmp_path)}))) == 2


def test_sessions_of_gemini_are_known_by_their_description_and_those_of_subagents_left_out(tmp_path: Path) -> None:
    path = homes.gemini(tmp_path)
    os.mkfifo(path.with_name("session-2026-11-22T09-00-00000000.jsonl"))
    path.with_name("session-2026-11-22T09-00-00000001.jsonl").write_text('{"sessionId": 7}\n')
    found = {session.key: session for session in line_files.gemini({"HOME": str(tmp_path)})}
    assert sorted(found) == sorted([homes.GEMINI, homes.GEMINI_FORMER])
    assert (found[homes.GEMINI].project, found[homes.GEMINI_FORMER].project) == (homes.PROJECT, None)
    assert found[homes.GEMINI].path == path
    assert texts(found[homes.GEMINI_FORMER])[-1] == ("assistant", "It is sailings_v3.", "2026-11-20T10:00:08.000Z")


def test_a_session_of_qwen_code_has_its_project_and_none_of_a_subagent_is_found(tmp_path: Path) -> None:
    path = homes.qwen(tmp_path)
    for environ in ({"HOME": str(tmp_path)}, {"QWEN_HOME": str(tmp_path / ".qwen")}):
        [session] = line_files.qwen(environ)
        assert (session.key, session.project, session.path) == (homes.QWEN, homes.PROJECT, path)
        assert texts(session)[-1] == ("user", "And its key?", "2026-11-23T08:01:00.000Z")


@pytest.mark.parametrize("add", [homes.opencode_database, homes.opencode_files])
def test_a_session_of_opencode_has_what_was_said_in_order(tmp_path: Path, add: Any) -> None:
    add(tmp_path)
    [session] = opencode.sessions({"HOME": str(tmp_path)})
    assert (session.key, session.project, session.modified_ms) == (homes.OPENCODE, homes.PROJECT, 1795168860000)
    assert texts(session) == [
        ("user", "How long is the price list cached?", "2026-11-20T10:00:00.000Z"),
        ("assistant", "For 15 minutes.", "2026-11-20T10:00:05.000Z"),
    ]


@pytest.mark.parametrize("add", [homes.opencode_database, homes.opencode_files])
def test_the_summary_of_a_compaction_of_opencode_is_not_what_was_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, add: Any
) -> None:
    export = homes._opencode_export()
    for message in export["messages"]:
        if message["info"]["role"] == "user":
            message["info"]["summary"] = {"title": "Cache", "diffs": []}
        else:
            message["info"]["summary"] = True
    monkeypatch.setattr(homes, "_opencode_export", lambda: export)
    add(tmp_path)
    [session] = opencode.sessions({"HOME": str(tmp_path)})
    assert [text for _, text, _ in texts(session)] == ["How long is the price list cached?"]


def test_a_session_that_opencode_has_moved_into_its_database_is_found_once(tmp_path: Path) -> None:
    homes.opencode_files(tmp_path)
    (tmp_path / ".local/share/opencode/storage").rename(tmp_path / "storage")
    (tmp_path / ".local/share/opencode").rmdir()
    homes.opencode_database(tmp_path)
    (tmp_path / "storage").rename(tmp_path / ".local/share/opencode/storage")
    assert len(list(opencode.sessions({"HOME": str(tmp_path)}))) == 1


TITLES_AND_DIRECTORIES: tuple[tuple[Any, Any, bool], ...] = (
    ("signet", "/tmp/signet-cli-x1_y2z3w", True),
    ("signet", "/private/var/folders/zz/T/signet-cli-abcdefgh", True),
    ("signet", "C:\\Users\\ada\\AppData\\Local\\Temp\\signet-cli-abcd1234", True),
    ("signet", "/home/ada/ferry", False),
    ("signet", "/home/ada/signet-cli-x", False),
    ("signet", "/home/ada/signet-cli-abcdefgh/src", False),
    ("signet", "/home/ada/my-signet-cli-abcdefgh", False),
    ("signet", "", False),
    ("signet", None, False),
    ("signet plans", "/tmp/signet-cli-abcdefgh", False),
    ("Signet", "/tmp/signet-cli-abcdefgh", False),
    ("Move the login form", "/tmp/signet-cli-abcdefgh", False),
    (None, "/tmp/signet-cli-abcdefgh", False),
)


@pytest.mark.parametrize("add", [homes.opencode_database, homes.opencode_files])
def test_a_session_in_which_the_daemon_asked_opencode_is_none_of_the_user(tmp_path: Path, add: Any) -> None:
    for number, (title, directory, is_own) in enumerate(TITLES_AND_DIRECTORIES):
        home = tmp_path / str(number)
        add(home, title=title, directory=directory)
        assert bool(list(opencode.sessions({"HOME": str(home)}))) != is_own, (title, directory)


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
        ("system", "Title: Timetable of the ferry", "2025-03-02T15:59:23.103Z"),
        ("human", "In which format do we publish the timetable?", "2025-03-02T15:59:24.000Z"),
        ("assistant", "As GTFS, every Monday.", "2025-03-02T15:59:31.000Z"),
    ]


def test_of_an_export_of_chatgpt_the_branch_that_was_shown_last_is_kept() -> None:
    [session] = chat_export.sessions(EXPORTS / "chatgpt.json")
    assert (session.source, session.key) == ("chatgpt", "6788e2c8-2f1c-8001-9a3e-0c6f5f7d1b10")
    assert texts(session) == [
        ("system", "Title: Fares in winter", "2025-01-15T12:30:00.250Z"),
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


def test_the_files_of_a_large_export_are_read_from_their_directory(tmp_path: Path) -> None:
    for number in range(3):
        text = (EXPORTS / "chatgpt.json").read_text(encoding="utf-8").replace("1b10", f"1b1{number}")
        (tmp_path / f"conversations-00{number}.json").write_text(text, encoding="utf-8")
    (tmp_path / "user.json").write_text("{}", encoding="utf-8")
    found = list(chat_export.sessions(tmp_path))
    assert [session.key[-4:] for session in found] == ["1b10", "1b11", "1b12"]
    assert {texts(session)[1][1] for session in found} == {"Which fare applies in winter?"}


def test_an_export_is_read_without_all_of_it_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_export, "READ_BYTES", 64 * 1024)
    path = tmp_path / "conversations.json"
    [sample] = [one for one in json.loads((EXPORTS / "claude.json").read_text(encoding="utf-8")) if one["name"]]
    with path.open("w", encoding="utf-8") as file:
        for number in range(200):
            said = dict(sample["chat_messages"][0], content=[{"type": "text", "text": f"{number} " * 10_000}])
            conversation = dict(sample, uuid=f"c-{number}", chat_messages=[said])
            file.write(f"{',' if number else '['}\n{json.dumps(conversation)}")
        file.write("]")
    tracemalloc.start()
    try:
        found = list(chat_export.sessions(path))
        last = len(texts(found[-1])[1][1])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(found), last > 30_000) == (200, True)
    assert peak < path.stat().st_size / 8


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_the_elements_of_an_array_are_found_wherever_it_is_cut(
    monkeypatch: pytest.MonkeyPatch, size: int, bom: str
) -> None:
    monkeypatch.setattr(chat_export, "READ_BYTES", size)
    values = [{"a": 'ö]["\\'}, {}, {"例": [1, {"b": "]"}]}, {"\U0001f980": None}, {"c": "x" * 200}]
    for indent in (None, 2):
        raw = (bom + json.dumps(values, ensure_ascii=False, indent=indent)).encode()
        found = list(chat_export.elements(io.BytesIO(raw)))
        assert [element.value for element in found] == values
        assert [json.loads(raw[one.place : one.place + one.length]) for one in found] == values
    assert list(chat_export.elements(io.BytesIO(f"{bom} [ ] ".encode()))) == []


def test_an_export_that_is_cut_off_or_packed_is_refused(tmp_path: Path) -> None:
    whole = (EXPORTS / "claude.json").read_bytes()
    path = tmp_path / "conversations.json"
    path.write_bytes(whole[:-40])
    with pytest.raises(NotThisFormat, match="cannot be read after conversation 1: it is cut off or damaged"):
        list(chat_export.sessions(path))
    path.write_bytes(b"PK\x03\x04 and more")
    with pytest.raises(NotThisFormat, match="is a ZIP archive; unpack it"):
        list(chat_export.sessions(path))
    path.unlink()
    with pytest.raises(NotThisFormat, match=r"has no conversations\.json"):
        list(chat_export.sessions(tmp_path))


def test_a_conversation_of_an_export_that_has_changed_since_is_not_sent(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_bytes((EXPORTS / "claude.json").read_bytes())
    [session] = chat_export.sessions(path)
    path.write_bytes((EXPORTS / "chatgpt.json").read_bytes())
    with pytest.raises(Unreadable, match="has changed since it was read"):
        session.messages()


def test_a_conversation_of_chatgpt_without_a_current_node_ends_at_its_last_leaf(tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    [conversation] = json.loads((EXPORTS / "chatgpt.json").read_text(encoding="utf-8"))
    path.write_text(json.dumps([dict(conversation, current_node=None)]), encoding="utf-8")
    [session] = chat_export.sessions(path)
    assert texts(session)[-1][1] == "The winter fare is 12 euros."


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
