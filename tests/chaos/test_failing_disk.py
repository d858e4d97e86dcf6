"""After a disk failure at any operation, acknowledged writes are stored and refused writes are not.

Source: docs/reliability.md R3, R4, R17.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import apsw
import pytest

from signet_actors.domain.backups import backup_name
from signet_actors.errors import ActorExit, ExitCode, StoreIOError
from signet_actors.store.sqlite.connect import open_writer
from signet_actors.store.sqlite.migrate import Migration, load_migrations, migrate, schema_version
from tests.chaos.seeds import every_nth
from tests.support.failing_disk import every_fault, prepare, run_with_fault
from tests.support.faulty_vfs import Fault, FaultyVFS
from tests.support.power_cut import fast_directory, unsound
from tests.support.recording_vfs import Recording, RecordingVFS, images, recorded_files
from tests.support.store_room import SetClock
from tests.support.writer_script import Ledger, ScriptedWriter

FAULTS = [
    ("read", "EIO", False),
    ("read", "EIO", True),
    ("write", "EIO", False),
    ("write", "EIO", True),
    ("write", "ENOSPC", False),
    ("write", "ENOSPC", True),
    ("sync", "EIO", False),
    ("sync", "EIO", True),
    ("truncate", "EIO", False),
    ("truncate", "EIO", True),
]
"""For ENOSPC in a read, a sync or a truncation SQLite returns the same ``SQLITE_IOERR_*`` as for EIO."""
SHARE = {"read": 12, "write": 12, "sync": 1, "truncate": 1}
"""Of the hundreds of reads and writes each run has another twelfth fail, of the few other operations each one."""
NEXT = Migration(
    len(load_migrations()) + 1,
    "next",
    "CREATE TABLE next_release (id INTEGER PRIMARY KEY, content TEXT NOT NULL) STRICT;"
    " INSERT INTO next_release (content) SELECT content FROM memories;"
    " UPDATE memories SET why = 'migrated';",
)


@pytest.fixture
def directory() -> Iterator[Path]:
    with fast_directory() as directory:
        yield directory


@pytest.fixture
def vfs() -> Iterator[FaultyVFS]:
    vfs = FaultyVFS()
    yield vfs
    vfs.unregister()


@pytest.fixture
def killed(directory: Path) -> tuple[Path, Ledger]:
    """Return a workspace whose writer was killed, and what it had acknowledged."""
    return directory / "killed", prepare(directory / "killed")


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "error", "stays"), FAULTS)
def test_every_single_disk_failure_is_answered_truthfully(
    directory: Path, killed: tuple[Path, Ledger], vfs: FaultyVFS, kind: str, error: str, stays: bool
) -> None:
    codes: Counter[str] = Counter()
    left = faults = 0
    for fault in every_nth(every_fault(kind, error, stays=stays), SHARE[kind]):
        outcome = run_with_fault(fault, *killed, directory / f"run-{fault.nth}", vfs)
        assert not outcome.wrong, f"{fault}: {outcome.wrong}"
        codes.update(outcome.codes - {""})
        left += bool(outcome.left)
        if not outcome.fired:
            break
        faults += 1
    print(f"{faults} faults, {left} writers ended by them, refusals by code {dict(codes)}")
    assert faults > 3
    if error == "ENOSPC":
        assert set(codes) == {"storage_full"}, "a full disk is refused as such"
        assert not left, "a full disk heals without a restart"
    else:
        assert left
        assert set(codes) <= {"outcome_unknown", "not_applied"}


def test_a_failed_sync_in_a_commit_ends_the_writer_and_acknowledged_writes_remain(
    directory: Path, killed: tuple[Path, Ledger], vfs: FaultyVFS
) -> None:
    for nth in range(1, 30):
        outcome = run_with_fault(Fault("sync", nth), *killed, directory / f"run-{nth}", vfs)
        assert not outcome.wrong
        if "outcome_unknown" in outcome.codes:
            assert outcome.left == [74]
            return
    raise AssertionError("no commit was reached")


def test_a_disk_failure_while_the_roster_is_stored_ends_the_writer(
    directory: Path, killed: tuple[Path, Ledger], vfs: FaultyVFS
) -> None:
    scripted = ScriptedWriter(killed[0], vfs=vfs.name)
    scripted.start()
    scripted.clock.advance(1000)  # the same row again would not be written
    vfs.arm(Fault("sync", 1, stays=True))
    with pytest.raises(ActorExit) as leaving:
        scripted.writer.reload(scripted.config)
    assert leaving.value.exit_code == ExitCode.IO_ERROR
    scripted.abandon()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "error", "stays"),
    [
        ("read", "EIO", False),
        ("write", "EIO", False),
        ("write", "EIO", True),
        ("write", "ENOSPC", False),
        ("sync", "EIO", False),
        ("sync", "EIO", True),
    ],
)
def test_a_disk_failure_in_a_migration_leaves_the_old_or_the_new_schema_and_a_complete_backup(
    directory: Path, killed: tuple[Path, Ledger], vfs: FaultyVFS, kind: str, error: str, stays: bool
) -> None:
    template, ledger = killed
    reached = set()
    for fault in every_nth(every_fault(kind, error, stays=stays), SHARE[kind]):
        root = directory / f"migration-{fault.nth}"
        shutil.copytree(template / "memory", root)
        path = root / "memories.db"
        vfs.arm(fault)
        try:
            with copies_on(vfs.name), failing_fsync(vfs):
                connection = open_writer(path, busy=lambda calls: False, vfs=vfs.name)
                try:
                    migrate(connection, path, SetClock(), migrations=[*load_migrations(), NEXT])
                finally:
                    connection.close()
        except (apsw.Error, StoreIOError, OSError):
            assert vfs.fired
        fired = vfs.fired
        vfs.arm(None)
        reached.add(check_migrated(path, ledger))
        shutil.rmtree(root)
        if not fired:
            break
    assert reached == {NEXT.version - 1, NEXT.version}, "both outcomes are met"


@pytest.mark.slow
def test_a_power_cut_in_a_migration_leaves_the_old_or_the_new_schema_and_a_complete_backup(
    directory: Path, killed: tuple[Path, Ledger]
) -> None:
    template, ledger = killed
    path = template / "memory" / "memories.db"
    before = {file.name: file.read_bytes() for file in path.parent.iterdir() if file.is_file()}
    recording = Recording()
    vfs = RecordingVFS(recording)
    with (
        recorded_files(recording),
        copies_on(vfs.name),
        closing(open_writer(path, busy=lambda calls: False, vfs=vfs.name)) as connection,
    ):
        migrate(connection, path, SetClock(), migrations=[*load_migrations(), NEXT])
    vfs.unregister()
    reached = Counter[int]()
    rng = random.Random(1)
    for image in images(recording, before, random.Random(1), subsets=1):
        if recording.steps[image.step].kind == "write" and rng.random() > 0.08:
            continue  # a sample of the many writes, and every other operation
        root = directory / f"image-{image.step}"
        root.mkdir()
        for name, data in image.files.items():
            file = root / "backups" / name if name.startswith("memories-") else root / name
            file.parent.mkdir(exist_ok=True)
            file.write_bytes(data)
        try:
            reached[check_migrated(root / "memories.db", ledger)] += 1
        except (AssertionError, apsw.Error) as error:
            error.add_note(f"cut after step {image.step}, {image.variant}")
            raise
        shutil.rmtree(root)
    print(f"{reached.total()} crash images by schema reached: {dict(reached)}")
    assert set(reached) == {NEXT.version - 1, NEXT.version}, "both outcomes are met"


@contextmanager
def copies_on(vfs: str) -> Iterator[None]:
    """Make and verify the backup on this disk too.

    If SQLite ends a copy without a result, apsw can only report the failure of this disk to the hook.
    """
    tell = sys.unraisablehook

    def hook(told: Any) -> None:
        if not isinstance(told.exc_value, apsw.IOError | apsw.FullError):
            tell(told)

    with (
        mock.patch.object(apsw, "Connection", partial(apsw.Connection, vfs=vfs)),
        mock.patch.object(sys, "unraisablehook", hook),
    ):
        yield


@contextmanager
def failing_fsync(vfs: FaultyVFS) -> Iterator[None]:
    """A sync by the process itself is a sync of this disk too."""
    fsync = os.fsync

    def synced(descriptor: int) -> None:
        try:
            vfs.operation("sync")
        except apsw.IOError as error:
            raise OSError(errno.EIO, "sync failed") from error
        fsync(descriptor)

    with mock.patch.object(os, "fsync", synced):
        yield


def check_migrated(path: Path, ledger: Ledger) -> int:
    """Return the schema version; the database must be undamaged and upgradable."""
    connection = open_writer(path, busy=lambda calls: False)
    try:
        reached = schema_version(connection)
        assert not ledger.broken_by(connection)
        copied = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'next_release'").get
        assert copied == (1 if reached == NEXT.version else 0)
        backup = path.parent / "backups" / backup_name(SetClock().wall_ms(), NEXT.version - 1)
        if reached == NEXT.version or backup.exists():
            check_backup(backup, ledger)
        assert migrate(connection, path, SetClock(), migrations=[*load_migrations(), NEXT]) == NEXT.version - reached
        assert not ledger.broken_by(connection)
        check_backup(backup, ledger)
        return reached
    finally:
        connection.close()


def check_backup(backup: Path, ledger: Ledger) -> None:
    assert backup.exists()
    copy = open_writer(backup, busy=lambda calls: False)
    try:
        assert schema_version(copy) == NEXT.version - 1
        assert not ledger.broken_by(copy)
        assert not unsound(copy, backup)
    finally:
        copy.close()
