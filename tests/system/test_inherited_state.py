"""State that a daemon or a command inherits from its parent: blocked signals, closed or full streams.

Source: docs/reliability.md R19 and R24; docs/cli.md "The daemon" and "Exit codes".
"""

from __future__ import annotations

import fcntl
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.live_daemon import LiveDaemon, live_daemon, run_signet

pytestmark = pytest.mark.system

GUARD_S = 120
"""Against hanging, never a measurement."""


@contextmanager
def blocked(*signals: signal.Signals) -> Iterator[None]:
    """Processes that are started inside inherit the mask."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def signet(daemon: LiveDaemon, *arguments: str, **streams: Any) -> subprocess.CompletedProcess[bytes]:
    return run_signet(daemon, *arguments, text=False, **streams)


def shell(daemon: LiveDaemon, line: str) -> subprocess.CompletedProcess[bytes]:
    """``signet`` in ``line`` is the command line of this interpreter."""
    define = f'signet() {{ "{sys.executable}" -P -m signet_actors.cli "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", define + line],
        env=daemon.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=GUARD_S,
    )


def end(daemon: LiveDaemon) -> None:
    """Stop a daemon that `signet start` has started."""
    assert signet(daemon, "stop").returncode == 0
    daemon.gone()


def test_a_daemon_whose_parent_had_blocked_its_signals_stops_and_restarts_its_processes() -> None:
    with live_daemon(started=False) as daemon:
        with blocked(signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            daemon.start()
        kept = daemon.api.remember("kept")["id"]
        daemon.kill("writer")
        daemon.wait_ready()
        assert signet(daemon, "stop").returncode == 0
        assert daemon.process is not None
        assert daemon.process.wait(GUARD_S) == 0
        daemon.gone()
        daemon.start()
        assert [row["id"] for row in daemon.api.listed()] == [kept]


def test_stop_now_ends_a_daemon_with_a_hung_supervisor() -> None:
    with live_daemon() as daemon:
        kept = daemon.api.remember("kept")["id"]
        process = daemon.process
        assert process is not None
        process.send_signal(signal.SIGSTOP)
        told = signet(daemon, "stop", "--now")
        assert (told.returncode, f"pid {process.pid}" in told.stdout.decode()) == (0, True), told
        assert process.wait(GUARD_S) == -signal.SIGKILL
        daemon.gone()
        daemon.start()
        assert [row["id"] for row in daemon.api.listed()] == [kept]


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_start_and_stop_work_with_closed_standard_streams(closed: str) -> None:
    with live_daemon(started=False) as daemon:
        assert shell(daemon, f"signet start {closed}").returncode == 0
        try:
            assert shell(daemon, f"signet remember 'still here' {closed}").returncode == 0
            assert shell(daemon, "signet list").stdout.count(b"still here") == 1
        finally:
            assert shell(daemon, f"signet stop {closed}").returncode == 0
        daemon.gone()


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_up_runs_with_closed_standard_streams(closed: str) -> None:
    with live_daemon(started=False) as daemon:
        up = [sys.executable, "-P", "-m", "signet_actors.cli", "up"]
        daemon.command = ["bash", "-c", f'exec "$@" {closed}', "bash", *up]
        daemon.start()
        daemon.api.remember("x")
        assert daemon.stop() == 0


def full_device(path: Path) -> Path:
    """A device that takes nothing, like ``/dev/full``, and that is this test's own."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 7))
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        pytest.skip("device nodes can be made by root only, on a file system that allows them")
    return path


@pytest.mark.parametrize("unbuffered", [False, True])
def test_an_unwritable_output_is_reported_without_a_traceback(tmp_path: Path, unbuffered: bool) -> None:
    full = full_device(tmp_path / "full")
    environ = {"PYTHONUNBUFFERED": "1"} if unbuffered else {}
    with live_daemon(started=False, environ=environ) as daemon, full.open("wb", buffering=0) as output:
        started = signet(daemon, "start", stdout=output)
        try:
            assert (started.returncode, b"The daemon runs" in started.stderr) == (0, True), started
            assert b"Traceback" not in started.stderr
            signet(daemon, "remember", "something to print")
            for command in (("export", "-"), ("list",), ("status",), ("--json", "list"), ("--help",)):
                told = signet(daemon, *command, stdout=output)
                assert told.returncode == 74, told
                assert told.stderr.count(b"\n") == 1, told
                assert b"No space left on device" in told.stderr
        finally:
            end(daemon)


def test_a_closed_pipe_is_not_an_error() -> None:
    with live_daemon() as daemon:
        told = shell(daemon, "signet export - | head -c 1 >/dev/null; exit ${PIPESTATUS[0]}")
        assert (told.returncode, told.stderr) == (0, b"")


def as_directory(path: Path) -> None:
    path.mkdir()


def as_link(path: Path) -> None:
    path.symlink_to("/dev/null")


NAMES = ("pid", "address", "secret", "owner-token", "database", "ballast", "restore", "integrity-check")


@pytest.mark.parametrize("put", [as_directory, as_link])
@pytest.mark.parametrize("name", NAMES)
def test_a_special_file_in_place_of_a_daemon_file_is_reported_with_the_remedy(
    name: str, put: Callable[[Path], None]
) -> None:
    with live_daemon(started=False) as daemon:
        directory = daemon.workspace / ".daemon"
        directory.mkdir(parents=True, mode=0o700)
        put(directory / name)
        code, said = daemon.refused_start()
        assert (code, f"{directory / name} is a" in said, "remove it" in said) == (78, True, True), said
        told = signet(daemon, "start")
        assert (told.returncode, b"Traceback" in told.stderr) == (78, False), told
        assert str(directory / name).encode() in told.stderr


def test_a_special_file_in_place_of_a_socket_is_reported_with_the_remedy() -> None:
    with live_daemon() as daemon:
        (made,) = [path for path in sockets_of(daemon) if path.name == "writer.sock"]
        assert daemon.stop() == 0
        made.unlink(missing_ok=True)
        made.mkdir(parents=True, mode=0o700)
        made.parent.chmod(0o700)
        code, said = daemon.refused_start()
        assert (code, f"{made} must be a socket" in said) == (78, True), said
        made.rmdir()


def sockets_of(daemon: LiveDaemon) -> list[Path]:
    from signet_actors.runtime.messaging.sockets import socket_directory

    return sorted(socket_directory(Path(os.path.realpath(daemon.workspace))).iterdir())


def test_a_workspace_from_a_medium_without_modes_starts_and_is_private_again() -> None:
    with live_daemon() as daemon:
        stored = daemon.api.remember("The staging port is 5433")
        assert daemon.stop() == 0
        for path in (daemon.workspace, *daemon.workspace.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755)
        secret = daemon.workspace / ".daemon" / "secret"
        former = secret.read_bytes()
        daemon.start()
        assert daemon.api.recalled("staging port") == [stored["id"]]
        assert (secret.stat().st_mode & 0o777, secret.read_bytes() == former) == (0o600, False)


def test_start_refuses_a_workspace_held_by_another_process() -> None:
    with live_daemon(started=False) as daemon:
        memory = daemon.workspace / "memory"
        memory.mkdir(parents=True, mode=0o700)
        descriptor = os.open(memory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            told = signet(daemon, "start")
        finally:
            os.close(descriptor)
        assert (told.returncode, b"another process holds" in told.stderr) == (73, True), told
