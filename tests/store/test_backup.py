"""Backups made between commits; an interrupted restore leaves the old or the new database and deletes nothing."""

from __future__ import annotations

import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from click.testing import CliRunner

from signet_actors.cli.main import cli
from signet_actors.config.workspace import Workspace
from signet_actors.domain.backups import backup_name, newest_first, parse_backup_name, surplus
from signet_actors.errors import ConfigError, DatabaseMissing, ExitCode, InvalidRequest, StoreIOError
from signet_actors.runtime import sync_points
from signet_actors.runtime.clock import SystemClock
from signet_actors.store.sqlite.connect import open_copy, open_reader, open_writer
from signet_actors.store.sqlite.migrate import load_migrations
from signet_actors.store.sqlite.online_backup import PARTIAL, OnlineBackup, backup
from signet_actors.writer.backup import BackupWork, verify_backup
from signet_actors.writer.restore import finish_restore, restore
from tests.support.store_room import StoreRoom

REPOSITORY = Path(__file__).parents[2]
RESTORE = """
import sys
from pathlib import Path
from signet_actors.config.workspace import Workspace
from signet_actors.runtime import sync_points
from signet_actors.writer.restore import restore

sync_points.arm(sys.argv[3])
restore(Workspace(Path(sys.argv[1])), "latest", now_ms=int(sys.argv[2]))
"""
NOW = 1_767_225_600_000
SCHEMA = len(load_migrations())


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    sync_points.arm("")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = Workspace(tmp_path / "w")
    found.ensure()
    return found


def contents(path: Path) -> set[str]:
    reader = open_reader(path)
    try:
        return {content for (content,) in reader.execute("SELECT content FROM memories")}
    finally:
        reader.close()


def test_a_backup_name_contains_time_and_schema() -> None:
    name = backup_name(NOW + 7, 3)
    assert parse_backup_name(name) == (NOW + 7, 3, name)
    older = backup_name(NOW, 12)
    assert [found.name for found in newest_first(["x.db", older, name, f"{name}.partial"])] == [name, older]
    assert surplus([older, name], 1, made=name, now_ms=NOW) == [older]
    assert surplus([older, name], 1, made=older, now_ms=NOW) == [name], "the clock went back"
    assert surplus([older, name], 2, made=older, now_ms=NOW) == []
    for other in (
        "memories.db",
        "../memories-20260101T000000000Z-schema-1.db",
        "memories-20261399T000000000Z-schema-1.db",
    ):
        assert parse_backup_name(other) is None


