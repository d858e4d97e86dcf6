"""The permitted targets of `signet backup --to` and `signet export`: regular files, and never a file of a database."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.live_daemon import LiveDaemon, live_daemon, run_signet

pytestmark = pytest.mark.system

GUARD_S = 120
"""Against hanging, never a measurement."""


@pytest.fixture(scope="module")
def daemon() -> Iterator[LiveDaemon]:
    """A daemon with three memories, which has them still when the tests are over."""
    with live_daemon() as daemon:
        kept = {daemon.api.remember(f"memory number {number}")["id"] for number in range(3)}
        yield daemon
        assert daemon.faults() == []
        assert {row["id"] for row in daemon.api.listed()} == kept
        assert daemon.stop() == 0
        daemon.start()
        assert {row["id"] for row in daemon.api.listed()} == kept


def signet(daemon: LiveDaemon, *arguments: str, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[bytes]:
    return run_signet(daemon, *arguments, stdout=stdout, text=False)


def exported(text: bytes) -> set[str]:
    """The memories of an export whose first line is its header."""
    header, *lines = [json.loads(line) for line in text.splitlines()]
    assert header["format"] == "signet-memories"
    return {line["content"] for line in lines}


ALL = {f"memory number {number}" for number in range(3)}

PROTECTED = (
    "memory/memories.db",
    "memory/memories.db-wal",
    "memory/memories.db-shm",
    "memory/new.jsonl",
    "memory/backups/new.db",
    ".daemon/lock",
    ".daemon/address",
    ".daemon/run/new",
)


@pytest.mark.parametrize("command", [("export",), ("backup", "--to")], ids=["export", "backup"])
@pytest.mark.parametrize("target", PROTECTED)
def test_a_file_of_the_database_or_the_daemon_is_no_target(
    daemon: LiveDaemon, command: tuple[str, ...], target: str
) -> None:
    path = daemon.workspace / target
    before = path.stat().st_ino if path.exists() else None
    ran = signet(daemon, *command, str(path))
    assert ran.returncode == 2, ran
    assert b"Traceback" not in ran.stderr
    assert (path.stat().st_ino if path.exists() else None) == before
    assert not path.with_name(path.name + ".partial").exists()
    assert daemon.api.get("/health").ok()["status"] == "healthy"


@pytest.mark.parametrize("command", [("export",), ("backup", "--to")], ids=["export", "backup"])
def test_the_database_is_recognised_through_links_and_in_other_workspaces(
    daemon: LiveDaemon, command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "linked").symlink_to(daemon.workspace / "memory")
    with live_daemon(started=False) as other:
        assert other.workspace != daemon.workspace
        foreign = other.workspace / "memory"
        foreign.mkdir(parents=True)
        (other.workspace / ".daemon").mkdir()
        (other.workspace / ".daemon" / "lock").touch()
        for target in (tmp_path / "linked" / "memories.db", foreign / "memories.db"):
            ran = signet(daemon, *command, str(target))
            assert (ran.returncode, b"belongs to the workspace" in ran.stderr) == (2, True), ran
        assert list(foreign.iterdir()) == []


@pytest.mark.parametrize("command", [("export",), ("backup", "--to")], ids=["export", "backup"])
def test_a_link_a_socket_and_a_missing_directory_of_no_use_are_refused_and_stay(
    daemon: LiveDaemon, command: tuple[str, ...], tmp_path: Path
) -> None:
    real, link, listening = tmp_path / "real", tmp_path / "link", tmp_path / "socket"
    real.write_text("mine")
    link.symlink_to(real)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(listening))
        for target in (link, listening):
            ran = signet(daemon, *command, str(target))
            assert (ran.returncode, b"Traceback" in ran.stderr) == (2, False), ran
        assert link.is_symlink()
        assert real.read_text() == "mine"
        assert listening.is_socket()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "real", "socket"]


def test_a_directory_is_no_file_to_export_to(daemon: LiveDaemon, tmp_path: Path) -> None:
    target = tmp_path / "directory"
    target.mkdir()
    ran = signet(daemon, "export", str(target))
    assert (ran.returncode, b"directory" in ran.stderr, b"Traceback" in ran.stderr) == (2, True, False)
    assert list(tmp_path.iterdir()) == [target]


def device(path: Path, minor: int) -> Path:
    """A character device of this test's own: 3 takes everything, 7 nothing."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, minor))
        path.write_bytes(b"")
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        pytest.skip("device nodes can be made by root only, on a file system that allows them")
    return path


@pytest.mark.parametrize(("minor", "code"), [(3, 0), (7, 1)])
def test_an_export_is_written_into_a_device_which_stays_one(
    daemon: LiveDaemon, tmp_path: Path, minor: int, code: int
) -> None:
    target = device(tmp_path / "device", minor)
    ran = signet(daemon, "export", str(target))
    assert (ran.returncode, b"Traceback" in ran.stderr) == (code, False), ran
    found = target.stat()
    assert (stat.S_ISCHR(found.st_mode), found.st_rdev) == (True, os.makedev(1, minor))
    assert list(tmp_path.iterdir()) == [target]


def test_no_backup_is_copied_over_a_device(daemon: LiveDaemon, tmp_path: Path) -> None:
    target = device(tmp_path / "device", 3)
    ran = signet(daemon, "backup", "--to", str(target))
    assert (ran.returncode, b"a device" in ran.stderr) == (2, True), ran
    assert stat.S_ISCHR(target.stat().st_mode)


def test_an_export_to_a_name_of_standard_output_goes_where_that_leads(daemon: LiveDaemon, tmp_path: Path) -> None:
    name = tmp_path / "stdout"  # /dev/stdout is such a link too
    name.symlink_to("/proc/self/fd/1")
    ran = signet(daemon, "export", str(name))
    assert (ran.returncode, exported(ran.stdout), ran.stderr) == (0, ALL, b"")
    assert name.is_symlink()
    with (tmp_path / "redirected").open("wb") as file:
        assert signet(daemon, "export", str(name), stdout=file.fileno()).returncode == 0
    assert exported((tmp_path / "redirected").read_bytes()) == ALL


def test_an_export_into_a_fifo_reaches_its_reader(daemon: LiveDaemon, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with subprocess.Popen(["cat", str(fifo)], stdout=subprocess.PIPE) as reader:
        assert signet(daemon, "export", str(fifo)).returncode == 0
        text, _ = reader.communicate(timeout=GUARD_S)
    assert exported(text) == ALL
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_fifo_where_the_unfinished_file_belongs_is_refused_instead_of_waited_for(
    daemon: LiveDaemon, tmp_path: Path
) -> None:
    target = tmp_path / "out.jsonl"
    os.mkfifo(tmp_path / "out.jsonl.partial")
    for command in (("export",), ("backup", "--to")):
        ran = signet(daemon, *command, str(target))
        assert (ran.returncode, b"out.jsonl.partial" in ran.stderr) == (2 if command == ("export",) else 1, True), ran
    assert stat.S_ISFIFO((tmp_path / "out.jsonl.partial").stat().st_mode)
    assert not target.exists()


def test_an_earlier_copy_and_an_earlier_export_are_replaced(daemon: LiveDaemon, tmp_path: Path) -> None:
    for command, name in ((("backup", "--to"), "copy.db"), (("export",), "out.jsonl")):
        target = tmp_path / name
        target.write_bytes(b"SQLite format 3\0 an earlier one")
        assert signet(daemon, *command, str(target)).returncode == 0
        assert target.stat().st_size > 100
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert {path.name for path in tmp_path.iterdir()} == {"copy.db", "out.jsonl"}
