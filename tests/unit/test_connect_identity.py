"""``signet connect`` tells the daemon where identity files go; ``disconnect`` takes them out again."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from signet_actors.cli.harnesses.registry import (
    CLAUDE_CODE,
    CODEX,
    CURSOR,
    GEMINI,
    HARNESSES,
    OPENCLAW,
    OPENCODE,
    Harness,
)
from signet_actors.retention.workspace_sync import sync_harness_files
from signet_actors.runtime.connected_harnesses import read_connected
from tests.support.harness_home import Home, make_home

FILES = {
    "claude-code": ".claude/CLAUDE.md",
    "codex": ".codex/AGENTS.md",
    "gemini": ".gemini/GEMINI.md",
    "opencode": ".config/opencode/AGENTS.md",
}
"""Where each harness reads instructions for all sessions, by the pages that its registry names."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("OPENCODE_CONFIG_DIR", raising=False)
    made = make_home(tmp_path, monkeypatch)
    made.install_signet()
    return made


@pytest.fixture
def workspace(home: Home) -> Path:
    """The default workspace, with an identity file."""
    path = home.root / ".agents"
    (path / "agents" / "bob").mkdir(parents=True)
    (path / "AGENTS.md").write_text("Run the tests.\n")
    return path


def test_a_connection_before_the_first_start_makes_a_private_workspace(home: Home) -> None:
    assert home.connect(OPENCLAW).exit_code == 0
    made = home.root / ".agents"
    assert [path.stat().st_mode & 0o777 for path in (made, made / "memory")] == [0o700, 0o700]


@pytest.mark.parametrize("harness", HARNESSES, ids=lambda harness: harness.name)
def test_identity_files_come_after_connect_and_go_with_disconnect(
    home: Home, workspace: Path, harness: Harness
) -> None:
    before = home.files()
    assert home.connect(harness, "--agent", "alice").exit_code == 0
    (row,) = read_connected(workspace)
    assert (row.harness, row.title, row.agent) == (harness.name, harness.title, "alice")
    has_servers = harness.servers is not None
    assert bool(row.servers_file) is has_servers
    assert not has_servers or "signet" in Path(row.servers_file).read_text()
    sync_harness_files(workspace)
    expected = [FILES[harness.name]] if harness.name in FILES else []
    expected = [".agents/agents/bob/workspace/AGENTS.md"] if harness is OPENCLAW else expected
    found = [name for name, text in home.files().items() if name not in before and b"Run the tests." in (text or b"")]
    assert found == expected
    would = home.disconnect(harness, "--dry-run")
    assert ("would be taken out" in would.output) is bool(expected)
    done = home.disconnect(harness)
    assert ("Took the identity files out" in done.output) is bool(expected)
    left = {name: text for name, text in home.files().items() if text is not None or name in before}
    assert left == before


def test_the_users_own_instructions_come_back_byte_for_byte(home: Home, workspace: Path) -> None:
    path = home.root / ".claude" / "CLAUDE.md"
    path.parent.mkdir()
    path.write_bytes(b"# Mine\r\n\xff")
    done = home.connect(CLAUDE_CODE)
    assert f"The daemon keeps your identity files in {path}, too." in done.output
    sync_harness_files(workspace)
    assert path.read_bytes().startswith(b"# Mine\r\n\xff\n<!-- signet:identity:begin")
    home.disconnect(CLAUDE_CODE)
    assert path.read_bytes() == b"# Mine\r\n\xff"
    assert not path.with_name("CLAUDE.md.before-signet").exists()


def harnesses_with_files() -> list[Harness]:
    return [harness for harness in HARNESSES if harness.name in FILES]


@pytest.mark.parametrize("linked", harnesses_with_files(), ids=lambda harness: harness.name)
@pytest.mark.parametrize("source", ["AGENTS.md", "SOUL.md", "IDENTITY.md", "USER.md", "agents/bob/SOUL.md"])
@pytest.mark.parametrize("kind", ["relative", "absolute"])
def test_an_identity_file_that_is_the_file_of_a_harness_is_not_put_into_itself(
    home: Home, workspace: Path, linked: Harness, source: str, kind: str
) -> None:
    theirs, ours = home.root / FILES[linked.name], workspace / source
    theirs.parent.mkdir(parents=True, exist_ok=True)
    theirs.write_text("# House rules\n- tabs, not spaces\n")
    ours.unlink(missing_ok=True)
    ours.symlink_to(theirs if kind == "absolute" else Path(os.path.relpath(theirs, ours.parent)))
    for harness in harnesses_with_files():
        home.connect(harness, "--agent", "bob")
    sync_harness_files(workspace)

    def contents() -> dict[str, str]:
        paths = [home.root / name for name in FILES.values()]
        return {str(path): path.read_text() for path in paths if path.exists()}

    after = contents()
    for _ in range(3):
        assert sync_harness_files(workspace).written == []
    assert contents() == after
    assert len(after) >= 3
    for name, text in after.items():
        assert text.count("tabs, not spaces") == 1, name
        assert ("Run the tests." in text) is (source != "AGENTS.md"), name
    for harness in harnesses_with_files():
        home.disconnect(harness)
    assert theirs.read_text() == "# House rules\n- tabs, not spaces\n"


