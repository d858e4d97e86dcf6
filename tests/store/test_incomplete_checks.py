"""A check that cannot be completed (no descriptor, no space, a read error) reports this and no damage."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from signet_actors.config.workspace import Workspace
from signet_actors.domain.backups import backup_name, parse_backup_name
from signet_actors.errors import CheckIncomplete, ExitCode
from signet_actors.store.sqlite.connect import open_reader
from signet_actors.store.sqlite.migrate import load_migrations
from signet_actors.store.sqlite.online_backup import PARTIAL, verify_copy
from signet_actors.writer.backup import verify_backup
from signet_actors.writer.restore import restore
from tests.support.faulty_vfs import Fault, FaultyVFS
from tests.support.store_room import StoreRoom

NOW = 1_767_225_600_000
NAME = backup_name(NOW, len(load_migrations()))


@pytest.fixture
def backup(tmp_path: Path) -> Path:
    """An intact backup in the backup directory of a workspace without a database."""
    workspace = Workspace(tmp_path)
    workspace.ensure()
    workspace.backup_dir.mkdir(mode=0o700)
    source = tmp_path / "source"
    source.mkdir()
    room = StoreRoom(source)
    for number in range(200):
        room.remember(f"memory {number} " + "filler " * 40)
    room.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    room.close()
    path = room.path.rename(workspace.backup_dir / NAME)
    assert verify_backup(path, parse_backup_name(NAME)) == ([], 200)
    return path


@contextmanager
def descriptors(left: int) -> Iterator[None]:
    """Leave this process no more than ``left`` free descriptors."""
    probe = os.dup(0)
    os.close(probe)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (probe + left, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextmanager
def failing_disk(fault: Fault) -> Iterator[None]:
    """Let all connections that are opened meanwhile meet ``fault``."""
    former = apsw.vfs_names()[0]
    disk = FaultyVFS()
    apsw.set_default_vfs(disk.name)
    disk.arm(fault)
    try:
        yield
        assert disk.fired, "the disk did not fail"
    finally:
        apsw.set_default_vfs(former)


@pytest.mark.parametrize("left", [0, 1])
def test_a_copy_that_cannot_be_opened_is_not_reported_as_damaged(backup: Path, left: int) -> None:
    with descriptors(left), pytest.raises(CheckIncomplete, match="could not be checked"):
        verify_backup(backup, parse_backup_name(NAME))
    assert verify_backup(backup, parse_backup_name(NAME)) == ([], 200)


@pytest.mark.parametrize("nth", [1, 2, 5, 20, 60])
def test_a_copy_with_a_read_error_is_not_reported_as_damaged(backup: Path, nth: int) -> None:
    with failing_disk(Fault("read", nth, stays=True)), pytest.raises(CheckIncomplete, match="could not be checked"):
        verify_copy(backup)
    assert verify_copy(backup) == ([], 200)


def test_an_incomplete_verification_reports_its_reason_and_no_damage(backup: Path) -> None:
    partial = backup.rename(backup.with_name(NAME + PARTIAL))
    connection = apsw.Connection(str(partial))
    connection.execute("PRAGMA journal_mode = WAL")  # the check makes it a single file again, which writes
    connection.close()
    ran = subprocess.run(
        [sys.executable, "-m", "signet_actors.writer", "--verify", NAME, "--parent", str(os.getpid())],
        env={**os.environ, "SIGNET_WORKSPACE": str(backup.parents[2])},
        stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
        check=False,
    )
    verdict = json.loads(ran.stdout)
    assert (ran.returncode, verdict["ok"], verdict["findings"]) == (ExitCode.IO_ERROR, False, [])
    assert "could not be checked" in verdict["detail"]


def test_a_restore_that_cannot_check_the_backup_changes_nothing_and_keeps_it(backup: Path) -> None:
    workspace = Workspace(backup.parents[2])
    before = backup.read_bytes()
    with failing_disk(Fault("read", 20, stays=True)):
        told, code = restore(workspace, "latest", now_ms=NOW)
    assert (code, told.ok, told.other) == (ExitCode.IO_ERROR, False, None)
    assert "could not be checked" in told.findings[0]
    assert (backup.read_bytes(), workspace.database.exists()) == (before, False)
    told, code = restore(workspace, "latest", now_ms=NOW)
    assert (code, told.memories_after) == (ExitCode.OK, 200)
    reader = open_reader(workspace.database)
    assert reader.execute("SELECT count(*) FROM memories").get == 200
    reader.close()


def test_a_check_with_a_read_error_reports_no_damage(backup: Path) -> None:
    workspace = Workspace(backup.parents[2])
    backup.rename(workspace.database)
    check = [sys.executable, "-m", "signet_actors.writer", "--check"]
    environment = {**os.environ, "SIGNET_WORKSPACE": str(workspace.root)}
    ran = subprocess.run(
        check,
        env=environment,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6)),
        check=False,
    )
    report = json.loads(ran.stdout)
    assert (ran.returncode, report["ok"], report["kinds"]) == (ExitCode.IO_ERROR, False, ["unchecked"])
    ran = subprocess.run(check, env=environment, stdout=subprocess.PIPE, check=False)
    assert (ran.returncode, json.loads(ran.stdout)["memories"]) == (ExitCode.OK, 200)
