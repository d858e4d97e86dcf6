"""Output of the command line on a terminal and in unusual locales, and input from unusual files.

Source: docs/cli.md "Output".
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon, living

pytestmark = pytest.mark.system

HANG_GUARD_S = 120
HOSTILE = "before \x1b]0;owned\x07 \x1b[2J \x9b31m \x7f \u202egnp.exe \u2066x\u2069 \u2028 after"
COMMANDS_OF_A_TERMINAL = [char.encode() for char in "\x1b\x07\x9b\x7f\u202e\u2066\u2069\u2028"]
ASCII_ONLY = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
LATIN = {"PYTHONIOENCODING": "latin-1"}


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    with live_daemon(config="logging: {level: debug}\n") as daemon:
        yield daemon


@pytest.fixture(scope="module")
def hostile_id(daemon: LiveDaemon) -> str:
    stored = daemon.api.remember(HOSTILE, tags=["evil\x9b31m"], who="me\u202e", project="p\x9b", sourcePath="/x\x9b")
    memory_id: str = stored["id"]
    daemon.api.request("PATCH", f"/api/memory/{memory_id}", {"importance": 0.5, "reason": "because \x9b31m"}).ok()
    log = next((daemon.workspace / ".daemon" / "logs").glob("daemon-*.log"))
    with log.open("ab") as file:
        file.write(json.dumps({"event": HOSTILE, "level": "info"}, ensure_ascii=False).encode() + b"\n")
        file.write(b"no json " + HOSTILE.encode() + b"\n")
    return memory_id


def command(daemon: LiveDaemon, *arguments: str | bytes) -> list[str | bytes]:
    return [sys.executable, "-P", "-m", "signet_actors.cli", *arguments]


def on_terminal(daemon: LiveDaemon, *arguments: str, stdin: int | None = None) -> tuple[int, bytes]:
    """The exit code, and everything that the terminal was sent."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command(daemon, *arguments),
        env=daemon.environment(TERM="dumb", NO_COLOR="1", COLUMNS="200"),
        stdin=subprocess.DEVNULL if stdin is None else theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    try:
        while block := os.read(ours, 65536):
            shown += block
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    return process.wait(HANG_GUARD_S), shown


