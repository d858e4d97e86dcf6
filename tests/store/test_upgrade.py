"""An upgrade from every released schema keeps every memory, and an interrupted one has no effect."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from signet_actors.domain.backups import backup_name, newest_first
from signet_actors.domain.normalization import content_hash, former_content_hash
from signet_actors.errors import NewerSchema, StoreIOError, UpgradeRefused
from signet_actors.runtime import sync_points
from signet_actors.store.sqlite.connect import open_copy, open_writer
from signet_actors.store.sqlite.migrate import Migration, load_migrations, migrate, schema_version
from signet_actors.store.sqlite.online_backup import verify_copy
from signet_actors.writer.check import check_database
from tests.chaos.seeds import every_nth
from tests.golden.make import rows
from tests.support.stopping_vfs import StoppingVFS
from tests.support.store_room import SetClock

GOLDEN = sorted(
    (Path(__file__).parents[1] / "golden").glob("schema-*.sqlite"),
    key=lambda path: int(path.stem.removeprefix("schema-")),
)
NEXT = len(load_migrations()) + 1
STATEMENTS = (
    "CREATE TABLE topics (id INTEGER PRIMARY KEY, name TEXT NOT NULL) STRICT",
    "INSERT INTO topics (name) SELECT DISTINCT tag FROM memory_tags",
    "ALTER TABLE memories ADD COLUMN topic INTEGER",
    "UPDATE memories SET topic = (SELECT min(id) FROM topics)",
    "CREATE INDEX idx_memories_topic ON memories (topic)",
    "CREATE TRIGGER topics_ad AFTER DELETE ON topics BEGIN UPDATE memories SET topic = NULL WHERE topic = old.id; END",
)
SYNTHETIC = Migration(NEXT, "topics", ";\n".join(STATEMENTS) + ";\n")


def copied(database: Path, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(database, tmp_path / "memories.db"))


@pytest.fixture(params=GOLDEN, ids=lambda path: path.stem)
def released(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A database of each release."""
    return copied(request.param, tmp_path)