def test_a_copy_contains_commits_made_during_the_copy(tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    for number in range(200):
        room.remember(f"before {number} " + "filler " * 60)
    target = tmp_path / "copy.db"
    copy = OnlineBackup(room.connection, tmp_path / ("copy.db" + PARTIAL))
    number = 0
    while not copy.step(room.clock, -1):
        room.remember(f"meanwhile {number}")
        number += 1
    copy.close()
    assert number > 5
    copy.partial.rename(target)
    assert verify_backup(target, None, last_seq=200 + number) == ([], 200 + number)
    assert contents(target) == contents(room.path)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert not list(tmp_path.glob("copy.db-*"))
    room.close()


def test_a_copy_does_not_block_checkpoints(tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    for number in range(100):
        room.remember(f"before {number} " + "filler " * 60)
    copy = OnlineBackup(room.connection, tmp_path / "copy.partial")
    assert not copy.step(room.clock, -1)
    room.remember("meanwhile")
    frames, folded = room.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    assert (frames, folded) == (0, 0)
    copy.close()
    room.close()


def test_the_copy_is_made_in_slices_and_abandoned_without_polling(tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    for number in range(100):
        room.remember(f"memory {number} " + "filler " * 60)
    work = BackupWork(room.engine, room.path, tmp_path / "backups", SystemClock())
    name = backup_name(NOW, SCHEMA)
    assert work.advance(name).state == "copying"
    while work.copy is not None:
        work.step()
    done = work.advance(name)
    assert (done.state, done.last_seq, done.remaining) == ("copied", 100, 0)
    other = BackupWork(room.engine, room.path, tmp_path / "forsaken", room.clock)
    other.advance(name)
    room.clock.advance(61_000)
    other.step()
    assert other.copy is None
    assert list((tmp_path / "forsaken").iterdir()) == []
    with pytest.raises(InvalidRequest):
        work.advance("../../elsewhere.db")
    room.close()


def test_a_copy_that_cannot_be_written_fails_without_affecting_the_writer(tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    room.remember("kept")
    (tmp_path / "backups").write_text("in the way")
    work = BackupWork(room.engine, room.path, tmp_path / "backups", room.clock)
    assert work.advance(backup_name(NOW, SCHEMA)).state == "failed"
    room.remember("and more")
    room.close()


def test_a_damaged_database_makes_no_backup_and_the_older_one_stays(tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    room.remember("kept whole")
    target = tmp_path / "copy.db"
    backup(room.connection, target, room.clock)
    before = target.read_bytes()
    room.connection.execute("DROP TRIGGER memories_au")
    room.connection.execute("UPDATE memories SET content = 'not what was stored'")
    with pytest.raises(StoreIOError, match="failed its check"):
        backup(room.connection, target, room.clock)
    assert target.read_bytes() == before
    assert not list(tmp_path.glob("*.partial*"))
    room.close()


def two_generations(workspace: Workspace) -> tuple[set[str], set[str], Path]:
    """A workspace whose backup holds less than its database, part of which is still in the log."""
    room = StoreRoom(workspace.memory_dir)
    for number in range(5):
        room.remember(f"old {number}")
    target = workspace.backup_dir / backup_name(NOW, SCHEMA)
    backup(room.connection, target, room.clock)
    for number in range(5):
        room.remember(f"new {number}")
    now = contents(room.path)
    room.reader.close()
    room.connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    room.connection.close()
    assert workspace.database.with_name("memories.db-wal").stat().st_size > 0
    (workspace.index_dir / "vectors.cache").write_bytes(b"of the database as it was")
    return contents(target), now, target


def test_a_preview_of_a_restore_counts_what_the_backup_lacks_and_changes_nothing(workspace: Workspace) -> None:
    _, new, target = two_generations(workspace)
    told, code = restore(workspace, "latest", now_ms=NOW + 90_000, preview=True)
    assert (code, told.restored, told.age_ms, told.aside) == (ExitCode.OK, str(target), 90_000, None)
    assert (told.memories_before, told.memories_after, told.missing) == (10, 5, 5)
    assert contents(workspace.database) == new
    assert not workspace.restore_file.exists()
    assert not list(workspace.memory_dir.glob("*incoming*"))
    assert not list(workspace.memory_dir.glob("aside-*"))


def test_the_question_tells_what_is_unknown_and_the_report_what_was_passed_over(workspace: Workspace) -> None:
    _, _, target = two_generations(workspace)
    future = backup_name(int(time.time() * 1000) + 30 * 86_400_000, SCHEMA)
    shutil.copy(target, workspace.backup_dir / future)
    database = apsw.Connection(str(workspace.database))
    database.execute("UPDATE memories SET id = CAST(x'ff' AS TEXT) WHERE content = 'new 1'")
    database.close()
    arguments = ["--workspace", str(workspace.root), "restore", "latest"]
    result = CliRunner().invoke(cli, arguments, input="y\n")
    assert "Of the 10 memories in the database, the backup lacks an unknown number" in result.stderr
    notice = f"Not used: {future}, whose name is in the future."
    assert (result.exit_code, notice in result.stderr, notice in result.stdout) == (0, True, True), result.stderr
    assert f"Restored {target}: 5 memories." in result.stdout


def test_a_restore_sets_the_database_aside_with_its_log(workspace: Workspace) -> None:
    old, new, target = two_generations(workspace)
    told, code = restore(workspace, "latest", now_ms=NOW + 90_000)
    assert (code, told.restored, told.age_ms) == (ExitCode.OK, str(target), 90_000)
    assert (told.memories_before, told.memories_after) == (10, 5)
    assert contents(workspace.database) == old
    assert told.aside is not None
    assert contents(Path(told.aside) / "memories.db") == new
    assert list(workspace.index_dir.iterdir()) == []
    assert stat.S_IMODE(workspace.database.stat().st_mode) == 0o600
    assert target.exists()


POINTS = [
    ("restore.copied", 1, "old"),
    ("restore.before_decision", 1, "old"),
    ("restore.decided", 1, "new"),
    *(("restore.moved_aside", hit, "new") for hit in (1, 2, 3, 4)),
    ("restore.installed", 1, "new"),
    ("restore.before_end", 1, "new"),
]


@pytest.mark.parametrize(("point", "hit", "expected"), POINTS)
def test_a_restore_killed_anywhere_leaves_the_old_or_the_new_database(
    workspace: Workspace, point: str, hit: int, expected: str
) -> None:
    old, new, _ = two_generations(workspace)
    restoring = [sys.executable, "-c", RESTORE, str(workspace.root), str(NOW + 90_000), f"{point}=kill@{hit}"]
    assert subprocess.run(restoring, cwd=REPOSITORY, check=False).returncode == -signal.SIGKILL
    finish_restore(workspace)
    assert contents(workspace.database) == (old if expected == "new" else new)
    if expected == "new":
        assert contents(workspace.memory_dir / f"aside-{NOW + 90_000}" / "memories.db") == new
    told, code = restore(workspace, "latest", now_ms=NOW + 95_000)
    assert code == ExitCode.OK, told
    assert contents(workspace.database) == old


def test_a_restore_killed_twice_is_completed_by_the_third_run(workspace: Workspace) -> None:
    old, new, _ = two_generations(workspace)
    sync_points.arm("restore.moved_aside=raise:EIO@2")
    with pytest.raises(OSError, match="moved_aside"):
        restore(workspace, "latest", now_ms=NOW + 90_000)
    sync_points.arm("restore.installed=raise:EIO")
    with pytest.raises(OSError, match="installed"):
        finish_restore(workspace)
    sync_points.arm("")
    finish_restore(workspace)
    assert contents(workspace.database) == old
    assert contents(workspace.memory_dir / f"aside-{NOW + 90_000}" / "memories.db") == new


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "foreign", "missing"])
def test_an_incomplete_backup_is_refused_and_the_database_not_changed(workspace: Workspace, damage: str) -> None:
    _, new, target = two_generations(workspace)
    raw = bytearray(target.read_bytes())
    match damage:
        case "flip":
            position = raw.index(b"old 3")
            raw[position] ^= 1
            target.write_bytes(raw)
        case "cut":
            target.write_bytes(raw[: len(raw) // 2])
        case "empty":
            target.write_bytes(b"")
        case "foreign":
            target.write_bytes(random.Random(1).randbytes(8192))
        case _:
            target.unlink()
    told, code = restore(workspace, str(target), now_ms=NOW)
    assert (told.ok, code) == (False, ExitCode.CONFIG if damage == "missing" else ExitCode.IO_ERROR)
    assert told.findings
    assert contents(workspace.database) == new
    assert not list(workspace.memory_dir.glob("*.incoming*"))


def test_a_backup_of_a_newer_release_is_refused(workspace: Workspace) -> None:
    _, new, target = two_generations(workspace)
    connection = open_copy(target)
    connection.pragma("user_version", 99)
    connection.close()
    newer = target.rename(target.with_name(backup_name(NOW + 1, 99)))
    told, code = restore(workspace, newer.name, now_ms=NOW)
    assert code == ExitCode.CONFIG
    assert "schema 99" in told.findings[0]
    assert contents(workspace.database) == new


def test_a_restore_needs_no_readable_database(workspace: Workspace) -> None:
    old, _, _ = two_generations(workspace)
    workspace.database.write_bytes(b"\0" * 8192)
    workspace.database.with_name("memories.db-wal").unlink()
    told, code = restore(workspace, "latest", now_ms=NOW)
    assert (code, told.memories_before, told.carried_over) == (ExitCode.OK, None, False)
    assert contents(workspace.database) == old


@pytest.mark.parametrize("case", ["of an older release", "with a damaged table", "missing"])
def test_a_restore_says_whether_it_knows_what_the_replaced_database_did(workspace: Workspace, case: str) -> None:
    old, _, _ = two_generations(workspace)
    connection = open_copy(workspace.database)
    if case == "of an older release":
        connection.pragma("user_version", SCHEMA - 1)
    else:
        connection.execute("DROP TABLE left_out_turns")
    connection.close()
    if case == "missing":
        workspace.database.unlink()
    told, code = restore(workspace, "latest", now_ms=NOW)
    assert (code, told.carried_over) == (ExitCode.OK, None if case == "missing" else False)
    assert contents(workspace.database) == old


def test_a_database_set_aside_is_restored_with_its_log(workspace: Workspace) -> None:
    old, new, _ = two_generations(workspace)
    told, code = restore(workspace, "latest", now_ms=NOW + 90_000)
    assert (code, contents(workspace.database)) == (ExitCode.OK, old)
    kept = Path(str(told.aside)) / "memories.db"
    log = kept.with_name("memories.db-wal")
    before = (kept.read_bytes(), log.read_bytes())
    told, code = restore(workspace, str(kept), now_ms=NOW + 95_000)
    assert (code, told.memories_after) == (ExitCode.OK, len(new)), told
    assert contents(workspace.database) == new
    assert (kept.read_bytes(), log.read_bytes()) == before
    assert not list(workspace.memory_dir.glob("*.incoming*"))


def test_a_backup_with_an_interrupted_transaction_is_restored_without_it(workspace: Workspace) -> None:
    old, _, target = two_generations(workspace)
    torn = workspace.root / "torn.db"
    connection = open_copy(target)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("PRAGMA cache_spill = 1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("DROP TRIGGER memories_au")
    connection.execute("UPDATE memories SET content = content || ' never committed'")
    connection.cache_flush()
    shutil.copy(target, torn)
    shutil.copy(f"{target}-journal", f"{torn}-journal")
    connection.execute("ROLLBACK")
    connection.close()
    told, code = restore(workspace, str(torn), now_ms=NOW + 90_000)
    assert (code, told.memories_after) == (ExitCode.OK, len(old)), told
    assert contents(workspace.database) == old


@pytest.mark.parametrize("by", ["path", "link", "hard link"])
def test_the_database_in_use_is_refused_as_a_backup(workspace: Workspace, by: str) -> None:
    _, new, _ = two_generations(workspace)
    source = workspace.root / "same.db"
    if by == "link":
        source.symlink_to(workspace.database)
    elif by == "path":
        source = workspace.memory_dir / ".." / "memory" / "memories.db"
    else:
        source.hardlink_to(workspace.database)
        with pytest.raises(ConfigError, match="hard links"):
            restore(workspace, str(source), now_ms=NOW)
        source.unlink()
        assert contents(workspace.database) == new
        return
    told, code = restore(workspace, str(source), now_ms=NOW)
    assert (told.ok, code) == (False, ExitCode.CONFIG)
    assert contents(workspace.database) == new
    assert not list(workspace.memory_dir.glob("aside-*"))


def test_a_foreign_file_is_refused_before_it_is_copied(workspace: Workspace) -> None:
    _, new, _ = two_generations(workspace)
    foreign = workspace.root / "large.db"
    foreign.write_bytes(bytes(8192))
    sync_points.arm("restore.copied=raise:EIO")
    told, code = restore(workspace, str(foreign), now_ms=NOW)
    assert (told.ok, code) == (False, ExitCode.IO_ERROR)
    assert "not a SQLite database" in told.findings[0]
    assert contents(workspace.database) == new


def test_a_backup_too_large_for_the_disk_is_not_copied(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    _, new, target = two_generations(workspace)
    total = shutil.disk_usage(workspace.root)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: total._replace(free=target.stat().st_size - 1))
    with pytest.raises(OSError, match="MB of free disk"):
        restore(workspace, str(target), now_ms=NOW)
    assert contents(workspace.database) == new
    assert not list(workspace.memory_dir.glob("*.incoming*"))


def test_a_restore_whose_command_has_exited_changes_nothing(workspace: Workspace) -> None:
    _, new, _ = two_generations(workspace)
    told, code = restore(workspace, "latest", now_ms=NOW, parent_pid=os.getpid())
    assert (told.ok, code) == (False, ExitCode.GIVE_UP)
    assert contents(workspace.database) == new
    assert not workspace.restore_file.exists()
    assert not list(workspace.memory_dir.glob("*.incoming*"))


def test_the_copy_of_an_interrupted_restore_is_removed_by_the_next_start(workspace: Workspace) -> None:
    _, new, _ = two_generations(workspace)
    restoring = [sys.executable, "-c", RESTORE, str(workspace.root), str(NOW), "restore.copied=kill@1"]
    assert subprocess.run(restoring, cwd=REPOSITORY, check=False).returncode == -signal.SIGKILL
    assert list(workspace.memory_dir.glob("*.incoming"))
    finish_restore(workspace)
    assert not list(workspace.memory_dir.glob("*.incoming*"))
    assert contents(workspace.database) == new


@pytest.mark.parametrize("decision", ["", "..", "aside-", "aside-1/..", "aside-1\naside-2\n", "aside-1" * 50, "a\xff"])
def test_a_malformed_restore_decision_moves_nothing(workspace: Workspace, decision: str) -> None:
    _, new, target = two_generations(workspace)
    shutil.copy(target, workspace.memory_dir / "memories.db.incoming")
    workspace.restore_file.write_text(decision, "latin-1")
    with pytest.raises(ConfigError, match=r"\.daemon/restore"):
        finish_restore(workspace)
    assert contents(workspace.database) == new
    assert not list(workspace.memory_dir.glob("aside-*"))


def test_an_invalid_source_path_is_refused(workspace: Workspace) -> None:
    for source in ("n" * 300, "~no-such-user-here/backup.db"):
        told, code = restore(workspace, source, now_ms=NOW)
        assert (told.ok, code) == (False, ExitCode.CONFIG)
        assert "does not exist" in told.findings[0]


def test_a_restore_without_any_backup_says_how_to_make_one(workspace: Workspace) -> None:
    workspace.memory_dir.mkdir(parents=True, exist_ok=True)
    told, code = restore(workspace, "latest", now_ms=NOW)
    assert (told.ok, code) == (False, ExitCode.CONFIG)
    assert told.findings == [f"there are no backups in {workspace.backup_dir}; `signet backup` makes one"]


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_no_database_is_created_beside_a_log_with_content(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / "memories.db"
    log = path.with_name(f"{path.name}{suffix}")
    log.write_bytes(b"commits of a database that was moved away")
    with pytest.raises(DatabaseMissing, match=log.name):
        open_writer(path, busy=lambda calls: False)
    assert log.read_bytes() == b"commits of a database that was moved away"
    assert os.listdir(tmp_path) == [log.name]
