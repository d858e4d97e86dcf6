"""A transcript is read only below the allowed roots, from a regular file of limited size, through no link."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from signet_actors.errors import ErrorCode, SignetError
from signet_actors.gateway.skipped_transcripts import SkippedTranscripts
from signet_actors.gateway.transcript_files import TranscriptRefused, read_transcript_file, roots
from signet_actors.runtime.connected_harnesses import ConnectedHarness, add_connected, remove_connected


@pytest.fixture
def root(tmp_path: Path) -> Path:
    inside = tmp_path / "projects"
    inside.mkdir()
    return inside


def read(path: Path | str, root: Path, most: int = 1000) -> bytes:
    return read_transcript_file(str(path), (root,), most)


def refused(path: Path | str, root: Path, most: int = 1000) -> str:
    with pytest.raises(TranscriptRefused) as found:
        read(path, root, most)
    return str(found.value)


def test_a_file_below_a_root_is_read(root: Path) -> None:
    (root / "ferry").mkdir()
    (root / "ferry" / "s.jsonl").write_bytes(b"{}\n")
    assert read(root / "ferry" / "s.jsonl", root) == b"{}\n"


def test_a_root_may_be_a_link_and_be_named_by_either_name(root: Path, tmp_path: Path) -> None:
    (root / "s.jsonl").write_bytes(b"1")
    link = tmp_path / "link"
    link.symlink_to(root)
    assert read(link / "s.jsonl", link) == b"1"
    assert read(root / "s.jsonl", link) == b"1"


def test_the_folders_of_connected_harnesses_are_roots_from_the_connection_on(tmp_path: Path) -> None:
    workspace, environ = tmp_path / "agents", {"HOME": str(tmp_path)}
    before = roots(workspace, environ)
    kept: list[Path] = []
    for harness, file, folders in (
        ("claude-code", "work claude/settings.json", ["projects"]),
        ("claude-code", "private/settings.json", ["projects"]),
        ("codex", "c/hooks.json", ["sessions", "archived_sessions"]),
        ("gemini", "g/settings.json", ["tmp"]),
        ("cursor", "k/hooks.json", ["projects"]),
        ("vscode", "v/mcp.json", []),
        ("opencode", "o/plugins/signet.js", []),
        ("unknown", "u/settings.json", []),
    ):
        add_connected(workspace, ConnectedHarness(harness, "A harness", str(tmp_path / file)))
        kept += [(tmp_path / file).parent / name for name in folders]
        assert roots(workspace, environ) == (*before[:-1], *kept, workspace), harness
    add_connected(workspace, ConnectedHarness("claude-code", "A harness", "relative/settings.json"))
    assert roots(workspace, environ) == (*before[:-1], *kept, workspace)
    remove_connected(workspace, "claude-code", str(tmp_path / "work claude/settings.json"))
    assert roots(workspace, environ) == (*before[:-1], *kept[1:], workspace)


def test_health_tells_of_refused_transcripts_until_one_of_their_folder_is_read() -> None:
    now = [0.0]
    skipped = SkippedTranscripts(lambda: now[0])
    skipped.add("claude-code", "/w/projects/-ferry/1.jsonl", "it is outside")
    now[0] = 130.0
    (said,) = skipped.notes()
    assert said.startswith(
        "a session of claude-code was not kept 2 min ago: it is outside (`signet connect claude-code"
    )
    for harness, other in (
        ("claude-code", "/home/projects/-ferry/2.jsonl"),
        ("codex", "/w/projects/-ferry/1.jsonl"),
        ("claude-code", "/w/projects-2/-ferry/1.jsonl"),
        ("claude-code", None),
    ):
        skipped.end(harness, other)
        assert skipped.notes() == [said], (harness, other)
    skipped.end("claude-code", "/w/projects/-shop/9.jsonl")
    assert skipped.notes() == []
    skipped.add("opencode", None, "it is too long")
    skipped.end("opencode", "/x/y/z.json")
    assert len(skipped.notes()) == 1
    skipped.end("opencode", None)
    assert skipped.notes() == []
    for number in range(500):
        skipped.add(f"harness \x1b[31m{number}", f"/{number}/x/y.jsonl", "it is outside")
    assert [note.partition(" was")[0] for note in skipped.notes()] == [
        f"a session of harness [31m{number}" for number in (497, 498, 499)
    ]
    now[0] += 86_400
    assert skipped.notes() == [], "what was long ago is not told"


def test_files_elsewhere_are_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(b"1")
    (tmp_path / "projects-of-others").mkdir()
    (tmp_path / "projects-of-others" / "s.jsonl").write_bytes(b"1")
    for path in (tmp_path / "s.jsonl", tmp_path / "projects-of-others" / "s.jsonl", "/etc/passwd", root):
        assert "outside" in refused(path, root)
    for path in (f"{root}/../s.jsonl", "s.jsonl", "", f"{root}/a\0.jsonl"):
        assert "absolute" in refused(path, root)


def test_no_link_is_followed(root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "s.jsonl").write_bytes(b"secret")
    (root / "s.jsonl").symlink_to(tmp_path / "outside" / "s.jsonl")
    (root / "directory").symlink_to(tmp_path / "outside")
    assert "symbolic link" in refused(root / "s.jsonl", root)
    assert "symbolic link" in refused(root / "directory" / "s.jsonl", root)


def test_hidden_directories_and_other_suffixes_are_refused(root: Path) -> None:
    (root / ".daemon").mkdir()
    (root / ".daemon" / "secret.txt").write_bytes(b"secret")
    (root / "memories.db").write_bytes(b"SQLite")
    assert "hidden" in refused(root / ".daemon" / "secret.txt", root)
    assert "must end with" in refused(root / "memories.db", root)


def test_only_regular_files_are_read(root: Path) -> None:
    os.mkfifo(root / "pipe.jsonl")
    (root / "directory.jsonl").mkdir()
    assert "not a regular file" in refused(root / "pipe.jsonl", root)
    assert "not a regular file" in refused(root / "directory.jsonl", root)
    assert "No such file" in refused(root / "missing.jsonl", root)


def test_an_error_that_may_pass_asks_for_a_retry(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "s.jsonl").write_bytes(b"{}")

    def fail(*_: object, **__: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(SignetError) as found:
        read(root / "s.jsonl", root)
    assert found.value.code is ErrorCode.NOT_APPLIED


def test_a_file_that_is_too_long_is_refused_with_its_size_before_it_is_read(root: Path) -> None:
    with (root / "huge.jsonl").open("wb") as file:
        file.truncate(100 << 20)
    assert "104857600 bytes; at most 1000" in refused(root / "huge.jsonl", root)


def test_the_roots_follow_the_environment_of_each_harness(tmp_path: Path) -> None:
    found = roots(tmp_path, {"HOME": "/home/ada", "CODEX_HOME": "/srv/codex"})
    assert {tmp_path, Path("/home/ada/.claude/projects"), Path("/srv/codex/sessions")} <= set(found)
    assert Path("/home/ada") not in found
    moved = roots(tmp_path, {"HOME": "/home/ada", "CLAUDE_CONFIG_DIR": "/srv/claude"})
    assert Path("/srv/claude/projects") in moved


PRIVATE = (
    "memory/2026-11-24-move-the-login-form.md",
    "memory/spool/00000000000000000001-7.json",
    "memory/spool/00000000000000000001-7.json.rejected.json",
    "memory/notes.txt",
    "agents/alice/MEMORY.md",
    "agents/alice/transcripts/s.jsonl",
    "skills/deploy/SKILL.md",
    "connectors/notes.json",
    "AGENTS.md",
    "USER.md",
    "MEMORY.md",
    "Soul.MD",
    "notes.md",
)


def test_of_the_workspace_only_transcripts_are_read(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    projects = workspace / "claude" / "projects"
    to_memory, to_workspace = tmp_path / "to-memory", tmp_path / "to-workspace"
    to_memory.symlink_to(workspace / "memory")
    to_workspace.symlink_to(workspace)
    transcripts = ("transcripts/s.jsonl", "transcripts/of-today/s.md", "s.jsonl", "log.txt")
    for name in (*PRIVATE, *transcripts, "claude/projects/ferry/s.jsonl"):
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")
    allowed = (projects, to_memory, tmp_path, workspace, to_workspace)

    def read_it(path: Path | str) -> bytes:
        return read_transcript_file(str(path), allowed, 1000, workspace=workspace)

    for name in PRIVATE:
        for path in (workspace / name, to_workspace / name, f"{workspace}/./{name}", f"{workspace}//{name}"):
            with pytest.raises(TranscriptRefused):
                read_it(path)
    for path in (
        f"{workspace}/transcripts/../memory/notes.txt",
        to_memory / "notes.txt",
        to_memory / "spool" / "00000000000000000001-7.json",
    ):
        with pytest.raises(TranscriptRefused):
            read_it(path)
    for name in transcripts:
        assert read_it(workspace / name) == b"{}"
    assert read_it(projects / "ferry" / "s.jsonl") == b"{}"
    (workspace / "transcripts" / "link.jsonl").symlink_to(workspace / "memory" / "notes.txt")
    with pytest.raises(TranscriptRefused):
        read_it(workspace / "transcripts" / "link.jsonl")


def test_the_folders_of_qwen_code_are_roots(tmp_path: Path) -> None:
    assert Path("/home/ada/.qwen/projects") in roots(tmp_path, {"HOME": "/home/ada"})
    assert Path("/srv/qwen/projects") in roots(tmp_path, {"HOME": "/home/ada", "QWEN_HOME": "/srv/qwen"})
    assert Path("/srv/run/tmp") in roots(tmp_path, {"QWEN_HOME": "/srv/qwen", "QWEN_RUNTIME_DIR": "/srv/run"})