@pytest.fixture(params=[GOLDEN[0], GOLDEN[len(GOLDEN) // 2], GOLDEN[-1]], ids=lambda path: path.stem)
def golden(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A database that an upgrade has a lot to do with, one with less, and the newest."""
    return copied(request.param, tmp_path)


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    sync_points.arm("")


def expected(golden: Path) -> list[list[object]]:
    connection = open_copy(golden)
    try:
        schema = schema_version(connection)
    finally:
        connection.close()
    written = json.loads((GOLDEN[0].parent / f"schema-{schema}.json").read_text())
    assert len(written) > 20
    return written  # type: ignore[no-any-return]


def opened(path: Path) -> apsw.Connection:
    return open_writer(path, busy=lambda calls: False)


def own_schema(path: Path) -> int:
    connection = open_copy(path)
    try:
        return schema_version(connection)
    finally:
        connection.close()


def the_whole(path: Path) -> tuple[list[object], list[object]]:
    """Everything that a migration may change: the schema itself, and the rows of every table."""
    connection = opened(path)
    try:
        schema = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
        tables = [name for name, sql in schema if sql and sql.startswith("CREATE TABLE")]
        rows = [connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables]
        return list(schema), list(rows)
    finally:
        connection.close()


def the_backup(path: Path) -> Path:
    names = newest_first(entry.name for entry in (path.parent / "backups").iterdir())
    return path.parent / "backups" / names[0].name


def test_there_is_a_golden_database_of_every_released_schema() -> None:
    made = [path.stem for path in GOLDEN]
    how = "write rows of a new table in `fill` of tests/golden/make.py, then run: python -m tests.golden.make"
    assert made == [f"schema-{number}" for number in range(1, NEXT)], how


def test_the_current_code_finds_every_memory_of_an_older_release(released: Path) -> None:
    written = expected(released)
    connection = opened(released)
    migrate(connection, released, SetClock())
    assert schema_version(connection) == len(load_migrations())
    assert rows(connection) == written
    connection.close()
    assert check_database(released, deep=True).findings == []


def test_the_next_migration_succeeds_and_its_backup_is_complete(released: Path) -> None:
    written = expected(released)
    connection = opened(released)
    assert migrate(connection, released, SetClock(), migrations=(*load_migrations(), SYNTHETIC)) >= 1
    assert rows(connection) == written
    assert connection.execute("SELECT count(*) FROM memories WHERE topic IS NOT NULL").get == len(written)
    connection.close()
    findings, memories = verify_copy(the_backup(released))
    assert findings == []
    assert memories == sum(1 for row in written if not row[9])


def state(path: Path) -> str:
    """``old`` or ``new``; anything else is a failure."""
    connection = opened(path)
    try:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
        columns = {row[1] for row in connection.execute("PRAGMA table_info(memories)")}
        traces = ("topics" in names, "idx_memories_topic" in names, "topics_ad" in names, "topic" in columns)
        recorded = connection.execute("SELECT max(version) FROM schema_migrations").get
        version = schema_version(connection)
        assert recorded == version
        assert connection.pragma("integrity_check") == "ok"
        if version == NEXT:
            assert all(traces)
            return "new"
        assert not any(traces)
        return "old"
    finally:
        connection.close()


@pytest.mark.parametrize("statement", range(1, len(STATEMENTS) + 4))
def test_an_upgrade_stopped_before_any_statement_has_no_effect(golden: Path, statement: int) -> None:
    """The statements of the migration, and the three that record it."""
    written = expected(golden)
    sync_points.arm(f"writer.mid_migration=raise:EIO@{statement}")
    connection = opened(golden)
    with pytest.raises(OSError, match="mid_migration"):
        migrate(connection, golden, SetClock(), migrations=(*load_migrations(), SYNTHETIC))
    connection.close()
    sync_points.arm("")
    assert state(golden) == "old"
    findings, _ = verify_copy(the_backup(golden))
    assert findings == []
    connection = opened(golden)
    migrate(connection, golden, SetClock(), migrations=(*load_migrations(), SYNTHETIC))
    assert rows(connection) == written
    connection.close()
    assert state(golden) == "new"


def test_a_real_upgrade_stopped_before_any_statement_has_no_effect(tmp_path: Path) -> None:
    """The migrations of this release on the oldest database, whatever they will be."""
    path = tmp_path / "memories.db"
    shutil.copyfile(GOLDEN[0], path)
    written, before = expected(path), the_whole(path)
    stopped = 0
    while True:
        sync_points.arm(f"writer.mid_migration=raise:EIO@{stopped + 1}")
        connection = opened(path)
        with contextlib.suppress(OSError):
            migrate(connection, path, SetClock())
            break
        connection.close()
        assert the_whole(path) == before, stopped
        for copy in (path.parent / "backups").iterdir():
            copy.unlink()
        stopped += 1
    assert rows(connection) == written
    connection.close()
    assert stopped > 30
    assert check_database(path, deep=True).findings == []


def test_an_older_backup_is_checked_with_the_invariants_of_its_schema(tmp_path: Path) -> None:
    for golden in GOLDEN:
        copy = tmp_path / golden.name
        shutil.copyfile(golden, copy)
        assert verify_copy(copy)[0] == []
    connection = open_copy(tmp_path / "schema-2.sqlite")
    connection.execute("UPDATE memory_jobs SET attempts = max_attempts + 1 WHERE status = 'dead'")
    connection.execute("DELETE FROM memory_hints_fts")
    connection.close()
    found = " ".join(finding.text for finding in verify_copy(tmp_path / "schema-2.sqlite")[0])
    assert "more attempts than allowed" in found
    assert "memory_hints_fts" in found


def backups_of(path: Path) -> list[str]:
    return sorted(entry.name for entry in (path.parent / "backups").iterdir())


def interrupted(path: Path, clock: SetClock) -> None:
    """Run an upgrade whose process is killed in the middle."""
    sync_points.arm("writer.mid_migration=raise:EIO@3")
    connection = opened(path)
    with pytest.raises(OSError, match="mid_migration"):
        migrate(connection, path, clock, migrations=(*load_migrations(), SYNTHETIC))
    connection.close()
    sync_points.arm("")
    clock.advance(1000)


def test_a_repeated_upgrade_reuses_its_backup_and_leaves_no_partial_one(golden: Path) -> None:
    clock = SetClock()
    interrupted(golden, clock)
    (first,) = backups_of(golden)
    half = golden.parent / "backups" / f"{first.replace('memories-2', 'memories-1')}.partial"
    half.write_bytes(b"half of a copy")
    interrupted(golden, clock)
    connection = opened(golden)
    room = golden.stat().st_size * 3 // 2  # without another backup it is enough
    migrate(connection, golden, clock, migrations=(*load_migrations(), SYNTHETIC), free_bytes=lambda directory: room)
    connection.close()
    assert backups_of(golden) == [first]
    assert state(golden) == "new"


@pytest.mark.parametrize("what", ["database", "backup"])
def test_an_upgrade_makes_another_backup_if_the_database_has_changed(golden: Path, what: str) -> None:
    clock = SetClock()
    interrupted(golden, clock)
    (first,) = backups_of(golden)
    if what == "database":  # an earlier release ran meanwhile, and only counted
        connection = opened(golden)
        connection.execute("UPDATE memories SET access_count = access_count + 1 WHERE seq = 1")
        connection.close()
    else:
        copy = golden.parent / "backups" / first
        raw = bytearray(copy.read_bytes())
        raw[len(raw) // 2] ^= 1
        copy.write_bytes(raw)
    interrupted(golden, clock)
    second = backups_of(golden)[-1]
    assert backups_of(golden) == [first, second]
    assert verify_copy(the_backup(golden))[0] == []


def in_another_program(path: Path, sql: str) -> str:
    """What another program reads that opens the database and leaves it: locks hold back other processes only."""
    code = "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); print(db.execute(sys.argv[2]).fetchall())"
    command = [sys.executable, "-c", f"{code}; db.close()", str(path), sql]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_comparing_the_backup_keeps_the_writers_locks(golden: Path) -> None:
    interrupted(golden, SetClock())
    connection = opened(golden)
    try:
        migrate(connection, golden, SetClock(), migrations=(*load_migrations(), SYNTHETIC))
        assert len(backups_of(golden)) == 1
        in_another_program(golden, "SELECT 1 FROM sqlite_master")  # the last one to leave would delete the log
        connection.execute("UPDATE store_meta SET value = 'kept' WHERE key = (SELECT min(key) FROM store_meta)")
        assert in_another_program(golden, "SELECT value FROM store_meta ORDER BY key LIMIT 1") == "[('kept',)]"
    finally:
        connection.close()


def test_backups_of_upgrades_are_limited(golden: Path) -> None:
    clock = SetClock()
    for _ in range(3):
        connection = opened(golden)
        connection.execute("UPDATE memories SET access_count = access_count + 1 WHERE seq = 1")
        sync_points.arm("writer.mid_migration=raise:EIO")
        with pytest.raises(OSError, match="mid_migration"):
            migrate(connection, golden, clock, migrations=(*load_migrations(), SYNTHETIC), keep=2)
        connection.close()
        sync_points.arm("")
        clock.advance(1000)
    assert len(backups_of(golden)) == 2


def test_the_backup_of_an_upgrade_is_kept_whatever_the_clock_says(golden: Path) -> None:
    clock, schema = SetClock(), own_schema(golden)
    (golden.parent / "backups").mkdir()
    later = [backup_name(clock.wall_ms() + ahead, schema) for ahead in (1000, 2000, 3000)]
    for name in later:
        (golden.parent / "backups" / name).write_bytes(b"made before the clock went back")
    connection = opened(golden)
    migrate(connection, golden, clock, keep=2, migrations=(*load_migrations(), SYNTHETIC))
    connection.close()
    assert backups_of(golden) == [backup_name(clock.wall_ms(), schema), later[-1]]


def test_a_long_statement_of_an_upgrade_sends_heartbeats(golden: Path) -> None:
    doing: list[str] = []
    beats: dict[str, int] = {}

    def beat() -> None:
        beats[doing[-1]] = beats.get(doing[-1], 0) + 1

    counting = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT max(i) FROM n"
    slow = Migration(NEXT, "slow", f"CREATE TABLE counted AS {counting};")
    connection = opened(golden)
    migrate(
        connection, golden, SetClock(), migrations=(*load_migrations(), slow), progress=doing.append, heartbeat=beat
    )
    connection.close()
    assert beats[f"applying migration {NEXT} (slow)"] > 50


class HurriedClock(SetClock):
    """A second passes at each look."""

    def monotonic_ns(self) -> int:
        self.advance(1000)
        return super().monotonic_ns()


def test_the_backup_before_an_upgrade_reports_its_progress(golden: Path) -> None:
    doing: list[str] = []
    connection = opened(golden)
    migrate(connection, golden, HurriedClock(), migrations=(*load_migrations(), SYNTHETIC), progress=doing.append)
    connection.close()
    shares = [int(what.split()[-2]) for what in doing if what.endswith(" %")]
    assert shares == sorted(set(shares))
    assert len(shares) > 3


@pytest.mark.parametrize("oldest", [False, True], ids=["newest", "oldest"])
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_upgrade_stopped_at_any_write_or_sync_leaves_the_old_or_the_new_schema(tmp_path: Path, oldest: bool) -> None:
    seen = {"old": 0, "new": 0}
    written = None
    finished = False
    for stops in every_nth(itertools.count(), 6 if oldest else 1):
        if finished:
            break
        path = tmp_path / str(stops) / "memories.db"
        path.parent.mkdir()
        shutil.copyfile(GOLDEN[0 if oldest else -1], path)
        written = written or expected(path)
        vfs = StoppingVFS(stops)
        connection = None
        try:
            connection = open_writer(path, busy=lambda calls: False, vfs="stopping")
            migrate(connection, path, SetClock(), migrations=(*load_migrations(), SYNTHETIC))
            finished = True
        except (apsw.Error, OSError, StoreIOError):
            pass
        vfs.left = 1 << 30 if finished else 0
        if connection is not None:
            with contextlib.suppress(apsw.Error):
                connection.close()
        vfs.unregister()
        seen[state(path)] += 1
        again = opened(path)
        assert rows(again) == written, stops
        again.close()
        if not finished:
            shutil.rmtree(path.parent)
    assert seen["old"] > 10
    assert seen["new"] >= 1


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("DELETE FROM memories WHERE seq = 1;", "the number of memories was"),
        ("UPDATE memories SET content = 'something else' WHERE is_deleted = 0;", "had a different content"),
        ("DROP TRIGGER memories_ai;", "keyword search did not find a new memory"),
        ("DROP TABLE vec_embeddings_1;", "no such table"),
        ("INSERT INTO memories_fts (memories_fts) VALUES ('delete-all');", "keyword search did not find"),
        ("ALTER TABLE memories RENAME COLUMN content TO body;", "no such column"),
    ],
)
def test_a_failing_upgrade_is_rolled_back_and_reports_why(golden: Path, sql: str, why: str) -> None:
    written, schema = expected(golden), own_schema(golden)
    connection = opened(golden)
    with pytest.raises(UpgradeRefused, match=why):
        migrate(connection, golden, SetClock(), migrations=(*load_migrations(), Migration(NEXT, "spoils", sql)))
    assert rows(connection) == written
    assert schema_version(connection) == schema
    connection.close()
    assert check_database(golden, deep=True).findings == []


def test_several_migrations_are_one_upgrade(golden: Path) -> None:
    broken = Migration(NEXT + 1, "broken", "INSERT INTO nowhere VALUES (1);")
    connection = opened(golden)
    with pytest.raises(apsw.SQLError):
        migrate(connection, golden, SetClock(), migrations=(*load_migrations(), SYNTHETIC, broken))
    connection.close()
    assert state(golden) == "old"


def test_an_upgrade_without_free_disk_space_changes_nothing(golden: Path) -> None:
    connection = opened(golden)
    with pytest.raises(UpgradeRefused, match="free disk"):
        migrate(
            connection,
            golden,
            SetClock(),
            migrations=(*load_migrations(), SYNTHETIC),
            free_bytes=lambda directory: 2 * golden.stat().st_size,
        )
    connection.close()
    assert state(golden) == "old"
    assert not (golden.parent / "backups").exists()


def test_a_damaged_database_is_not_upgraded(golden: Path) -> None:
    schema = own_schema(golden)
    raw = bytearray(golden.read_bytes())
    raw[4096 * 20 : 4096 * 21] = b"\xff" * 4096
    golden.write_bytes(raw)
    connection = opened(golden)
    with pytest.raises((StoreIOError, apsw.CorruptError)):
        migrate(connection, golden, SetClock(), migrations=(*load_migrations(), SYNTHETIC))
    assert schema_version(connection) == schema
    connection.close()


def test_the_golden_database_is_refused_unchanged_by_a_release_that_is_older(golden: Path) -> None:
    connection = opened(golden)
    before = hashlib.sha256(golden.read_bytes()).digest()
    with pytest.raises(NewerSchema):
        migrate(connection, golden, SetClock(), migrations=())
    assert hashlib.sha256(golden.read_bytes()).digest() == before
    connection.close()


FORMER = (
    "Ship on Friday?",
    "Caf\u00e9 in NFC",
    "Cafe\u0301 in NFC",
    "Look in /A/b",
    "Die Stra\u00dfe ist gesperrt",
    "CrashLoopBackOff means that it crashes",
    "\U0001f680",
)


FORMER = (
    "Ship on Friday?",
    "Caf\u00e9 in NFC",
    "Cafe\u0301 in NFC",
    "Look in /A/b",
    "Die Stra\u00dfe ist gesperrt",
    "CrashLoopBackOff means that it crashes",
    "\U0001f680",
)
FORMER_TYPES: tuple[tuple[str, str, str | None, str | None], ...] = (
    ("rule", "Never push to main", None, "order"),
    ("rule", "I never liked that movie", None, None),
    ("rule", "Only Dana may approve a release", None, "named"),
    ("constraint", "The budget is 500 euros", None, "named"),
    ("rule", "The cache always fails on Mondays", "pipeline-v2", "named"),
    ("fact", "Never push to production", None, None),
)


@pytest.fixture
def former(tmp_path: Path) -> Iterator[apsw.Connection]:
    """A database of schema 14 with memories as that release wrote them, upgraded."""
    path = tmp_path / "memories.db"
    shutil.copyfile(next(golden for golden in GOLDEN if golden.stem == "schema-14"), path)
    connection = opened(path)
    at = "2026-01-01T00:00:00.000Z"
    rows = [*(("fact", text, None, None) for text in FORMER), *FORMER_TYPES]
    for number, (kind, text, source, _) in enumerate(rows):
        digests = (former_content_hash(text), hashlib.sha256(text.encode()).digest())
        connection.execute(
            "INSERT INTO memories (id, type, content, normalized_content, content_hash, content_sha256, source_type,"
            " importance, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, 0.5, ?, ?)",
            (f"m-{number:02}", kind, text, text.lower(), *digests, source, at, at),
        )
        connection.execute(
            "INSERT INTO memory_history (id, memory_id, event, new_content, changed_by, created_at)"
            " VALUES (?, ?, 'created', ?, 'daemon', ?)",
            (f"h-{number}", f"m-{number:02}", text, at),
        )
    migrate(connection, path, SetClock())
    yield connection
    connection.close()
    assert check_database(path, deep=True).findings == []


def test_an_upgrade_compares_and_indexes_former_memories_by_the_new_rules(former: apsw.Connection) -> None:
    hashes = dict(former.execute("SELECT content, content_hash FROM memories WHERE id LIKE 'm-%' ORDER BY id LIMIT 7"))
    nfc, nfd = FORMER[1:3]
    assert hashes == {text: content_hash(text) for text in FORMER} | {nfd: former_content_hash(nfd)}, "both are kept"
    assert hashes[nfc] == content_hash(nfd), "a new one joins the first"
    for words, text in (("strasse", FORMER[4]), ('"crash loop back off"', FORMER[5]), ("emoji1f680", FORMER[6])):
        sql = "SELECT content FROM memories_fts WHERE memories_fts MATCH ?"
        assert former.execute(sql, (words,)).fetchall() == [(text,)]


def test_an_upgrade_tells_orders_and_named_rules_from_those_inferred_from_a_word(former: apsw.Connection) -> None:
    sql = "SELECT type, content, source_type, type_source FROM memories WHERE id LIKE 'm-%' ORDER BY id"
    assert tuple(former.execute(sql))[len(FORMER) :] == FORMER_TYPES