def test_a_copy_of_the_file_of_a_harness_brings_only_the_users_own_words(home: Home, workspace: Path) -> None:
    theirs = home.root / FILES["claude-code"]
    theirs.parent.mkdir()
    theirs.write_text("# House rules\n")
    home.connect(CLAUDE_CODE)
    sync_harness_files(workspace)
    (workspace / "USER.md").write_bytes(theirs.read_bytes())
    for _ in range(3):
        sync_harness_files(workspace)
    assert theirs.read_text().count("Run the tests.") == 1


def test_a_harness_without_our_server_is_noted_without_tools(home: Home, workspace: Path) -> None:
    (home.root / ".claude.json").write_text('{"mcpServers": {"signet": {"command": "/opt/other", "args": []}}}')
    assert home.connect(CLAUDE_CODE).exit_code == 0
    assert read_connected(workspace)[0].servers_file == ""


def test_the_block_goes_even_if_the_note_was_lost(home: Home, workspace: Path) -> None:
    home.connect(CODEX)
    sync_harness_files(workspace)
    (workspace / "memory" / "harnesses.json").unlink()
    assert "Took the identity files out" in home.disconnect(CODEX).output
    assert not (home.root / FILES["codex"]).exists()


def test_codex_reads_its_override_if_that_is_not_empty(home: Home, workspace: Path) -> None:
    override = home.root / ".codex" / "AGENTS.override.md"
    override.parent.mkdir()
    override.write_text("")
    home.connect(CODEX)
    assert read_connected(workspace)[0].identity_file == str(override.with_name("AGENTS.md"))
    override.write_text("Mine.\n")
    home.connect(CODEX)
    (row,) = read_connected(workspace)
    assert row.identity_file == str(override)


def hide_codex(home: Home) -> Path:
    (home.root / ".codex" / "AGENTS.override.md").write_text("Mine.\n")
    return home.root / ".codex" / "AGENTS.override.md"


def hide_gemini(home: Home) -> Path:
    path = home.root / ".gemini" / "settings.json"
    settings = json.loads(path.read_text()) | {"context": {"fileName": ["NOTES.md", "../x"]}}
    path.write_text(json.dumps(settings))
    return home.root / ".gemini" / "NOTES.md"


@pytest.mark.parametrize(("harness", "hide"), [(CODEX, hide_codex), (GEMINI, hide_gemini)])
def test_a_file_that_the_harness_no_longer_reads_is_told_and_left(
    home: Home, workspace: Path, harness: Harness, hide: Callable[[Home], Path]
) -> None:
    home.connect(harness)
    sync_harness_files(workspace)
    former = home.root / FILES[harness.name]
    told = f"{harness.title} does not read {former}, which has your identity files"
    assert told not in home.run("connect").output
    read_now = hide(home)
    assert f"{told}, but {read_now}; `signet connect {harness.name}` moves them." in home.run("connect").output
    assert told in home.run("connect", harness.name, "--check").output
    findings = json.loads(home.run("doctor", "--json").stdout)["findings"]
    assert [found["state"] for found in findings if told in found["detail"]] == ["warn"]
    assert f"Took the identity files out of {former}." in home.connect(harness).output
    assert not former.exists()
    sync_harness_files(workspace)
    assert "Run the tests." in read_now.read_text()
    assert told not in home.run("connect").output


@pytest.mark.parametrize("names", ["GEMINI.md", ["A.md", "GEMINI.md"], [], ["../A.md", 1, ""], None])
def test_gemini_reads_its_own_file_unless_its_settings_say_otherwise(
    home: Home, workspace: Path, names: object
) -> None:
    (home.root / ".gemini").mkdir()
    (home.root / ".gemini" / "settings.json").write_text(json.dumps({"context": {"fileName": names}}))
    home.connect(GEMINI)
    assert read_connected(workspace)[0].identity_file == str(home.root / ".gemini" / "GEMINI.md")


def test_opencode_goes_on_to_read_the_instructions_of_claude_code(home: Home, workspace: Path) -> None:
    """OpenCode reads ``~/.claude/CLAUDE.md`` if it has none of its own, so none is made for it then."""
    theirs = home.root / ".claude" / "CLAUDE.md"
    theirs.parent.mkdir()
    theirs.write_text("Mine.\n")
    home.connect(OPENCODE)
    assert read_connected(workspace)[0].identity_file == ""


def test_a_moved_or_linked_directory_of_settings_is_noted_as_it_is(
    home: Home, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home.root / "dotfiles" / "gemini").mkdir(parents=True)
    (home.root / ".gemini").symlink_to(home.root / "dotfiles" / "gemini")
    home.connect(GEMINI)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home.root / "moved"))
    home.connect(CLAUDE_CODE)
    sync_harness_files(workspace)
    for path in (home.root / "dotfiles" / "gemini" / "GEMINI.md", home.root / "moved" / "CLAUDE.md"):
        assert "Run the tests." in path.read_text()


def test_a_workspace_that_cannot_be_written_does_not_keep_a_harness_from_connecting(home: Home) -> None:
    (home.root / ".agents").write_text("in the way")
    done = home.connect(CURSOR)
    assert done.exit_code == 78, "a part of it is not done"
    assert "the list of connected harnesses, cannot be written" in done.output
    assert home.settings(CURSOR).exists()
    assert home.disconnect(CURSOR).exit_code == 0
