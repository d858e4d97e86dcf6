"""The full check finds every damage of used bytes, and never raises an exception.

The oracle is a dump of all data of memories, made before and after: if the check finds nothing, the dumps must be
equal.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from signet_actors.errors import ForeignDatabase
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import ForgetMemory
from signet_actors.store.findings import CONTENT, INDEX, STRUCTURE, is_structural
from signet_actors.store.sqlite.connect import open_copy
from signet_actors.store.sqlite.repairs import repair_indexes
from signet_actors.writer.check import CheckResult, check_database
from tests.support.store_room import StoreRoom

PAGE = 4096
SEEDS = range(8)
FLIPS = 40
STORED = "SELECT id, content, is_deleted, tags FROM memories ORDER BY id"
"""Other columns are stored only once, so damage there cannot be detected."""


def build(directory: Path, *, words: str = "note", memories: int = 120) -> Path:
    """A store with long and short texts, tags, vectors and a few forgotten rows; its log is folded back."""
    directory.mkdir(parents=True, exist_ok=True)
    room = StoreRoom(directory)
    rng = random.Random(5)
    for number in range(memories):
        text = f"{words} number {number} " + " ".join(rng.choices(("alpha", "beta", "gamma", "delta"), k=number % 90))
        memory = room.remember(text, vector=[rng.gauss(0, 1) for _ in range(8)], tags=("t", f"n{number % 7}"))
        if number % 11 == 0:
            room.ask(ForgetMemory(id=memory.id, reason="r", principal=Principal()))
    room.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    room.close()
    return room.path


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = build(tmp_path_factory.mktemp("pristine"))
    assert check_database(path, deep=True).findings == []
    return path


def copy_of(path: Path, directory: Path) -> Path:
    directory.mkdir(exist_ok=True)
    return Path(shutil.copyfile(path, directory / "memories.db"))


def stored(path: Path) -> list[tuple[object, ...]]:
    connection = open_copy(path)
    try:
        return connection.execute(STORED).fetchall()
    finally:
        connection.close()


def verdict(path: Path) -> CheckResult | None:
    """What the full check says; None when the file is not recognised as ours any more, which says enough."""
    try:
        return check_database(path, deep=True)
    except ForeignDatabase:
        return None


def is_found(path: Path) -> bool:
    checked = verdict(path)
    return checked is None or bool(checked.findings)


@pytest.mark.parametrize("seed", SEEDS)
def test_every_flipped_byte_is_found_unless_the_byte_is_unused(pristine: Path, tmp_path: Path, seed: int) -> None:
    whole, before = pristine.read_bytes(), stored(pristine)
    rng = random.Random(seed)
    found = 0
    for flip in range(FLIPS):
        offset, bit = rng.randrange(len(whole)), 1 << rng.randrange(8)
        damaged = bytearray(whole)
        damaged[offset] ^= bit
        path = tmp_path / f"{flip}.db"
        path.write_bytes(damaged)
        if is_found(path):
            found += 1
        else:
            assert stored(path) == before, f"seed {seed}: byte {offset} bit {bit:#x} changed a memory and was not found"
        for left in tmp_path.glob(f"{flip}.db*"):
            left.unlink()
    assert found > 0, f"seed {seed}"


@pytest.mark.parametrize("seed", SEEDS)
def test_every_zeroed_page_with_content_is_found(pristine: Path, tmp_path: Path, seed: int) -> None:
    whole, before = pristine.read_bytes(), stored(pristine)
    rng = random.Random(seed)
    for _ in range(8):
        page = rng.randrange(len(whole) // PAGE)
        path = tmp_path / "memories.db"
        path.write_bytes(whole[: page * PAGE] + bytes(PAGE) + whole[(page + 1) * PAGE :])
        if not is_found(path):
            assert stored(path) == before, f"seed {seed}: page {page}"
        for left in tmp_path.iterdir():
            left.unlink()


@pytest.mark.parametrize("keep", [0.05, 0.3, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_found(pristine: Path, tmp_path: Path, keep: float) -> None:
    whole = pristine.read_bytes()
    path = tmp_path / "memories.db"
    path.write_bytes(whole[: int(len(whole) * keep)])
    assert is_found(path)


def test_the_log_of_another_database_is_found_or_changes_no_memory(pristine: Path, tmp_path: Path) -> None:
    other = StoreRoom(tmp_path / "other") if (tmp_path / "other").mkdir() is None else None
    assert other is not None
    for number in range(30):
        other.remember(f"a stranger {number}", vector=[1.0, number])
    log = other.path.with_name("memories.db-wal").read_bytes()
    other.close()
    path = copy_of(pristine, tmp_path / "mixed")
    path.with_name("memories.db-wal").write_bytes(log)
    before = stored(pristine)
    checked = verdict(path)
    if checked is not None and not checked.findings:
        now = stored(path)
        strangers = all(str(row[1]).startswith("a stranger") for row in now)
        assert now == before or strangers, "a mixture of two databases passed as whole"


def change(pristine: Path, directory: Path, sql: str) -> CheckResult:
    """The verdict on a copy in which one thing was changed behind the program's back."""
    path = copy_of(pristine, directory)
    connection = open_copy(path)
    connection.execute("PRAGMA recursive_triggers = OFF")
    triggers = connection.execute(
        "SELECT name, sql FROM sqlite_schema WHERE name IN ('memories_au', 'memories_changed')"
    ).fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    connection.execute(sql)
    for _, trigger in triggers:
        connection.execute(trigger)
    connection.close()
    checked = verdict(path)
    assert checked is not None
    return checked


