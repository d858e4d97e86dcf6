"""``signet connect`` adds our entries to a harness's settings and nothing else; ``disconnect`` leaves no trace.

The fixtures have the real formats: https://code.claude.com/docs/en/settings, https://developers.openai.com/codex/hooks.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.cli.harnesses import hook_settings
from signet_actors.cli.harnesses.json_text import InvalidText
from signet_actors.cli.harnesses.registry import CLAUDE_CODE, CODEX, HARNESSES, Harness
from signet_actors.hook.harness_events import HOOKS, NAME_OF_EVENT
from signet_actors.hook.spool import Spool
from signet_actors.runtime.file_draft import FileDraft
from tests.support.harness_home import Home, install_claude, make_home
from tests.support.scripted_daemon import ScriptedDaemon
from tests.support.terminal_screen import on_screen

FIXTURES = Path(__file__).parent / "fixtures" / "harnesses"
RICH = {
    "claude-code": (FIXTURES / "claude-code-settings.json").read_bytes(),
    "codex": (FIXTURES / "codex-hooks.json").read_bytes(),
}
STRICT = (CLAUDE_CODE, CODEX)
"""The harnesses whose hooks stand in strict JSON; the others are in ``test_connect_harnesses.py``."""
OF_STRICT = hook_settings.HookGroups(comments=False)
harnesses = pytest.mark.parametrize("harness", STRICT, ids=lambda harness: harness.name)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    return make_home(tmp_path, monkeypatch)


def ours(document: dict[str, Any]) -> dict[str, list[str]]:
    return {
        event: hook_settings.command_words(handler)
        for event, handler in hook_settings.handlers(document)
        if hook_settings.is_ours(handler)
    }


def foreign(document: dict[str, Any]) -> dict[str, Any]:
    """The document without our handlers, and without what is empty."""
    kept: dict[str, Any] = {key: value for key, value in document.items() if key != "hooks"}
    for event, groups in document.get("hooks", {}).items():
        for group in groups:
            handlers = [handler for handler in group["hooks"] if not hook_settings.is_ours(handler)]
            if handlers:
                kept.setdefault("hooks", {}).setdefault(event, []).append({**group, "hooks": handlers})
    return kept


@harnesses
def test_in_an_empty_home_connect_and_disconnect_leave_nothing(home: Home, harness: Harness) -> None:
    before = home.files()
    done = home.connect(harness)
    assert done.exit_code == 0, done.output
    path = home.settings(harness)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes().endswith(b"}\n")
    found = ours(json.loads(path.read_bytes()))
    assert {event: words[:4] for event, words in found.items()} == {
        event.name: [str(home.program), event.hook, "-H", harness.name] for event in harness.events
    }
    assert home.disconnect(harness).exit_code == 0
    assert home.files() == before


@harnesses
def test_in_a_rich_home_only_our_entries_come_and_go(home: Home, harness: Harness) -> None:
    path = home.write(harness, RICH[harness.name])
    path.chmod(0o640)
    before = home.files()
    assert home.connect(harness).exit_code == 0
    document = json.loads(path.read_bytes())
    assert foreign(document) == foreign(json.loads(RICH[harness.name]))
    assert set(ours(document)) == {event.name for event in harness.events}
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    backup = path.with_name(path.name + ".before-signet")
    assert (backup.read_bytes(), stat.S_IMODE(backup.stat().st_mode)) == (RICH[harness.name], 0o640)
    connected = path.read_bytes()
    assert "is connected already" in home.connect(harness).output
    assert path.read_bytes() == connected
    assert home.disconnect(harness).exit_code == 0
    assert home.files() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


every_harness = pytest.mark.parametrize(
    "harness",
    [one for one in HARNESSES if one.events and one.directory.count("/") == 0],
    ids=lambda harness: harness.name,
)


def in_an_environment(home: Home) -> str:
    """Have the program in a virtual environment from now on; return its Python."""
    (home.root / "pyvenv.cfg").write_text("")
    python = home.program.with_name("python")
    python.symlink_to(sys.executable)
    return str(python)


@harnesses
def test_the_program_of_a_virtual_environment_is_started_by_an_isolated_python(home: Home, harness: Harness) -> None:
    python = in_an_environment(home)
    named = home.root / "on path" / "signet-hook"
    named.parent.mkdir()
    named.symlink_to(home.program)
    for program in (home.program, named):
        assert home.run("connect", harness.name, "--command", str(program), "--agent", "ann").exit_code == 0
        assert ours(json.loads(home.settings(harness).read_bytes())) == {
            event.name: [python, "-I", str(program), event.hook, "-H", harness.name, "--agent", "ann"]
            for event in harness.events
        }
    printed = json.loads(home.run("connect", "generic", "--command", str(named), "--json").stdout)["hooks"]
    assert printed["recall"] == [python, "-I", str(named), "recall"]


@pytest.mark.parametrize("content", [None, b"{}\n", "rich"])
@pytest.mark.parametrize("again", [False, True], ids=["disconnect", "connect and disconnect"])
@pytest.mark.parametrize("harness", [one for one in HARNESSES if one.events], ids=lambda harness: harness.name)
def test_a_connection_of_an_earlier_release_is_replaced_and_leaves_no_trace(
    home: Home, harness: Harness, content: Any, again: bool
) -> None:
    if content and not harness.plugin:
        home.write(harness, RICH.get(harness.name, b"{}\n") if content == "rich" else content)
    before = home.files()
    home.connect(harness)
    assert {word for words in commands(home, harness) for word in words} >= {str(home.program)}
    assert not any("-I" in words for words in commands(home, harness))
    python = in_an_environment(home)
    environment = {"pyvenv.cfg": b"", "bin/python": home.program.with_name("python").read_bytes()}
    if again:
        assert "✓ Connected" in home.connect(harness).output
        assert all(words[:3] == [python, "-I", str(home.program)] for words in commands(home, harness))
        assert len(commands(home, harness)) == len(harness.events)
    assert home.disconnect(harness).exit_code == 0
    left = {name: text for name, text in home.files().items() if text is not None or not name.startswith(".config")}
    assert left == before | environment


def commands(home: Home, harness: Harness) -> list[list[str]]:
    found = harness.installed_hooks({"HOME": str(home.root)}).values()
    return [hook_settings.command_words({"type": "command", **handler}) for handler in found]


@pytest.mark.parametrize(
    ("command", "arguments", "expected"),
    [
        ("signet-hook", None, True),
        ("/opt/signet-hook session-start -H codex", None, True),
        ("'/opt/my tools/signet-hook' session-start", None, True),
        ("/opt/bin/python -I /opt/bin/signet-hook session-start", None, True),
        ("'/opt/my tools/python' -I '/opt/my tools/signet-hook' session-end --agent ann", None, True),
        ("/opt/bin/python -I /home/ann/.local/bin/signet-hook", None, True),
        ("/opt/signet-hook", ["session-start"], True),
        ("/opt/bin/python", ["-I", "/opt/bin/signet-hook", "session-start"], True),
        ("/opt/bin/python -I", None, False),
        ("/opt/bin/python", ["-I"], False),
        ("/opt/bin/python -I /opt/bin/lint.py signet-hook", None, False),
        ("/opt/bin/python -I -c pass /opt/bin/signet-hook", None, False),
        ("/opt/bin/python /opt/bin/signet-hook", None, False),
        ("/opt/bin/python -I /opt/bin/signet-hook.py", None, False),
        ("/opt/bin/python", ["-I -m signet-hook"], False),
        ("grep -I signet-hooks .", None, False),
        ("echo signet-hook", None, False),
        ("sh -c signet-hook", None, False),
        ("my-signet-hook", None, False),
        ("", None, False),
        ("", [], False),
    ],
)
def test_only_a_command_that_connect_writes_is_ours(command: str, arguments: Any, expected: bool) -> None:
    handler = {"type": "command", "command": command, **({} if arguments is None else {"args": arguments})}
    assert hook_settings.is_ours(handler) is expected


@pytest.mark.parametrize("kind", ["an empty directory", "a link to one", "a link to nothing", "no directory"])
@every_harness
def test_a_directory_that_connect_has_not_made_stays(home: Home, harness: Harness, kind: str) -> None:
    home.install_signet()
    directory, elsewhere = home.settings(harness).parent, home.root / "elsewhere"
    directory.parent.mkdir(parents=True, exist_ok=True)
    if kind == "an empty directory":
        directory.mkdir(mode=0o750)
    elif kind.startswith("a link"):
        directory.symlink_to(elsewhere, target_is_directory=True)
    if kind == "a link to one":
        elsewhere.mkdir(mode=0o750)
    before = {name: content for name, content in home.files().items() if not name.startswith("bin")}
    assert home.connect(harness).exit_code == 0
    assert home.settings(harness).exists()
    assert home.disconnect(harness).exit_code == 0
    assert {name: content for name, content in home.files().items() if not name.startswith("bin")} == before
    assert directory.is_symlink() == kind.startswith("a link")


@pytest.mark.parametrize("content", [b'{"model": "opus"}\n', None], ids=["settings", "no settings"])
@pytest.mark.parametrize("failing", ["replace", "sync", "changed"])
@every_harness
def test_a_connect_that_fails_leaves_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch, harness: Harness, failing: str, content: bytes | None
) -> None:
    path = home.settings(harness)
    directory_before = path.parent.exists()
    if content is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    elif failing == "changed":
        return
    method = "sync" if failing == "changed" else failing
    done = getattr(FileDraft, method)

    def fails(draft: FileDraft) -> None:
        if draft.target == path and failing == "changed":
            path.write_bytes(b'{"model": "haiku"}\n')
        elif draft.target == path:
            raise OSError(errno.EPERM if failing == "replace" else errno.ENOSPC, "it cannot be done")
        done(draft)

    monkeypatch.setattr(FileDraft, method, fails)
    before = home.files()
    refused = home.connect(harness)
    assert refused.exit_code != 0
    if failing != "changed":
        assert f"{path} cannot be written: it cannot be done" in refused.stderr
        assert home.files() == before
        assert path.parent.exists() == (directory_before or content is not None)
    assert [found.name for found in home.root.rglob("*before-signet")] == []


@every_harness
def test_a_full_disk_is_named_with_the_file_and_connect_does_not_end_well(
    home: Home, monkeypatch: pytest.MonkeyPatch, harness: Harness
) -> None:
    sync = FileDraft.sync

    def full(draft: FileDraft) -> None:
        if draft.target.name == "harnesses.json":
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(draft)

    monkeypatch.setattr(FileDraft, "sync", full)
    refused = home.connect(harness)
    assert refused.exit_code == 78
    assert (
        f"{home.root}/.agents/memory/harnesses.json, the list of connected harnesses, cannot be written"
        in refused.stderr
    )
    assert "No space left on device" in refused.stderr
    assert "None" not in refused.stderr
    monkeypatch.setattr(FileDraft, "sync", sync)
    assert home.connect(harness).exit_code == 0, "the same command completes it"
    assert home.disconnect(harness).exit_code == 0


def test_every_other_byte_of_the_file_stays(home: Home) -> None:
    path = home.write(CLAUDE_CODE, RICH["claude-code"])
    home.connect(CLAUDE_CODE)
    changed = path.read_text()
    rest = iter(changed)
    assert all(character in rest for character in RICH["claude-code"].decode()), "something was only inserted"
    assert '    "GREETING": "Grüße 🙂 \\u00e9\\/",\n' in changed
    assert '  "numbers": [1.50, -0, 1E+2],\n\t"tabbed": true\n\n}\n' in changed


@harnesses
def test_a_change_by_somebody_else_in_between_stays(home: Home, harness: Harness) -> None:
    path = home.write(harness, RICH[harness.name])
    home.connect(harness)
    theirs = path.read_text().replace("~/bin/check-command", "~/bin/other").replace("notify-send", "say")
    path.write_text(theirs)
    assert home.disconnect(harness).exit_code == 0
    expected = RICH[harness.name].decode().replace("~/bin/check-command", "~/bin/other").replace("notify-send", "say")
    assert path.read_text() == expected
    assert not path.with_name(path.name + ".before-signet").exists()


@harnesses
def test_settings_that_came_after_connect_stay(home: Home, harness: Harness) -> None:
    home.connect(harness)
    path = home.settings(harness)
    document = json.loads(path.read_bytes())
    document["hooks"]["SessionStart"].append({"hooks": [{"type": "command", "command": "date"}]})
    document["hooks"]["SessionEnd"][0]["hooks"].append({"type": "command", "command": "uptime"})
    path.write_text(json.dumps(document, indent=4))
    home.disconnect(harness)
    assert json.loads(path.read_bytes()) == {
        "hooks": {
            "SessionStart": [{"hooks": [{"type": "command", "command": "date"}]}],
            "SessionEnd": [{"hooks": [{"type": "command", "command": "uptime"}]}],
        }
    }


@harnesses
def test_another_command_replaces_the_former_entries(home: Home, harness: Harness) -> None:
    path = home.write(harness, RICH[harness.name])
    home.connect(harness)
    home.program = home.install(home.root / "new place")
    assert home.connect(harness, "--agent", "alice").exit_code == 0
    found = ours(json.loads(path.read_bytes()))
    assert len(found) == len(harness.events)
    assert all(words[0] == str(home.program) and words[-2:] == ["--agent", "alice"] for words in found.values())
    home.disconnect(harness)
    assert path.read_bytes() == RICH[harness.name]


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"{}", b"{ }", b"{\n}\n", b'{"hooks":{ }}', b'{"hooks": {"SessionStart": [ ]}}']
)
@harnesses
def test_an_almost_empty_file_comes_back_too(home: Home, harness: Harness, content: bytes) -> None:
    path = home.write(harness, content)
    assert home.connect(harness, "--agent", "alice").exit_code == 0
    assert set(ours(json.loads(path.read_bytes()))) == {event.name for event in harness.events}
    assert home.disconnect(harness).exit_code == 0
    assert path.read_bytes() == content


@harnesses
def test_dry_run_prints_a_diff_and_changes_nothing(home: Home, harness: Harness) -> None:
    path = home.write(harness, RICH[harness.name])
    before = home.files()
    done = home.connect(harness, "--dry-run")
    assert done.exit_code == 0
    assert done.output.startswith(f"--- {path}\n+++ {path}\n@@ ")
    assert "signet-hook" in done.output
    assert home.files() == before
    home.connect(harness)
    done = home.disconnect(harness, "--dry-run")
    lines = done.output.splitlines()[2:]
    assert any(line.startswith("-") and "signet-hook" in line for line in lines)
    assert not any(line.startswith("+") and "signet-hook" in line for line in lines)
    assert "Nothing would change." in home.connect(harness, "--dry-run").output


@harnesses
def test_a_symbolic_link_stays_one(home: Home, harness: Harness) -> None:
    dotfiles = home.root / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "agent.json").write_bytes(RICH[harness.name])
    path = home.settings(harness)
    path.parent.mkdir()
    path.symlink_to("../dotfiles/agent.json")
    before = home.files()
    home.connect(harness)
    assert path.is_symlink()
    assert ours(json.loads((dotfiles / "agent.json").read_bytes()))
    home.disconnect(harness)
    assert path.is_symlink()
    assert home.files() == before


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (b'{\n  // my settings\n  "model": "opus"\n}', 2, "comments are not valid in JSON"),
        (b'{\n  "model": "opus",}', 2, "not valid JSON"),
        (b'{"hooks": {},\n "hooks": {}}', 2, '"hooks" is there twice'),
        (b'{"hooks": {"Stop": [],\n "Stop": []}}', 2, '"Stop" is there twice'),
        (b'{"hooks": {"Stop": [{"hooks": [],\n "hooks": []}]}}', 2, '"hooks" is there twice'),
        (b'{"a": NaN}', 1, "NaN is not a JSON value"),
        (b"[1]", 1, "not an object"),
        (b'{\n"hooks": []}', 2, '"hooks" is not an object'),
        (b'{"hooks": {\n"Stop":\n{}}}', 3, "the hooks of Stop are not a list"),
        (b'{"hooks": {"Stop": [\n{"matcher": "x"}]}}', 2, 'an entry of Stop has no list "hooks"'),
        (b'{"a":\n\n"\xff"}', 3, "it is not UTF-8 text"),
        (b"[" * 100_000, 1, "not valid JSON"),
    ],
)
@harnesses
def test_a_file_that_is_not_valid_is_left_alone(
    home: Home, harness: Harness, content: bytes, line: int, problem: str
) -> None:
    path = home.write(harness, content)
    before = home.files()
    for done in (home.connect(harness), home.disconnect(harness), home.connect(harness, "--dry-run")):
        assert done.exit_code == 78
        assert f"{path}, line {line}: " in done.output
        assert problem in done.output
        assert "othing was changed" in done.output
    assert home.files() == before


@pytest.mark.parametrize("content", [b"", b"{}", RICH["claude-code"]])
def test_a_byte_order_mark_stays(home: Home, content: bytes) -> None:
    path = home.write(CLAUDE_CODE, b"\xef\xbb\xbf" + content)
    assert home.connect(CLAUDE_CODE).exit_code == 0
    text = path.read_bytes().decode()
    assert text.startswith("\ufeff{")
    assert ours(json.loads(text[1:]))
    assert home.disconnect(CLAUDE_CODE).exit_code == 0
    assert path.read_bytes() == b"\xef\xbb\xbf" + content
    path = home.write(CODEX, b"\xef\xbb\xbf" + content)
    assert home.connect(CODEX).exit_code == 78, "Codex does not read such a file"
    assert path.read_bytes() == b"\xef\xbb\xbf" + content


def test_a_key_that_is_there_twice_elsewhere_is_no_obstacle(home: Home) -> None:
    path = home.write(CLAUDE_CODE, b'{"env": {"A": "1", "A": "2"}, "model": "x", "model": "y"}')
    assert home.connect(CLAUDE_CODE).exit_code == 0
    assert path.read_bytes().startswith(b'{"env": {"A": "1", "A": "2"}, "model": "x", "model": "y", "hooks": ')


def test_a_file_that_changes_while_connect_works_is_not_overwritten(home: Home) -> None:
    path = home.write(CLAUDE_CODE, b"{}")
    (change,) = CLAUDE_CODE.connecting({"HOME": str(home.root)}, [str(home.program)], None)
    path.write_bytes(b'{"model": "opus"}')
    with pytest.raises(Exception, match="was changed in the meantime"):
        change.apply()
    assert path.read_bytes() == b'{"model": "opus"}'


@pytest.mark.parametrize(
    ("version", "is_known"),
    [
        ("2.1.75 (Claude Code)", False),
        ("2.1.76 (Claude Code)", True),
        ("2.1.100 (Claude Code)", True),
        ("3.0.0", True),
        ("1.0.99 (Claude Code)", False),
        ("unknown", False),
        ("", False),
    ],
)
def test_an_event_that_the_release_does_not_know_is_left_out(home: Home, version: str, is_known: bool) -> None:
    install_claude(home.root / "claude", version)
    home.connect(CLAUDE_CODE)
    path = home.settings(CLAUDE_CODE)
    found = set(ours(json.loads(path.read_bytes())))
    assert found | {"PostCompact"} == {event.name for event in CLAUDE_CODE.events}
    assert ("PostCompact" in found) is is_known
    install_claude(home.root / "claude", "2.1.76 (Claude Code)")
    home.connect(CLAUDE_CODE)
    assert "PostCompact" in ours(json.loads(path.read_bytes()))
    assert home.disconnect(CLAUDE_CODE).exit_code == 0
    assert not path.exists()


def test_disconnect_without_connect_says_so(home: Home) -> None:
    path = home.write(CODEX, RICH["codex"])
    assert "Codex is not connected" in home.disconnect(CODEX).output
    path.unlink()
    assert "Codex is not connected" in home.disconnect(CODEX).output


@pytest.mark.parametrize("left", [None, b"", b"{}"])
@harnesses
def test_the_last_copy_of_settings_that_vanished_is_kept(home: Home, harness: Harness, left: bytes | None) -> None:
    path = home.write(harness, RICH[harness.name])
    home.connect(harness)
    path.unlink()
    if left is not None:
        path.write_bytes(left)
    backup = path.with_name(path.name + ".before-signet")
    done = home.disconnect(harness)
    assert done.exit_code == 0
    assert "is not connected" in done.output
    assert str(backup) in done.output
    assert backup.read_bytes() == RICH[harness.name]
    if not left:
        assert str(backup) in home.connect(harness).output
        assert backup.read_bytes() == RICH[harness.name]
        assert path.exists() is (left is not None)


@harnesses
def test_a_hook_of_somebody_else_in_our_entry_stays(home: Home, harness: Harness) -> None:
    path = home.write(harness, RICH[harness.name])
    home.connect(harness)
    document = json.loads(path.read_bytes())
    theirs = {"type": "command", "command": "uptime"}
    next(group for group in document["hooks"]["SessionEnd"] if hook_settings.is_ours(group["hooks"][0]))[
        "hooks"
    ].append(theirs)
    former = json.loads(RICH[harness.name])
    with_theirs = OF_STRICT.connected(RICH[harness.name].decode(), OF_STRICT.installed(json.dumps(document)))
    path.write_text(with_theirs)
    assert home.disconnect(harness).exit_code == 0
    found = json.loads(path.read_bytes())
    former.setdefault("hooks", {}).setdefault("SessionEnd", []).append({"hooks": [theirs]})
    assert found == former


@pytest.mark.parametrize("is_moved", [False, True])
@harnesses
def test_only_a_file_that_connect_is_known_to_have_made_is_deleted(
    home: Home, harness: Harness, is_moved: bool
) -> None:
    home.connect(harness)
    path = home.settings(harness)
    if is_moved:
        path.rename(home.root / "dotfile.json")
        path.symlink_to(home.root / "dotfile.json")
    else:
        path.with_name(path.name + ".missing-before-signet").unlink()
    assert home.disconnect(harness).exit_code == 0
    assert json.loads(path.read_bytes()) == {}
    assert path.is_symlink() is is_moved


@harnesses
def test_the_former_content_is_that_of_the_last_connection(home: Home, harness: Harness) -> None:
    path = home.write(harness, RICH[harness.name])
    home.connect(harness)
    path.write_bytes(b'{"model" : "other"}')
    home.connect(harness)
    assert home.disconnect(harness).exit_code == 0
    assert path.read_bytes() == b'{"model" : "other"}'


@pytest.mark.parametrize("content", [b'{"hooks": { "Stop" : [ ] }}', b"{ }\n", b'{"hooks":{"SessionEnd":[ ]}}'])
@harnesses
def test_bytes_come_back_after_another_command_too(home: Home, harness: Harness, content: bytes) -> None:
    path = home.write(harness, content)
    home.connect(harness)
    home.program = home.install(home.root / "new place")
    home.connect(harness)
    assert home.disconnect(harness).exit_code == 0
    assert path.read_bytes() == content


def test_a_change_during_the_sync_of_the_draft_is_not_overwritten(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home.write(CLAUDE_CODE, b"{}")
    sync = FileDraft.sync
    drafts: list[str] = []

    def changes_meanwhile(draft: FileDraft) -> None:
        drafts.append(draft.path.name)
        sync(draft)
        if draft.target == path:
            path.write_bytes(b'{"model": "opus"}')

    monkeypatch.setattr(FileDraft, "sync", changes_meanwhile)
    for _ in range(2):
        path.write_bytes(b"{}")
        assert "was changed in the meantime" in home.connect(CLAUDE_CODE).output
        assert path.read_bytes() == b'{"model": "opus"}'
    assert len(set(drafts)) == 4
    assert not [found for found in path.parent.iterdir() if found.name in drafts]


def test_a_missing_or_misnamed_program_is_refused(home: Home) -> None:
    done = home.run("connect", "codex", "--command", str(home.root / "signet-hook"))
    assert (done.exit_code, "is not a program" in done.output) == (78, True)
    other = home.root / "other"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    done = home.run("connect", "codex", "--command", str(other))
    assert (done.exit_code, "is not named signet-hook" in done.output) == (78, True)


def test_the_workspace_of_the_shell_is_that_of_the_hooks(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNET_WORKSPACE", str(home.root / "work"))
    home.connect(CODEX)
    words = ours(json.loads(home.settings(CODEX).read_bytes()))["SessionStart"]
    assert words[-2:] == ["--workspace", str(home.root / "work")]


def test_the_harnesss_own_variable_moves_its_settings(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home.root / "elsewhere"))
    home.connect(CLAUDE_CODE)
    assert (home.root / "elsewhere" / "settings.json").exists()


@harnesses
def test_entries_have_only_what_the_published_schemas_know(harness: Harness) -> None:
    known = {"type", "command", "timeout", *(["args"] if harness is CLAUDE_CODE else [])}
    for group in harness.groups(["/opt/signet-hook"]).values():
        assert set(group) <= {"matcher", "hooks"}
        (handler,) = group["hooks"]
        assert set(handler) == known
        assert isinstance(handler["command"], str)
        assert type(handler["timeout"]) is int
        assert handler["timeout"] > 0


@harnesses
def test_every_event_calls_the_hook_that_its_name_means(harness: Harness) -> None:
    for event in harness.events:
        assert NAME_OF_EVENT[event.name] == event.hook
        assert HOOKS[event.hook].limit_s < event.timeout_s


def test_without_a_name_the_harnesses_and_their_state_are_listed(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(home.program.parent))
    monkeypatch.setattr(sys, "executable", str(home.program.parent / "python"))
    home.write(CODEX, b"{")
    rows = [line.split("\t") for line in home.run("connect").stdout.splitlines()]
    assert rows[0] == ["claude-code", "no", "not connected", str(home.settings(CLAUDE_CODE))]
    assert rows[1][:2] == ["codex", "settings"]
    assert rows[1][2].startswith(f"{home.settings(CODEX)}, line 1: not valid JSON")
    home.write(CODEX, b"{}")
    home.run("connect", "codex")
    home.run("connect", "claude-code", "--agent", "alice")
    states = [row["state"] for row in json.loads(home.run("connect", "--json").stdout)["harnesses"]]
    assert states[:2] == ["connected, by another command", "connected"]
    assert rows[0][1] == "no", "what connect has made is no sign of the program"


def test_the_list_has_a_line_for_each_harness_on_a_terminal(home: Home) -> None:
    code, screen = on_screen("http://127.0.0.1:9", "connect", width=80)
    rows = [line.split() for line in screen.splitlines()[2:]]
    assert code == 0
    assert [row[0] for row in rows] == [harness.name for harness in HARNESSES]
    assert rows[0][-1] == "~/.claude/settings.json"


def test_the_list_tells_what_waits_for_the_daemon(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Spool(str(home.root / ".agents"))
    assert "reports" not in home.run("connect").output
    for _ in range(3):
        kept.put("/api/hooks/session-end", {"idempotencyKey": "1"})
    kept.set_aside(kept.waiting()[0])
    said = home.run("connect").output
    assert f"For the daemon 2 reports wait in {kept.directory}." in said
    assert f"1 report was refused by the daemon: {kept.directory}/*.rejected (deleted 7 days later)." in said


def test_what_keeps_hooks_from_working_is_told(home: Home) -> None:
    other = {"type": "command", "command": "signet hook session-start -H claude-code"}
    content = {"disableAllHooks": True, "hooks": {"SessionStart": [{"hooks": [other]}]}}
    home.write(CLAUDE_CODE, json.dumps(content).encode())
    said = home.connect(CLAUDE_CODE).output
    assert "disableAllHooks is true" in said
    assert "Hooks of another Signet" in said
    (home.root / ".codex").mkdir()
    (home.root / ".codex" / "config.toml").write_text("[features]\nhooks = false\n")
    assert "[features] hooks is false" in home.connect(CODEX).output


KEY = st.sampled_from(["hooks", "SessionStart", "Stop", "model", 'é"\\', ""])
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(KEY, children, max_size=3),
    max_leaves=8,
)
HANDLER = st.sampled_from([{"type": "command", "command": "date"}, {"type": "http", "url": "http://x"}])
GROUP = st.builds(lambda hooks: {"hooks": hooks}, st.lists(HANDLER, min_size=1, max_size=2))
EVENTS = st.dictionaries(
    st.sampled_from(["SessionStart", "SessionEnd", "Stop"]), st.lists(GROUP, min_size=1, max_size=2)
)
DOCUMENT = st.builds(
    lambda rest, hooks: {**rest, **({"hooks": hooks} if hooks else {})},
    st.dictionaries(KEY.filter(lambda key: key != "hooks"), VALUE, max_size=3),
    EVENTS,
)


@given(document=DOCUMENT, indent=st.sampled_from([None, 2, 4, "\t"]), end=st.sampled_from(["", "\n", "\r\n\n"]))
def test_what_connect_adds_to_any_settings_can_be_taken_out_again(document: Any, indent: Any, end: str) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=False) + end
    if end == "\r\n\n":
        text = text.replace("\n", "\r\n")
    for harness in STRICT:
        groups = harness.groups(["/opt/my tools/signet-hook"])
        connected = OF_STRICT.connected(text, groups)
        assert foreign(json.loads(connected)) == document
        assert OF_STRICT.connected(connected, groups) == connected
        back = OF_STRICT.stripped(connected)
        assert json.loads(back) == document
        if document:
            assert back == text


@given(text=st.text(alphabet='{}[]",:\\ \n1ae/', max_size=30))
def test_no_text_makes_connect_fail_in_another_way(text: str) -> None:
    groups = CODEX.groups(["signet-hook"])
    with contextlib.suppress(InvalidText):
        assert set(ours(json.loads(OF_STRICT.connected(text, groups)))) == set(groups)


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> Any:
    scripted = ScriptedDaemon()
    monkeypatch.setenv("SIGNET_DAEMON_URL", scripted.url)
    yield scripted
    scripted.close()


def canary_daemon(daemon: ScriptedDaemon, *, answers: bool) -> None:
    """Have the daemon answer a prompt with the memory that was stored last, or with nothing."""
    stored: list[str] = []
    answer = daemon._next

    def next_answer(method: str, path: str) -> Any:
        if path == "/api/memory/remember":
            stored.append(daemon.asked[-1].body["content"])
        scripted = answer(method, path)
        if path == "/api/hooks/user-prompt-submit":
            scripted.body = {"inject": f"- {stored[-1]}" if answers else ""}
        return scripted

    daemon._next = next_answer
    daemon.on("POST", "/api/hooks/session-start", {"inject": "[memory active]\n- prefers vim"})
    daemon.on("POST", "/api/hooks/user-prompt-submit", {})
    daemon.on("POST", "/api/hooks/session-end", {"memoriesSaved": 0, "reason": "No such file or directory"})
    daemon.on("POST", "/api/memory/remember", {"id": "01a2", "type": "fact", "content": "x"})
    daemon.on("POST", "/api/memory/forget", {"confirmToken": "t-1", "mode": "preview"})


@harnesses
def test_check_proves_that_the_agent_gets_a_memory(home: Home, daemon: ScriptedDaemon, harness: Harness) -> None:
    canary_daemon(daemon, answers=True)
    home.connect(harness)
    done = home.run("--url", daemon.url, "connect", harness.name, "--check")
    assert done.exit_code == 1, "it has no tools"
    later = harness.name == "gemini"
    start = "what it has comes with the first prompt" if later else "the agent gets 29 characters"
    folder = {"claude-code": "projects", "codex": "sessions", "gemini": "tmp", "cursor": "projects"}[harness.name]
    assert done.output.splitlines()[2:] == [
        f"✓ start       {start}",
        "✓ prompt      a memory that was stored just now comes back",
        f"✓ transcript  sessions in {home.root}/{harness.directory}/{folder} are kept",
        f"✗ tools       not installed; `signet connect {harness.name}` adds them",
    ]
    paths = [asked.path for asked in daemon.asked]
    assert paths == [
        "/api/hooks/session-start",
        "/api/memory/remember",
        "/api/hooks/user-prompt-submit",
        "/api/hooks/session-end",
        "/api/hooks/session-end",
        "/api/memory/forget",
        "/api/memory/forget",
    ]
    assert daemon.asked[0].body["harness"] == harness.name
    last = {"ids": ["01a2"], "force": True, "mode": "execute", "confirm_token": "t-1"}
    assert last.items() <= daemon.asked[-1].body.items(), "the memory is forgotten for good"
    shown = home.run("--url", daemon.url, "connect", harness.name, "--check", "-v").output
    assert (
        f"signet-hook user-prompt-submit -H {harness.name}" in shown,
        later or "    │ - prefers vim\n" in shown,
    ) == (True, True)


def test_where_only_the_owner_may_forget_for_good_the_memory_of_a_check_can_be_recovered(
    home: Home, daemon: ScriptedDaemon
) -> None:
    canary_daemon(daemon, answers=True)
    daemon.on("POST", "/api/memory/forget", {"error": "only the owner", "code": "forbidden"}, status=403)
    daemon.on("DELETE", "/api/memory/01a2", {"id": "01a2", "status": "deleted", "success": True})
    home.connect(CLAUDE_CODE)
    assert "✓ prompt" in home.run("--url", daemon.url, "connect", "--check").output
    assert daemon.asked[-1].method == "DELETE"


def test_check_tells_that_a_memory_does_not_come_back(home: Home, daemon: ScriptedDaemon) -> None:
    canary_daemon(daemon, answers=False)
    home.connect(CLAUDE_CODE)
    done = home.run("--url", daemon.url, "connect", "--check")
    assert done.exit_code == 1
    assert "a memory was stored to be asked for, but a prompt that asks for it brought nothing" in done.output
    assert daemon.asked[-1].path == "/api/memory/forget"


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("disabled", "hooks.sessionEnd.enabled is false; `signet config set hooks.sessionEnd.enabled true`"),
        (
            "transcriptPath is outside the workspace and the folders of the harnesses",
            "the daemon does not read ~/.codex/sessions; `signet connect codex` adds it",
        ),
        (
            "transcriptPath cannot be opened: Permission denied",
            "~/.codex/sessions: transcriptPath cannot be opened: Permission denied",
        ),
        ("bypassed", "~/.codex/sessions: bypassed"),
        (None, "the settings have no hook of Signet for Stop and SessionEnd; `signet connect codex`"),
    ],
)
def test_check_tells_why_no_session_would_be_kept(
    home: Home, daemon: ScriptedDaemon, reason: str | None, told: str
) -> None:
    canary_daemon(daemon, answers=True)
    home.connect(CODEX)
    if reason is None:
        path = home.settings(CODEX)
        document = json.loads(path.read_bytes())
        del document["hooks"]["Stop"], document["hooks"]["SessionEnd"]
        path.write_text(json.dumps(document))
    else:
        daemon.on("POST", "/api/hooks/session-end", {"skipped": True, "reason": reason})
    told = told.replace("~", str(home.root))
    done = home.run("--url", daemon.url, "connect", "codex", "--check")
    assert done.exit_code == 1
    assert f"✗ transcript  sessions are not kept: {told}\n" in done.output
    (check,) = json.loads(home.run("--url", daemon.url, "connect", "codex", "--check", "--json").stdout)["harnesses"]
    assert check["transcript"]["folder"] == str(home.root / ".codex/sessions")
    assert check["transcript"]["problem"] == told
    asked = [asked.body for asked in daemon.asked if asked.path == "/api/hooks/session-end" and reason]
    assert all(body["sessionKey"].startswith("signet-check-") for body in asked)


def test_connect_and_disconnect_print_json(home: Home) -> None:
    path = str(home.settings(CODEX))
    options = ("connect", "codex", "--command", str(home.program))
    would = json.loads(home.run("--json", *options, "--dry-run").stdout)
    assert (would["harness"], [change["file"] for change in would["changes"]]) == ("codex", [path])
    assert would["changes"][0]["diff"].startswith(f"--- {os.devnull}\n+++ {path}\n")
    made = json.loads(home.run(*options, "--json").stdout)
    assert made == {"harness": "codex", "state": "connected", "changed": [path]}
    again = json.loads(home.run(*options, "--json").stdout)
    assert again == {"harness": "codex", "state": "connected", "changed": []}
    would = json.loads(home.run("disconnect", "codex", "--dry-run", "--json").stdout)
    assert (len(would["changes"]), would["identityFiles"]) == (1, [])
    gone = json.loads(home.run("disconnect", "codex", "--json").stdout)
    assert gone == {"harness": "codex", "state": "not connected", "changed": [path]}
    assert json.loads(home.run("disconnect", "codex", "--json").stdout)["changed"] == []
    plugin = home.run("--json", "connect", "claude-code", "--plugin", str(home.root / "plugin"))
    assert json.loads(plugin.stdout) == {"harness": "claude-code", "plugin": str(home.root / "plugin")}


@pytest.mark.parametrize("answers", [True, False])
def test_check_prints_json(home: Home, daemon: ScriptedDaemon, answers: bool) -> None:
    canary_daemon(daemon, answers=answers)
    home.connect(CODEX)
    done = home.run("connect", "--check", "--json")
    (check,) = json.loads(done.stdout)["harnesses"]
    assert done.exit_code == check["exitCode"] == 1
    assert (check["harness"], check["file"], check["ok"]) == ("codex", str(home.settings(CODEX)), False)
    assert check["tools"]["problem"].startswith("not installed")
    assert check["sessionStart"]["context"] == "[memory active]\n- prefers vim"
    assert check["sessionStart"]["problem"] is None
    assert check["prompt"]["problem"] == (None if answers else "a prompt that asks for it brought nothing")
    assert isinstance(check["prompt"]["answeredMs"], int)


def test_check_prints_json_while_the_daemon_is_away(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGNET_DAEMON_URL", "http://127.0.0.1:1")
    home.connect(CODEX)
    done = home.run("connect", "codex", "--check", "--json")
    (check,) = json.loads(done.stdout)["harnesses"]
    assert (done.exit_code, check["ok"]) == (3, False)
    assert "no daemon answers at http://127.0.0.1:1" in check["sessionStart"]["problem"]


def test_check_says_that_memory_is_off_in_this_directory(home: Home, daemon: ScriptedDaemon) -> None:
    canary_daemon(daemon, answers=False)
    daemon.on("POST", "/api/hooks/recall", {"results": [], "skipped": True, "reason": "other_project"})
    home.connect(CLAUDE_CODE)
    done = home.run("--url", daemon.url, "connect", "--check")
    assert done.exit_code == 1
    assert "which is not in `projects.only` of the daemon's agent.yaml" in done.output
    assert daemon.asked[-1].path == "/api/memory/forget"


def test_check_shows_what_the_agent_is_told_while_the_daemon_is_away(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGNET_DAEMON_URL", "http://127.0.0.1:1")
    home.connect(CODEX)
    done = home.run("connect", "codex", "--check")
    assert done.exit_code == 3
    line = (
        "✗ start       the agent gets no memory: no daemon answers at http://127.0.0.1:1. Start it with `signet start`."
    )
    assert done.output.splitlines()[2:] == [line]


def test_check_tells_that_the_command_is_gone(home: Home, daemon: ScriptedDaemon) -> None:
    for harness in STRICT:
        home.connect(harness)
    home.program.unlink()
    done = home.run("connect", "--check")
    assert done.exit_code == 1
    assert "it cannot be started: No such file or directory" in done.output
    assert "it ended with exit code 127" in done.output


@pytest.mark.parametrize("timeout", [None, "5", -1])
def test_check_runs_a_hook_with_an_odd_timeout(home: Home, daemon: ScriptedDaemon, timeout: Any) -> None:
    canary_daemon(daemon, answers=True)
    home.connect(CODEX)
    path = home.settings(CODEX)
    document = json.loads(path.read_bytes())
    for _, handler in hook_settings.handlers(document):
        handler["timeout"] = timeout
    path.write_text(json.dumps(document))
    assert "✓ prompt" in home.run("--url", daemon.url, "connect", "codex", "--check").output


def test_a_connection_that_does_not_work_is_not_listed_as_connected(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(home.program.parent / "python"))
    home.connect(CODEX)
    path = home.settings(CODEX)
    whole = path.read_text()

    def state() -> str:
        rows = json.loads(home.run("connect", "--json").stdout)["harnesses"]
        return str(next(row["state"] for row in rows if row["harness"] == "codex"))

    path.write_text(whole.replace(str(home.program), f"/gone/python -I {home.program}"))
    assert state() == "connected, but /gone/python does not exist"
    path.write_text(whole)
    assert state() == "connected"
    document = json.loads(whole)
    del document["hooks"]["Stop"], document["hooks"]["PreCompact"]
    path.write_text(json.dumps(document))
    assert state() == "connected, but no hook runs at PreCompact and Stop"
    path.write_text(whole)
    home.program.write_text("#!/gone/python\n")
    assert state() == "connected, but /gone/python does not exist"


def test_check_without_a_connection_says_so(home: Home) -> None:
    done = home.run("connect", "--check")
    assert (done.exit_code, "nothing is connected" in done.output) == (78, True)
    done = home.run("connect", "codex", "--check")
    assert (done.exit_code, "the settings have no hook of Signet for SessionStart" in done.output) == (1, True)
