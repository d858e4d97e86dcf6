"""What commands print."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from typing import Final

import pytest
from rich.cells import cell_len

from signet_actors.cli.connect_check import Check, HookRun, _detail_run
from signet_actors.cli.harnesses.registry import HARNESSES
from signet_actors.cli.memory_rows import print_memories
from signet_actors.cli.presentation import below_home, print_result
from signet_actors.cli.tables import print_wrapped


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("✓ ready", b"ok ready"),
        ("✗ gone → start", b"fail gone -> start"),
        ("● running · 3", b"* running - 3"),
        ("a…", b"a..."),
        ("──", b"--"),
        ("Caf\u00e9 \u6771", b"Caf\\xe9 \\u6771"),
    ],
)
def test_a_terminal_without_our_signs_shows_words(text: str, shown: bytes) -> None:
    assert text.encode("ascii", errors="signet") == shown


def test_an_entry_of_a_timeline_is_printed_with_the_id_of_its_memory_or_session(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [
        {"id": "m1", "content": "a result"},
        {"id": "m2", "content": "one of that time", "subject_type": "memory", "subject_id": "m2"},
        {"id": "temporal:memory:m3:captured", "content": "an entry", "subject_type": "memory", "subject_id": "m3"},
        {"id": "temporal:session:s1:session", "content": "a session", "subject_type": "session", "subject_id": "s1"},
    ]
    print_memories(rows)
    printed = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [(cells[0], cells[-1]) for cells in printed] == [
        ("m1", "a result"),
        ("m2", "one of that time"),
        ("m3", "an entry"),
        ("s1", "a session"),
    ]


COMMANDS: Final = (
    "signet-hook session-start",
    "/usr/bin/python3 -I /usr/bin/signet-hook session-start -H codex",
    "{home}/projects/signet-actors/.venv/bin/python -I {home}/projects/signet-actors/.venv/bin/signet-hook stop -H x",
    "{home}/.local/bin/signet-hook user-prompt-submit -H claude-code --workspace {home}/work/the-second-workspace",
    "/opt/{long}/bin/python -I /opt/{long}/bin/signet-hook session-start -H claude-code",
    "'/home/someone/My Projects/with a rather long name/.venv/bin/signet-hook' session-start -H claude-code --agent a",
    '"/home/someone/My Projects/with a rather long name/.venv/bin/signet-hook" session-start -H claude-code --agent a',
    r"/home/someone/My\ Projects/with\ a\ rather\ long\ name/.venv/bin/signet-hook session-start -H claude-code",
    "env A=1 B=2 C=3 D=4 E=5 F=6 G=7 H=8 I=9 {home}/bin/signet-hook a b c d e f g h i j k l m n o p q r s t",
    "{home}/デプロイ/bin/python -I {home}/デプロイは金曜日の14時以降は禁止されています/bin/signet-hook stop -H codex",
)


@pytest.mark.parametrize("width", [60, 80, 120])
@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_of_a_check_fits_the_terminal_and_can_be_copied_from_it(
    command: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = os.path.expanduser("~")
    given = command.format(home=home, long="x" * 90)
    on_a_terminal(monkeypatch, width)
    check = Check(HARNESSES[0], "", quiet=False, verbose=True)
    _detail_run(check, HookRun(given, 182.4, context="- A line that is long enough to be broken, " * 4))
    shown, _, rest = capsys.readouterr().out.partition("    answered in 182 ms\n")
    copied = subprocess.run(["/bin/sh", "-c", f"printf '%s\\n' {shown}"], capture_output=True, text=True, check=True)
    assert copied.stdout.splitlines() == shlex.split(given), "the lines are one command of a shell"
    is_whole = any(sign in given for sign in "'\"\\") or not given.isascii()
    for line in shown.splitlines():
        assert cell_len(line) <= width or is_whole or len(line.removesuffix(" \\").split()) == 1, line
    assert all(line.startswith("    │ ") and cell_len(line) <= width for line in rest.splitlines())


MESSAGES: Final = (
    "It has been moved: `signet connect claude-code --workspace /home/someone/the/second` connects it again",
    "other users may read {path} and others, so that they should be made private by `chmod go-rwx {path}` at once",
    "the hook {path} does not exist any more",
    "{path}",
    "Run `signet backfill claude-code --dry-run`, then `signet backfill claude-code`, then `signet sessions`.",
    "A sentence without any command or path, which is long enough to be broken two times at a width of sixty columns.",
    "An odd ` backquote in a sentence that is long enough to be broken at least once at a width of sixty columns.",
    "`signet restore memories-20261129T035858334Z-schema-20.db` restores it; `signet backup --list` shows the others",
)


@pytest.mark.parametrize("width", [60, 80])
@pytest.mark.parametrize("message", MESSAGES)
def test_no_path_and_no_command_of_a_message_is_broken(
    message: str, width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = message.format(path=f"/srv/{'x' * 40}/{'y' * 40}/signet-hook")
    on_a_terminal(monkeypatch, width)
    print_wrapped(text, lead="✓ ", indent=2, chop=False)
    print_result(text)
    shown = capsys.readouterr().out
    for whole in re.findall(r"`[^`]+`", text) + [word for word in text.split() if "/" in word and "`" not in word]:
        assert shown.count(whole) >= 2, (whole, shown)
    for line in shown.splitlines():
        plain = line.removeprefix("✓ ").strip()
        assert cell_len(line) <= width or "`" in plain or " " not in plain, line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/home/noor/.agents", "~/.agents"),
        ("/home/noor/.agents and /home/noor/x", "~/.agents and ~/x"),
        ("(/home/noor/.agents)", "(~/.agents)"),
        ("`/home/noor/bin/signet start`", "`~/bin/signet start`"),
        ("Replace\n/home/noor/a?", "Replace\n~/a?"),
        ("/home/noor", "/home/noor"),
        ("/home/noora/x", "/home/noora/x"),
        ("/srv/home/noor/x", "/srv/home/noor/x"),
        ("'/home/noor/my files'", "'/home/noor/my files'"),
        ('"/home/noor/my files"', '"/home/noor/my files"'),
        ("X=/home/noor/x", "X=/home/noor/x"),
        ("", ""),
    ],
)
def test_a_terminal_shows_the_home_directory_as_a_shell_reads_it(
    text: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/noor")
    assert below_home(text) == text, "a pipe gets whole paths"
    on_a_terminal(monkeypatch, 80)
    assert below_home(text) == shown


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for module in ("presentation", "tables", "connect_check"):
        monkeypatch.setattr(f"signet_actors.cli.{module}.on_terminal", lambda: True)