@pytest.mark.parametrize(
    ("sql", "kind", "words"),
    [
        ("UPDATE memories SET content = content || 'x' WHERE seq = 3", CONTENT, "checksum"),
        ("UPDATE memories SET content_hash = 'feed' WHERE seq = 3", CONTENT, "hash"),
        ("UPDATE memories SET cjk = 'strange' WHERE seq = 3", INDEX, "text index"),
        ('UPDATE memories SET tags = \'["other", "t"]\' WHERE seq = 3', INDEX, "tags differ from its tag rows"),
        ("DELETE FROM memory_tags WHERE memory_seq = 3", INDEX, "tags differ from its tag rows"),
        ("INSERT INTO memory_tags (tag, memory_seq) VALUES ('n5', 3)", INDEX, "tags differ from its tag rows"),
        ("UPDATE embeddings SET vector = zeroblob(32) WHERE seq = 3", INDEX, "differs from its search index"),
        ("UPDATE embeddings SET vector = zeroblob(31) WHERE seq = 3", INDEX, "finite numbers"),
        (
            "UPDATE embeddings SET vector = unhex('0000c07f' || hex(zeroblob(28))) WHERE seq = 3",
            INDEX,
            "finite numbers",
        ),
        ("DELETE FROM vec_embeddings_1 WHERE rowid = 3", INDEX, "missing from its search index"),
        ("DELETE FROM embeddings WHERE seq = 3", INDEX, "refers to a missing vector"),
        ("UPDATE embeddings SET content_hash = 'feed' WHERE seq = 3", INDEX, "another content"),
        ("UPDATE memories SET version = 9 WHERE seq = 3", "rows", "version does not match its history"),
        (
            "DELETE FROM memory_history WHERE event = 'created' AND seq = 3",
            "rows",
            "created event",
        ),
    ],
)
def test_each_kind_of_damage_has_its_finding(pristine: Path, tmp_path: Path, sql: str, kind: str, words: str) -> None:
    checked = change(pristine, tmp_path / "changed", sql)
    assert any(finding.kind == kind and words in finding.text for finding in checked.findings), checked.findings
    assert not is_structural(checked.findings)


def test_a_check_that_cannot_read_is_a_finding_and_never_an_exception(pristine: Path, tmp_path: Path) -> None:
    path = copy_of(pristine, tmp_path / "torn")
    whole = bytearray(path.read_bytes())
    rng = random.Random(1)
    for page in range(1, len(whole) // PAGE):
        whole[page * PAGE : page * PAGE + 64] = rng.randbytes(64)
    path.write_bytes(whole)
    checked = verdict(path)
    assert checked is not None
    assert any(finding.kind == STRUCTURE for finding in checked.findings)


def test_a_check_writes_nothing(tmp_path: Path) -> None:
    room = StoreRoom(tmp_path)
    room.remember("still in the log")
    files = {}
    for path in tmp_path.glob("memories.db*"):
        if not path.name.endswith("-shm"):
            files[path.name] = path.read_bytes()
    room.reader.close()
    copy = tmp_path / "copy"
    copy.mkdir()
    for name, raw in files.items():
        (copy / name).write_bytes(raw)
    assert check_database(copy / "memories.db", deep=True).memories == 1
    assert {name: (copy / name).read_bytes() for name in files} == files
    room.connection.close()


DERIVED: tuple[Callable[[apsw.Connection], object], ...] = (
    lambda connection: connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('delete-all')"),
    lambda connection: connection.execute("DELETE FROM memory_tags"),
    lambda connection: connection.execute("DELETE FROM vec_embeddings_1 WHERE rowid > 3"),
    lambda connection: connection.execute("DROP TABLE vec_embeddings_1"),
    lambda connection: connection.execute("UPDATE embeddings SET content_hash = 'feed' WHERE seq = 5"),
    lambda connection: connection.execute("DELETE FROM embeddings WHERE seq = 5"),
)


@pytest.mark.parametrize("spoil", range(len(DERIVED)))
def test_derived_data_can_be_rebuilt_without_changing_memories(pristine: Path, tmp_path: Path, spoil: int) -> None:
    path = copy_of(pristine, tmp_path / "spoilt")
    connection = open_copy(path)
    DERIVED[spoil](connection)
    connection.close()
    spoilt = check_database(path, deep=True)
    assert {finding.kind for finding in spoilt.findings} == {INDEX}, spoilt.findings
    connection = open_copy(path)
    assert repair_indexes(connection)
    connection.close()
    assert check_database(path, deep=True).findings == []
    assert stored(path) == stored(pristine)
