"""What stands in the place of a file of the workspace: a FIFO, a link, a directory. Each is refused, nothing waits.

Source: docs/operations.md "Exit codes".
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.live_daemon import LiveDaemon, live_daemon

pytestmark = pytest.mark.system

HANG_GUARD_S = 60


def fifo(path: Path) -> None:
    os.mkfifo(path, 0o600)


def link(path: Path) -> None:
    target = path.with_name("elsewhere")
    target.write_text("not touched\n")
    path.symlink_to(target)


def directory(path: Path) -> None:
    path.mkdir()


def unix_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


KINDS = pytest.mark.parametrize("put", [fifo, link, directory, unix_socket])


@pytest.fixture
def stopped() -> Iterator[LiveDaemon]:
    """A workspace that no daemon has run on."""
    with live_daemon(started=False) as daemon:
        (daemon.workspace / ".daemon").mkdir(mode=0o700)
        yield daemon


def signet(daemon: LiveDaemon, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-P", "-m", "signet_actors.cli", *arguments],
        env=daemon.environment(),
        cwd=daemon.root,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=HANG_GUARD_S,
        check=False,
    )


@KINDS
def test_a_daemon_does_not_start_on_a_lock_that_is_no_regular_file(
    stopped: LiveDaemon, put: Callable[[Path], None]
) -> None:
    lock = stopped.workspace / ".daemon" / "lock"
    put(lock)
    code, said = stopped.refused_start()
    assert code == 78
    assert f"{lock} is a " in said
    assert "Traceback" not in said
    assert not stopped.database.exists()


@KINDS
@pytest.mark.parametrize(
    "arguments", [("start",), ("up",), ("stop",), ("restore", "latest", "--yes"), ("doctor", "--repair", "--yes")]
)
def test_a_command_refuses_a_lock_that_is_no_regular_file(
    stopped: LiveDaemon, put: Callable[[Path], None], arguments: tuple[str, ...]
) -> None:
    lock = stopped.workspace / ".daemon" / "lock"
    put(lock)
    done = signet(stopped, *arguments)
    assert done.returncode == 78, done.stderr
    assert f"signet: {lock} is a " in done.stderr
    assert "Traceback" not in done.stderr


@KINDS
def test_doctor_names_a_lock_that_is_no_regular_file(stopped: LiveDaemon, put: Callable[[Path], None]) -> None:
    put(stopped.workspace / ".daemon" / "lock")
    done = signet(stopped, "doctor")
    assert done.returncode == 1
    assert "fail  lock: " in done.stdout
    assert "Traceback" not in done.stderr


@KINDS
@pytest.mark.parametrize("name", ["address", "pid"])
def test_a_note_that_is_no_regular_file_is_no_note(stopped: LiveDaemon, put: Callable[[Path], None], name: str) -> None:
    put(stopped.workspace / ".daemon" / name)
    done = signet(stopped, "status")
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)


@KINDS
def test_a_log_that_is_no_regular_file_is_passed_over(stopped: LiveDaemon, put: Callable[[Path], None]) -> None:
    logs = stopped.workspace / ".daemon" / "logs"
    logs.mkdir(mode=0o700)
    put(logs / "daemon-2026-01-01.log")
    done = signet(stopped, "logs")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
