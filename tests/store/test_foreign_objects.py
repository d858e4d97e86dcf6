"""A database with additional, missing or different schema objects is refused, and foreign code is never run.

Source: docs/operations.md "Restore"; https://sqlite.org/security.html.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest

from signet_actors.config.workspace import Workspace
from signet_actors.domain.backups import backup_name
from signet_actors.errors import ExitCode
from signet_actors.store.sqlite.checks import scrub
from signet_actors.store.sqlite.connect import open_copy, open_reader
from signet_actors.store.sqlite.migrate import load_migrations
from signet_actors.store.sqlite.online_backup import backup
from signet_actors.writer.backup import BackupWork
from signet_actors.writer.restore import restore
from tests.support.store_room import StoreRoom

GOLDEN = Path(__file__).parents[1] / "golden"
SCHEMA = len(load_migrations())
NOW = 1_767_225_600_000

ADDED = [
    ("CREATE TRIGGER planted AFTER INSERT ON memories BEGIN UPDATE memories SET content = 'x'; END", "trigger planted"),
    ("CREATE VIEW planted AS SELECT * FROM memories", "view planted"),
    ("CREATE VIRTUAL TABLE planted USING fts5(a)", "table planted"),
    ("CREATE VIRTUAL TABLE planted USING fts5vocab('memories_fts', 'row')", "table planted"),
    ("CREATE TABLE planted (a)", "table planted"),
    ("CREATE INDEX planted ON memories (who)", "index planted"),
    ("CREATE TABLE vec_embeddings_99 (a)", "table vec_embeddings_99"),
    ("CREATE TABLE vec_embeddings_1_more (a)", "table vec_embeddings_1_more"),
    ("CREATE TABLE memories_fts_more (a)", "table memories_fts_more"),
    ("DROP TRIGGER memories_ai", "trigger memories_ai"),
    ("DROP INDEX idx_memories_source_id", "index idx_memories_source_id"),
    (
        (
            "DROP TRIGGER memories_ai;"
            "CREATE TRIGGER memories_ai AFTER INSERT ON memories BEGIN DELETE FROM memory_history; END"
        ),
        "trigger memories_ai",
    ),
    (
        "DROP VIEW memories_live; CREATE VIEW memories_live AS SELECT 1 AS seq, 'x' AS content, '' AS cjk",
        "memories_live",
    ),
    ("ALTER TABLE memories ADD COLUMN planted TEXT", "table memories"),
    ("DROP TABLE vec_embeddings_1; CREATE TABLE vec_embeddings_1 (a)", "table vec_embeddings_1"),
]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A workspace with a memory that has a vector, and a whole backup of it."""
    found = Workspace(tmp_path / "w")
    found.ensure()
    room = StoreRoom(found.memory_dir)
    room.remember("what was stored", vector=[0.1] * 8)
    backup(room.connection, found.backup_dir / backup_name(NOW, SCHEMA), room.clock)
    room.close()
    return found


@pytest.mark.parametrize("schema", range(1, SCHEMA + 1))
def test_the_database_of_every_release_has_exactly_the_objects_of_its_schema(tmp_path: Path, schema: int) -> None:
    path = Path(shutil.copy(GOLDEN / f"schema-{schema}.sqlite", tmp_path / "memories.db"))
    connection = open_copy(path)
    assert scrub(connection, deep=True) == []
    connection.close()


def test_an_undamaged_backup_is_restored(workspace: Workspace) -> None:
    told, code = restore(workspace, "latest", now_ms=NOW)
    assert (code, told.memories_after) == (0, 1), told.findings


@pytest.mark.parametrize(("sql", "named"), ADDED)
def test_a_backup_with_an_unknown_object_is_refused_and_the_object_named(
    workspace: Workspace, sql: str, named: str
) -> None:
    before = workspace.database.read_bytes()
    (kept,) = workspace.backup_dir.iterdir()
    connection = open_copy(kept)
    connection.execute(sql)
    connection.close()
    told, code = restore(workspace, "latest", now_ms=NOW)
    assert code == ExitCode.IO_ERROR
    assert any(named in finding for finding in told.findings), told.findings
    assert workspace.database.read_bytes() == before


@pytest.mark.parametrize("opened", [open_copy, open_reader])
def test_connections_are_defensive_and_do_not_trust_the_schema(
    workspace: Workspace, opened: type[apsw.Connection]
) -> None:
    connection = opened(workspace.database)
    assert connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, -1) == 1
    assert connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, -1) == 0
    with pytest.raises(apsw.Error):
        connection.execute("DELETE FROM memories_fts_data")
    connection.close()


def test_backups_as_a_symbolic_link_are_refused_as_such(tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    room.remember("what was stored")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "backups").symlink_to(tmp_path / "elsewhere")
    progress = BackupWork(room.engine, room.path, tmp_path / "backups", room.clock).advance(backup_name(NOW, SCHEMA))
    assert progress.state == "failed"
    assert "backups is a symbolic link" in str(progress.detail)
    assert list((tmp_path / "elsewhere").iterdir()) == []
    room.close()
