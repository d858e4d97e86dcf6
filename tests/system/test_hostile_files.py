"""A FIFO, link or directory in place of a file of the workspace is refused, and nothing blocks.

Source: docs/operations.md "Exit codes".
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from signet_actors.runtime.logging.configuration import log_path
from tests.support.live_daemon import LiveDaemon, live_daemon, run_signet

pytestmark = pytest.mark.system


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
    done = run_signet(stopped, *arguments)
    assert done.returncode == 78, done.stderr
    assert f"signet: {lock} is a " in done.stderr
    assert "Traceback" not in done.stderr


@KINDS
def test_doctor_names_a_lock_that_is_no_regular_file(stopped: LiveDaemon, put: Callable[[Path], None]) -> None:
    put(stopped.workspace / ".daemon" / "lock")
    done = run_signet(stopped, "doctor")
    assert done.returncode == 1
    assert "fail  lock: " in done.stdout
    assert "Traceback" not in done.stderr


@KINDS
@pytest.mark.parametrize("name", ["address", "pid"])
def test_a_daemon_file_that_is_not_regular_counts_as_no_daemon(
    stopped: LiveDaemon, put: Callable[[Path], None], name: str
) -> None:
    put(stopped.workspace / ".daemon" / name)
    done = run_signet(stopped, "status")
    assert (done.returncode, "Traceback" in done.stderr) == (3, False)


@KINDS
def test_logs_skips_a_log_that_is_not_a_regular_file(stopped: LiveDaemon, put: Callable[[Path], None]) -> None:
    logs = stopped.workspace / ".daemon" / "logs"
    logs.mkdir(mode=0o700)
    put(logs / "daemon-2026-01-01.log")
    done = run_signet(stopped, "logs")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)


@pytest.mark.parametrize("name", ["ballast", "poison-commands"])
def test_a_fifo_in_place_of_a_file_of_the_writer_is_named_at_the_start(stopped: LiveDaemon, name: str) -> None:
    path = stopped.workspace / ".daemon" / name
    fifo(path)
    code, said = stopped.refused_start()
    assert (code, f"{path} is a FIFO" in said, "Traceback" in said) == (78, True, False)
    path.unlink()
    stopped.start()
    stopped.api.remember("Stored after its removal")
    assert stopped.stop() == 0


@KINDS
def test_a_list_of_poison_commands_that_is_no_regular_file_is_named_at_the_start(
    stopped: LiveDaemon, put: Callable[[Path], None]
) -> None:
    path = stopped.workspace / ".daemon" / "poison-commands"
    put(path)
    code, said = stopped.refused_start()
    assert (code, f"{path} is a " in said) == (78, True)
    assert not stopped.database.exists()


def test_vectors_are_searched_without_a_file_if_a_special_file_is_in_its_place(stopped: LiveDaemon) -> None:
    stopped.start()
    stopped.api.remember("My bicycle has a flat tyre")
    assert stopped.api.recalled("repairing a bike")
    assert stopped.stop() == 0
    (path,) = (stopped.workspace / ".daemon" / "index").glob("*.vectors")
    path.unlink()
    for put in (fifo, link, directory, unix_socket):
        put(path)
        stopped.start()
        assert stopped.api.recalled("repairing a bike"), put
        assert stopped.stop() == 0
        elsewhere = path.with_name("elsewhere")
        assert not elsewhere.exists() or elsewhere.read_text() == "not touched\n"
        if put is directory:
            path.rmdir()
        else:
            path.unlink(missing_ok=True)


def today(daemon: LiveDaemon) -> Path:
    return log_path(daemon.workspace / ".daemon" / "logs", time.time_ns() // 1_000_000)


@KINDS
def test_a_daemon_does_not_start_on_a_log_that_is_no_regular_file(
    stopped: LiveDaemon, put: Callable[[Path], None]
) -> None:
    log = today(stopped)
    log.parent.mkdir(mode=0o700)
    put(log)
    code, said = stopped.refused_start()
    assert code == 78
    assert f"{log} is a " in said
    elsewhere = log.with_name("elsewhere")
    assert not elsewhere.exists() or elsewhere.read_text() == "not touched\n"


@pytest.mark.parametrize("name", ["lock", "log"])
def test_a_file_with_a_hard_link_is_neither_truncated_nor_appended_to(stopped: LiveDaemon, name: str) -> None:
    path = today(stopped) if name == "log" else stopped.workspace / ".daemon" / name
    path.parent.mkdir(mode=0o700, exist_ok=True)
    other = stopped.root / "another program's"
    other.write_text("not touched\n")
    path.hardlink_to(other)
    code, said = stopped.refused_start()
    assert code == 78
    assert f"{path} has 2 hard links" in said
    assert other.read_text() == "not touched\n"


def test_the_disk_reserve_and_the_start_log_do_not_overwrite_a_hard_linked_file(stopped: LiveDaemon) -> None:
    other = stopped.root / "another program's"
    other.write_text("not touched\n")
    (stopped.workspace / ".daemon" / "ballast").hardlink_to(other)
    stopped.start()
    assert stopped.stop() == 0
    assert other.read_text() == "not touched\n"
    start_log = stopped.workspace / ".daemon" / "logs" / "start.log"
    start_log.unlink(missing_ok=True)
    start_log.hardlink_to(other)
    done = run_signet(stopped, "start")
    assert (done.returncode, other.read_text()) == (78, "not touched\n")
    assert "Traceback" not in done.stderr
