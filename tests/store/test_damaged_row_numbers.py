"""Damaged row positions and sequences are found by every check, and repaired if possible.

Source: docs/reliability.md R18; docs/operations.md "Backups".
"""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw
import pytest
import sqlite_vec  # type: ignore[import-untyped]

from signet_actors.protocol.message import Failure
from signet_actors.protocol.writer import Remembered
from signet_actors.store.findings import INDEX, ROWS, STRUCTURE
from signet_actors.store.sqlite.connect import APPLICATION_ID, open_copy, open_reader
from signet_actors.store.sqlite.migrate import migrate
from signet_actors.store.sqlite.online_backup import verify_copy
from signet_actors.store.sqlite.repairs import repair_indexes
from signet_actors.store.sqlite.vectors import nearest
from signet_actors.writer.check import check_database
from tests.support.store_room import SetClock, StoreRoom, raw, remembering

VEC = "vec_embeddings_1"
LARGEST = 2**63 - 1
CHUNKS = {
    "no numbers": f"UPDATE {VEC}_chunks SET rowids = x''",
    "zeroed numbers": f"UPDATE {VEC}_chunks SET rowids = zeroblob(2048)",
    "random numbers": f"UPDATE {VEC}_chunks SET rowids = randomblob(2048)",
    "no row in use": f"UPDATE {VEC}_chunks SET validity = zeroblob(32)",
    "one row more in use": f"UPDATE {VEC}_chunks SET validity = x'ff' || substr(validity, 2)",
    "a longer validity": f"UPDATE {VEC}_chunks SET validity = validity || zeroblob(8)",
    "no chunk": f"DELETE FROM {VEC}_chunks",
    "no size": f"UPDATE {VEC}_chunks SET size = 0",
    "a row elsewhere": f"UPDATE {VEC}_rowids SET chunk_offset = 200 WHERE rowid = 1",
    "two rows at one place": f"UPDATE {VEC}_rowids SET chunk_offset = 0",
}
NUMBERS = {
    "the largest number of memories": f"UPDATE sqlite_sequence SET seq = {LARGEST} WHERE name = 'memories'",
    "the largest number of vectors": f"UPDATE sqlite_sequence SET seq = {LARGEST} WHERE name = 'embeddings'",
    "the largest number of events": f"UPDATE sqlite_sequence SET seq = {LARGEST} WHERE name = 'memory_history'",
    "the largest number of changes": f"INSERT INTO sqlite_sequence VALUES ('memory_changes', {LARGEST})",
    "more than a searcher has room for": f"UPDATE sqlite_sequence SET seq = {10**11} WHERE name = 'memories'",
    "a text": "UPDATE sqlite_sequence SET seq = 'zzz'",
    "no number": "DELETE FROM sqlite_sequence WHERE name = 'memories'",
    "a number twice": "INSERT INTO sqlite_sequence VALUES ('memories', 900)",
    "a number below a row": "UPDATE sqlite_sequence SET seq = 1 WHERE name = 'embeddings'",
}
ROW_DAMAGE = {
    "tags that are an object": """UPDATE memories SET tags = '{"a":{"b":1}}'""",
    "tags with null": "UPDATE memories SET tags = '[null]'",
    "the largest version": f"UPDATE memories SET version = {LARGEST}",
    "words of a version that is not": f"UPDATE memories SET content_version = {2**40} WHERE seq = 1",
    "words of a later version": "UPDATE memories SET content_version = version + 1 WHERE seq = 1",
    "a project that is no text": "UPDATE memories SET project = CAST(x'ff' AS TEXT) WHERE seq = 1",
    "a session that is no text": "UPDATE memories SET session_id = CAST(x'c328' AS TEXT) WHERE seq = 1",
    "the largest count of updates": f"UPDATE memories SET update_count = {LARGEST}",
    "a negative count of accesses": "UPDATE memories SET access_count = -1",
    "a type of 30 MB": "UPDATE memories SET type = printf('%.*c', 30000000, 'x') WHERE seq = 1",
}
FILE_DAMAGE = {
    "a migration with another text": "UPDATE schema_migrations SET checksum = 'x' WHERE version = 2",
    "no migrations": "DELETE FROM schema_migrations",
    "a migration that does not exist": "INSERT INTO schema_migrations VALUES (99, 'x', 'x', 'x')",
    "a negative schema": "PRAGMA user_version = -1",
}


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("pristine")
    room = StoreRoom(directory)
    for number in range(3):
        room.remember(f"note {number}", vector=[1.0, float(number)], tags=("t",))
    room.close()
    return room.path


def damaged(pristine: Path, directory: Path, sql: str) -> Path:
    path = directory / "memories.db"
    shutil.copy(pristine, path)
    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.execute("PRAGMA ignore_check_constraints = ON")
    connection.execute(sql)
    connection.close()
    return path


def kinds(path: Path) -> set[str]:
    """Of what the deep check finds; the check of a backup finds the same."""
    found = check_database(path, deep=True).findings
    assert [finding.text for finding in verify_copy(path)[0]] == [finding.text for finding in found]
    return {finding.kind for finding in found}


def test_an_undamaged_database_passes(pristine: Path) -> None:
    assert kinds(pristine) == set()


@pytest.mark.parametrize("damage", [*CHUNKS, *NUMBERS])
def test_damage_of_an_index_or_a_last_number_is_found_and_repaired(pristine: Path, tmp_path: Path, damage: str) -> None:
    path = damaged(pristine, tmp_path, {**CHUNKS, **NUMBERS}[damage])
    assert kinds(path) == {INDEX}
    connection = open_copy(path)
    repair_indexes(connection)
    assert [seq for seq, _ in nearest(connection, VEC, raw([1.0, 0.0]), 9)] == [1, 2, 3]
    connection.close()
    assert kinds(path) == set()
    room = StoreRoom(tmp_path)
    room.clock.advance(60_000)
    command, frames = remembering("one more", vector=[0.0, 1.0])
    stored = room.ask(command, frames, message_id="another message")
    assert not isinstance(stored, Failure)
    assert isinstance(stored, Remembered)
    assert nearest(room.connection, VEC, raw([0.0, 1.0]), 1)[0][0] == 4
    room.close()
    assert kinds(path) == set()


@pytest.mark.parametrize("damage", ROW_DAMAGE)
def test_an_unreadable_or_unchangeable_row_is_found(pristine: Path, tmp_path: Path, damage: str) -> None:
    assert ROWS in kinds(damaged(pristine, tmp_path, ROW_DAMAGE[damage]))


@pytest.mark.parametrize("damage", FILE_DAMAGE)
def test_a_schema_of_no_release_is_structural_damage(pristine: Path, tmp_path: Path, damage: str) -> None:
    assert STRUCTURE in kinds(damaged(pristine, tmp_path, FILE_DAMAGE[damage]))


def test_a_database_in_another_encoding_is_structural_damage(tmp_path: Path) -> None:
    path = tmp_path / "memories.db"
    connection = apsw.Connection(str(path))
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.execute("PRAGMA encoding = 'UTF-16le'")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    migrate(connection, path, SetClock())
    connection.close()
    assert kinds(path) == {STRUCTURE}
    open_reader(path).close()
