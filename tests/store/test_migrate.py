from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import stat
from pathlib import Path

import apsw
import pytest

from signet_actors.domain.backups import parse_backup_name
from signet_actors.errors import ForeignDatabase, NewerSchema, UpgradeRefused
from signet_actors.runtime import sync_points
from signet_actors.store.sqlite.connect import APPLICATION_ID, open_reader, open_writer
from signet_actors.store.sqlite.migrate import Migration, load_migrations, migrate, schema_version
from signet_actors.store.sqlite.online_backup import backup
from tests.chaos.seeds import every_nth
from tests.support.stopping_vfs import StoppingVFS
from tests.support.store_room import SetClock, StoreRoom

ADDED = Migration(len(load_migrations()) + 1, "added", "CREATE TABLE added (x);\nINSERT INTO added VALUES (1);\n")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def writer(path: Path) -> apsw.Connection:
    return open_writer(path, busy=lambda calls: False)


def test_a_new_database_has_our_application_id_first_and_is_private(tmp_path: Path) -> None:
    path = tmp_path / "memory" / "memories.db"
    connection = writer(path)
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION_ID
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    migrate(connection, path, SetClock())
    assert schema_version(connection) == len(load_migrations())
    assert connection.pragma("journal_mode") == "wal"
    assert connection.pragma("synchronous") == 2
    connection.close()


def test_a_second_migration_run_changes_nothing(tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    assert migrate(room.connection, room.path, room.clock) == 0
    assert room.value("SELECT count(*) FROM schema_migrations") == len(load_migrations())
    assert room.value("SELECT count(*) FROM schema_migrations_audit") == len(load_migrations())
    room.close()


def foreign_database(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE memories (id); INSERT INTO memories VALUES (1)")
    connection.close()


@pytest.mark.parametrize("make", [foreign_database, lambda path: path.write_bytes(b"not a database at all" * 20)])
def test_a_foreign_file_is_refused_and_not_changed(tmp_path: Path, make: object) -> None:
    path = tmp_path / "memories.db"
    make(path)  # type: ignore[operator]
    before, names = digest(path), sorted(tmp_path.iterdir())
    with pytest.raises(ForeignDatabase, match="SIGNET_WORKSPACE"):
        writer(path)
    assert (digest(path), sorted(tmp_path.iterdir())) == (before, names)


def test_a_newer_schema_is_refused_and_not_changed(tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    room.connection.pragma("user_version", 99)
    room.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    before = digest(room.path)
    with pytest.raises(NewerSchema, match="schema 99"):
        migrate(room.connection, room.path, room.clock)
    assert digest(room.path) == before
    room.close()


def test_a_migration_changed_after_it_was_applied_is_refused(tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    room.connection.execute("UPDATE schema_migrations SET checksum = 'other'")
    with pytest.raises(UpgradeRefused, match="a different text"):
        migrate(room.connection, room.path, room.clock)
    room.close()


def test_an_upgrade_makes_a_verified_backup_first(tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    memory = room.remember("from the old release")
    assert migrate(room.connection, room.path, room.clock, migrations=(*load_migrations(), ADDED)) == 1
    (copy,) = (tmp_path / "backups").iterdir()
    assert parse_backup_name(copy.name) == (room.clock.wall, len(load_migrations()), copy.name)
    assert stat.S_IMODE(os.stat(copy.parent).st_mode) == 0o700
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    reader = open_reader(copy)
    assert reader.execute("SELECT id FROM memories").fetchall() == [(memory.id,)]
    assert reader.pragma("user_version") == len(load_migrations())
    reader.close()
    room.close()


@pytest.mark.parametrize("fault", ["statement", "sync_point"])
def test_an_interrupted_migration_leaves_the_old_schema(tmp_path: Path, fault: str) -> None:
    room = StoreRoom(tmp_path)
    room.remember("kept")
    broken = (
        ADDED
        if fault == "sync_point"
        else Migration(ADDED.version, "broken", ADDED.sql + "INSERT INTO nowhere VALUES (1);")
    )
    if fault == "sync_point":
        sync_points.arm("writer.mid_migration=raise:EIO")
    with pytest.raises((apsw.Error, OSError)):
        migrate(room.connection, room.path, room.clock, migrations=(*load_migrations(), broken))
    sync_points.arm("")
    assert schema_version(room.connection) == len(load_migrations())
    assert room.value("SELECT count(*) FROM sqlite_master WHERE name = 'added'") == 0
    assert room.value("SELECT count(*) FROM memories") == 1
    assert migrate(room.connection, room.path, room.clock, migrations=(*load_migrations(), ADDED)) == 1
    room.close()


def test_a_backup_contains_commits_that_are_only_in_the_log(tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    for index in range(50):
        room.remember(f"memory {index}")
    target = tmp_path / "copy.db"
    backup(room.connection, target, room.clock)
    reader = open_reader(target)
    assert reader.execute("SELECT count(*) FROM memories").get == 50
    reader.close()
    room.close()


def test_a_reader_can_neither_write_nor_checkpoint(tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    room.remember("something in the log")
    log = room.path.with_name("memories.db-wal")
    size = log.stat().st_size
    reader = open_reader(room.path)
    with pytest.raises(apsw.ReadOnlyError):
        reader.execute("DELETE FROM memories")
    with pytest.raises((apsw.ReadOnlyError, apsw.IOError)):
        reader.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    reader.close()
    assert log.stat().st_size == size
    room.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_first_start_that_stops_anywhere_can_be_repeated(tmp_path: Path) -> None:
    finished = False
    for stops in every_nth(itertools.count(), 6):
        if finished:
            break
        path = tmp_path / str(stops) / "memories.db"
        vfs = StoppingVFS(stops)
        connection = None
        try:
            connection = open_writer(path, busy=lambda calls: False, vfs="stopping")
            migrate(connection, path, SetClock())
            finished = True
        except (apsw.Error, OSError):
            pass
        vfs.left = 0 if not finished else 1 << 30
        if connection is not None:
            with contextlib.suppress(apsw.Error):
                connection.close()
        vfs.unregister()
        again = writer(path)
        migrate(again, path, SetClock())
        assert schema_version(again) == len(load_migrations()), stops
        assert again.pragma("integrity_check") == "ok"
        again.close()
    assert stops > 10