def on_pipe(
    daemon: LiveDaemon,
    *arguments: str | bytes,
    environ: Mapping[str, str | bytes] | None = None,
    stdin: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    with (stdin or Path(os.devnull)).open("rb") as source:
        return subprocess.run(
            command(daemon, *arguments),
            env={**daemon.environment(), **(environ or {})},
            stdin=source,
            capture_output=True,
            check=False,
            timeout=HANG_GUARD_S,
        )


@pytest.mark.parametrize(
    "arguments",
    [
        ("export", "-"),
        ("show", "ID"),
        ("show", "ID", "--history"),
        ("show", "ID", "--json"),
        ("show", "ID", "--history", "--json"),
        ("history", "ID"),
        ("history", "ID", "--json"),
        ("list",),
        ("list", "--json"),
        ("recall", "before"),
        ("recall", "before", "--json"),
        ("forget", "--query", "before", "--preview"),
        ("logs", "-n", "1000"),
        ("logs", "-n", "1000", "--json"),
    ],
)
def test_control_characters_in_stored_text_are_escaped_on_a_terminal(
    daemon: LiveDaemon, hostile_id: str, arguments: tuple[str, ...]
) -> None:
    code, shown = on_terminal(daemon, *(hostile_id if part == "ID" else part for part in arguments))
    assert code == 0, shown
    assert b"31m" in shown
    assert [char for char in COMMANDS_OF_A_TERMINAL if char in shown] == []


def test_control_characters_in_error_messages_are_escaped_on_a_terminal(daemon: LiveDaemon) -> None:
    code, shown = on_terminal(daemon, "show", "no-such-\x9b31m", "--json")
    assert code == 1
    assert [char for char in COMMANDS_OF_A_TERMINAL if char in shown] == []


def test_an_export_to_a_pipe_has_the_daemon_s_bytes(daemon: LiveDaemon, hostile_id: str) -> None:
    def exported() -> bytes:
        return daemon.api.get("/api/memory/export", limit=500).raw

    before, lines, after = exported(), on_pipe(daemon, "export", "-").stdout, exported()
    while before != after:  # accesses of earlier commands were counted in between
        before, lines, after = exported(), on_pipe(daemon, "export", "-").stdout, exported()
    assert lines == after
    assert json.loads(lines.splitlines()[1])["content"] == daemon.api.memory(hostile_id)["content"]
    assert "\x9b".encode() in lines


@pytest.mark.parametrize("environ", [{"LC_ALL": "C"}, ASCII_ONLY, LATIN])
def test_characters_that_the_locale_cannot_encode_are_escaped(daemon: LiveDaemon, environ: dict[str, str]) -> None:
    text = "Café ☕ → 日本語"
    stored = on_pipe(daemon, "remember", text, "--tags", "locale", environ=environ)
    assert stored.returncode == 0, stored.stderr
    memory_id = stored.stdout.decode().strip()
    assert daemon.api.memory(memory_id)["content"] == text
    for arguments in (
        ("show", memory_id),
        ("show", memory_id, "--json"),
        ("list",),
        ("recall", text),
        ("history", memory_id),
        ("export", "-"),
        ("logs",),
        ("--help",),
        ("remember", "--help"),
        ("doctor",),
        ("status",),
        ("show", "no-such-ünd"),
    ):
        done = on_pipe(daemon, *arguments, environ=environ)
        assert done.returncode == (1 if arguments[-1] == "no-such-ünd" else 0), (arguments, done.stderr)
        assert b"Traceback" not in done.stderr


def test_a_text_that_is_not_utf8_is_refused(daemon: LiveDaemon) -> None:
    done = on_pipe(daemon, "remember", b"caf\xe9")
    assert done.returncode != 0
    assert b"not UTF-8" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("how", ["itself", "behind a link"])
@pytest.mark.parametrize(
    "arguments", [("up",), ("start",), ("stop",), ("status",), ("config", "path"), ("doctor",), ("remember", "x")]
)
def test_a_workspace_whose_path_is_not_utf8_is_refused(
    daemon: LiveDaemon, tmp_path: Path, how: str, arguments: tuple[str, ...]
) -> None:
    path = os.fsencode(tmp_path) + b"/w\xff"
    os.mkdir(path)
    if how == "behind a link":
        link = os.fsencode(tmp_path) + b"/link"
        os.symlink(path, link)
        path = link
    done = on_pipe(daemon, *arguments, environ={"SIGNET_WORKSPACE": path})
    assert done.returncode == 78, done.stderr
    assert b"not UTF-8 text" in done.stderr
    assert b"Traceback" not in done.stderr
    assert os.listdir(os.fsencode(tmp_path) + b"/w\xff") == []


@pytest.mark.parametrize("source", ["/dev/zero", "/dev/null", "fifo", "directory"])
def test_an_import_of_a_special_file_is_refused(daemon: LiveDaemon, tmp_path: Path, source: str) -> None:
    path = tmp_path / source if not source.startswith("/") else Path(source)
    if source == "fifo":
        os.mkfifo(path)
    elif source == "directory":
        path.mkdir()
    done = on_pipe(daemon, "import", str(path))
    assert done.returncode == 2
    assert (b"is a directory" if source == "directory" else b"not a regular file") in done.stderr


def test_an_import_from_a_terminal_is_refused(daemon: LiveDaemon) -> None:
    for file in ("-", "/dev/stdin"):
        code, shown = on_terminal(daemon, "import", file, stdin=1)
        assert code == 2, shown


def test_an_oversized_line_is_refused(daemon: LiveDaemon) -> None:
    imported = on_pipe(daemon, "import", "-", stdin=Path("/dev/zero"))
    assert imported.returncode == 1
    assert b"line 1 is longer than" in imported.stderr
    remembered = on_pipe(daemon, "remember", "-", stdin=Path("/dev/zero"))
    assert remembered.returncode == 2
    assert b"standard input is longer than" in remembered.stderr


@pytest.mark.parametrize("is_ignored", [False, True])
def test_a_daemon_in_the_foreground_stops_when_its_terminal_is_closed(is_ignored: bool) -> None:
    """Not if it was started with the signal ignored, as by ``nohup``."""
    with live_daemon(started=False) as daemon:
        ours, theirs = pty.openpty()

        def take_terminal() -> None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            if is_ignored:
                signal.signal(signal.SIGHUP, signal.SIG_IGN)

        daemon.process = subprocess.Popen(
            command(daemon, "up"),
            env=daemon.environment(),
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=take_terminal,  # noqa: PLW1509 - system calls only
        )
        living.append(daemon)
        os.close(theirs)
        os.set_blocking(ours, False)

        def shown() -> bool:
            with contextlib.suppress(BlockingIOError):
                while os.read(ours, 65536):
                    pass
            return True

        eventually(lambda: shown() and daemon.is_ready(), within_s=60, what="ready")
        memory = daemon.api.remember("the ferry leaves at nine")["id"]
        daemon.process.send_signal(signal.SIGHUP)
        eventually(
            lambda: shown() and reloads(daemon) == 1, within_s=60, what="an open terminal: the configuration is read"
        )
        os.close(ours)
        if is_ignored:
            daemon.process.send_signal(signal.SIGHUP)
            eventually(lambda: reloads(daemon) >= 2, within_s=60, what="read once more")
            assert daemon.is_ready()
            daemon.stop()
        else:
            assert daemon.process.wait(HANG_GUARD_S) == 0
            assert not (daemon.workspace / ".daemon" / "address").exists()
        assert [entry["code"] for entry in daemon.log() if entry["event"] == "stopped"] == [0]
        assert daemon.read("SELECT id FROM memories") == [(memory,)]
        assert daemon.broken_invariants() == []


def reloads(daemon: LiveDaemon) -> int:
    return sum(entry["event"] == "configuration_reloaded" for entry in daemon.log())
