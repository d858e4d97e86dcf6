"""One daemon at a time uses a database file, even if it is mounted into another directory.

Source: docs/reliability.md R10 and R15.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.bus_harness import eventually
from tests.support.live_daemon import LiveDaemon, live_daemon, run_signet

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(sys.platform != "linux", reason="elsewhere this lock and those of SQLite exclude each other"),
]


def tool(daemon: LiveDaemon, *arguments: str) -> tuple[int, str]:
    ran = run_signet(daemon, *arguments)
    return ran.returncode, ran.stdout + ran.stderr


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """The lock that a daemon has on the database that it uses."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


def is_locked(path: Path) -> bool:
    try:
        with locked(path):
            return False
    except BlockingIOError:
        return True


@contextmanager
def bind_mount(source: Path, target: Path) -> Iterator[None]:
    """Show ``source`` at ``target`` too; skip the test where that is not allowed."""
    try:
        mounted = subprocess.run(["mount", "--bind", source, target], capture_output=True, check=False, timeout=60)
    except FileNotFoundError:
        pytest.skip("there is no mount program")
    if mounted.returncode != 0:
        pytest.skip("only root may mount")
    try:
        yield
    finally:
        subprocess.run(["umount", target], capture_output=True, check=True, timeout=60)


def test_no_second_daemon_runs_on_a_database_that_is_mounted_into_another_workspace() -> None:
    with live_daemon() as first:
        stored = first.api.remember("Before the mount")["id"]
        second = LiveDaemon(first.root, name="second")
        second.database.parent.mkdir(mode=0o700, parents=True)
        second.database.touch(mode=0o600)
        with bind_mount(first.database, second.database):
            code, said = second.refused_start()
            assert (code, "another daemon" in said) == (73, True), said
            for command, expected in ((("restore", "latest", "--yes"), 73), (("doctor", "--deep"), 1)):
                code, said = tool(second, *command)
                assert (code, "another daemon" in said) == (expected, True), said
            more = first.api.remember("Beside the mount")["id"]
        assert {row["id"] for row in first.api.listed()} == {stored, more}
        assert first.faults() == []
        assert first.stop() == 0
        assert first.broken_invariants() == []


def test_two_workspaces_use_one_database_file_in_turn_and_find_what_the_other_stored() -> None:
    with live_daemon() as first:
        first.api.remember("My bicycle has a flat tyre")
        assert first.api.recall("repairing a bike")["results"]
        assert first.stop() == 0
        second = LiveDaemon(first.root, name="second")
        second.database.parent.mkdir(mode=0o700, parents=True)
        second.database.touch(mode=0o600)
        with bind_mount(first.database, second.database):
            second.start()
            second.api.remember("Sharks have no bones, only cartilage")
            assert second.api.recall("repairing a bike")["results"][0]["content"] == "My bicycle has a flat tyre"
            assert second.stop() == 0
            first.start()
            first.api.remember("The printer is out of toner")
            found = first.api.recall("marine animals anatomy")["results"]
            assert found[0]["content"] == "Sharks have no bones, only cartilage"
            assert first.stop() == 0
            second.start()
            assert second.api.recall("office equipment problem")["results"][0]["content"] == (
                "The printer is out of toner"
            )
            assert "intact; 3 memories" in tool(second, "doctor", "--deep")[1]
            assert second.stop() == 0
        assert first.broken_invariants() == []


def test_a_stale_log_of_another_workspace_is_not_applied() -> None:
    with live_daemon() as first:
        first.api.remember("In both")
        assert first.stop() == 0
        second = LiveDaemon(first.root, name="second")
        second.database.parent.mkdir(mode=0o700, parents=True)
        second.database.touch(mode=0o600)
        with bind_mount(first.database, second.database):
            first.start()
            first.api.remember("Only in the log of the first")
            first.kill_supervisor()
            first.gone()
            first.start()  # what one workspace alone left behind is found again
            assert len(first.api.listed()) == 2
            first.api.remember("Also only in the log")
            first.kill_supervisor()
            first.gone()
            second.start()
            stored = [second.api.remember(f"Note {number} of the second")["id"] for number in range(9)]
            assert second.stop() == 0
            code, said = first.refused_start()
            assert (code, "was changed by another daemon" in said) == (78, True), said
            code, said = tool(first, "doctor", "--deep")
            assert (code, "was changed by another daemon" in said) == (1, True), said
            for suffix in ("-wal", "-shm"):
                first.database.with_name(f"{first.database.name}{suffix}").unlink()
            first.start()
            assert {row["id"] for row in first.api.listed()} >= set(stored)
            assert first.stop() == 0
        assert first.broken_invariants() == []


def test_a_daemon_does_not_start_on_a_database_that_another_process_has_locked() -> None:
    with live_daemon() as daemon:
        stored = daemon.api.remember("kept")["id"]
        assert daemon.stop() == 0
        with locked(daemon.database):
            code, said = daemon.refused_start()
            assert (code, f"pid {os.getpid()}" in said) == (73, True), said
        daemon.start()
        assert [row["id"] for row in daemon.api.listed()] == [stored]


def test_a_daemon_keeps_the_database_lock_during_restarts_of_the_writer() -> None:
    with live_daemon() as daemon:  # whose database did not exist when it was started
        assert is_locked(daemon.database)
        killed = daemon.kill("writer")
        eventually(lambda: daemon.every_process()["writer"]["pid"] not in {killed, None}, what="another writer")
        daemon.wait_ready()
        assert is_locked(daemon.database)
        daemon.api.remember("the lock is in nobody's way")
        assert daemon.stop() == 0
        assert not is_locked(daemon.database)
        daemon.start()
        assert is_locked(daemon.database)
        daemon.kill_supervisor()
        daemon.gone()
        assert not is_locked(daemon.database)


def test_a_daemon_that_completes_a_restore_locks_the_restored_database() -> None:
    with live_daemon() as daemon:
        daemon.api.remember("in the backup")
        code, said = tool(daemon, "backup")
        assert code == 0, said
        assert daemon.stop() == 0
        before = daemon.database.stat().st_ino
        decide_restore(daemon)
        daemon.start()
        assert daemon.database.stat().st_ino != before
        assert is_locked(daemon.database)


def test_a_restored_database_locked_by_another_daemon_ends_the_start() -> None:
    with live_daemon() as daemon:
        daemon.api.remember("in the backup")
        assert tool(daemon, "backup")[0] == 0
        assert daemon.stop() == 0
        incoming = decide_restore(daemon)
        with locked(incoming):
            code, said = daemon.refused_start()
        assert (code, "another daemon" in said) == (73, True), said
        assert "Signet listens" not in said
        daemon.start()
        assert len(daemon.api.listed()) == 1


def decide_restore(daemon: LiveDaemon) -> Path:
    """A restore that was decided and cut off: the next start carries it out."""
    (backup,) = (daemon.workspace / "memory" / "backups").iterdir()
    incoming = daemon.workspace / "memory" / "memories.db.incoming"
    incoming.write_bytes(backup.read_bytes())
    (daemon.workspace / ".daemon" / "restore").write_text("aside-1\n")
    return incoming
