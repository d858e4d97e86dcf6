"""Upgrade the schema by numbered, checksummed migrations, all or nothing.

All pending migrations, their rows in ``schema_migrations``, ``PRAGMA user_version`` and a canary test are one
transaction, so a crash leaves either the old schema or the new one. Before it, an existing database is checked, the
free disk space is checked, and a verified backup is made. An interrupted upgrade reuses that backup if all pages still
match. A schema newer than this release is refused.

Source: docs/reliability.md R17, R21; architecture.txt "schema_migrations".
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw

from signet_actors.domain.backups import backup_name, newest_first, surplus
from signet_actors.domain.timestamps import iso
from signet_actors.domain.written_forms import INDEXED_CHARS
from signet_actors.errors import NewerSchema, StoreIOError, UpgradeRefused
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.sync_points import sync_point
from signet_actors.store.sqlite.connect import heartbeat_during
from signet_actors.store.sqlite.online_backup import backup, is_copy_of, sweep_partials
from signet_actors.store.sqlite.schema import BOOKKEEPING, Migration, add_functions, load_migrations, schema_version
from signet_actors.store.sqlite.vectors import nearest

__all__ = ["Migration", "load_migrations", "migrate", "schema_version"]

LOG_FACTOR = 1.1
"""Free disk space that an upgrade needs for pages rewritten in the log, as a multiple of the database size."""
ROOM_FACTOR = 2 * LOG_FACTOR
"""The same, if a backup must be made too."""
BACKUPS_KEPT = 7

_WHOLE_WORD = re.compile(r"(?:^|(?<=\s))[A-Za-z]{3,}(?=[\s.,;]|$)")
"""A word whose boundaries are the same for every tokenizer."""


def migrate(
    connection: apsw.Connection,
    path: Path,
    clock: Clock,
    *,
    migrations: Sequence[Migration] | None = None,
    progress: Callable[[str], None] = lambda _: None,
    heartbeat: Callable[[], None] = lambda: None,
    free_bytes: Callable[[Path], int] = lambda directory: shutil.disk_usage(directory).free,
    keep: int = BACKUPS_KEPT,
) -> int:
    """Apply all pending migrations and return their number.

    ``progress`` receives a description of each step. ``heartbeat`` is called only while work progresses, so that a slow
    upgrade can be told from a hang. ``connection`` has no progress handler afterwards. If a backup is made, the
    ``keep`` newest backups are kept.

    Raises ``NewerSchema`` (nothing was changed), ``UpgradeRefused`` (rolled back, or the text of an applied migration
    has changed), ``StoreIOError`` if the database or its backup fails verification, apsw errors (rolled back).
    """
    known = tuple(migrations) if migrations is not None else load_migrations()
    current = schema_version(connection)
    if current < 0:
        raise UpgradeRefused(f"{path} has schema {current}, which never existed; run `signet restore latest`")
    if current > len(known):
        raise NewerSchema(
            f"{path} has schema {current}, but this release supports schemas up to {len(known)}:"
            " install the newer release, or restore a backup"
        )
    if current:
        recorded = dict(connection.execute("SELECT version, checksum FROM schema_migrations"))
        for migration in known[:current]:
            if recorded.get(migration.version) != migration.checksum:
                raise UpgradeRefused(
                    f"{path} was created with a different text of migration {migration.version} ({migration.name}) than"
                    " in this release: install the release that created it, or run `signet restore latest`"
                )
    pending = known[current:]
    if not pending:
        return 0
    with heartbeat_during(connection, heartbeat):
        if current:
            _preflight(connection, path, clock, current, progress, heartbeat, free_bytes, keep)
        _upgrade(connection, pending, clock, progress, heartbeat, canary=current > 0)
    return len(pending)


def _preflight(
    connection: apsw.Connection,
    path: Path,
    clock: Clock,
    current: int,
    progress: Callable[[str], None],
    heartbeat: Callable[[], None],
    free_bytes: Callable[[Path], int],
    keep: int,
) -> None:
    """Check the database and the free disk space, and make a backup unless a current one exists."""
    progress(f"checking schema {current} before migrating")
    verdict = connection.pragma("quick_check", 1)
    if verdict != "ok":
        raise StoreIOError(f"{path} is damaged ({verdict})")
    directory = path.parent / "backups"
    sweep_partials(directory)  # left by an interrupted upgrade; no other process makes backups now
    progress(f"searching for a backup of schema {current}")
    saved = _has_current_backup(connection, path, current, heartbeat)
    log = path.with_name(path.name + "-wal")
    size = path.stat().st_size + (log.stat().st_size if log.exists() else 0)
    needed, free = int((LOG_FACTOR if saved else ROOM_FACTOR) * size), free_bytes(path.parent)
    if free < needed:
        raise UpgradeRefused(
            f"the upgrade of {path} needs {needed / 1e6:.0f} MB of free disk, but only {free / 1e6:.0f} MB are free;"
            " free disk space and start again; nothing was changed"
        )
    if saved:
        return
    activity = f"backing up schema {current} before migrating"
    progress(activity)
    made = backup_name(clock.wall_ms(), current)
    backup(
        connection,
        directory / made,
        clock,
        heartbeat=heartbeat,
        on_tenth=lambda tenths: progress(f"{activity}: {10 * tenths} %"),
    )
    for name in surplus((entry.name for entry in directory.iterdir()), keep, made=made, now_ms=clock.wall_ms()):
        (directory / name).unlink(missing_ok=True)


def _has_current_backup(connection: apsw.Connection, path: Path, current: int, heartbeat: Callable[[], None]) -> bool:
    """Return True if the newest backup of this schema matches the database as it is now."""
    directory = path.parent / "backups"
    if not directory.is_dir():
        return False
    newest = next(
        (found for found in newest_first(entry.name for entry in directory.iterdir()) if found.schema == current), None
    )
    return newest is not None and is_copy_of(connection, path, directory / newest.name, heartbeat=heartbeat)


def _upgrade(
    connection: apsw.Connection,
    pending: Sequence[Migration],
    clock: Clock,
    progress: Callable[[str], None],
    heartbeat: Callable[[], None],
    *,
    canary: bool,
) -> None:
    add_functions(connection)
    connection.execute("BEGIN IMMEDIATE")
    try:
        memories = _count(connection) if canary else 0
        for migration in pending:
            progress(f"applying migration {migration.version} ({migration.name})")
            _apply(connection, migration, clock, heartbeat)
        if canary:
            progress("checking the migrated database")
            _run_canary(connection, memories)
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _apply(connection: apsw.Connection, migration: Migration, clock: Clock, heartbeat: Callable[[], None]) -> None:
    started_ns = clock.monotonic_ns()
    for statement in BOOKKEEPING:
        connection.execute(statement)
    cursor = connection.cursor()

    def before_statement(_cursor: apsw.Cursor, _sql: str, _bindings: object) -> bool:
        sync_point("writer.mid_migration")
        heartbeat()  # the previous statement is done
        return True

    cursor.exec_trace = before_statement
    for _ in cursor.execute(migration.sql):
        pass
    now = iso(clock.wall_ms())
    cursor.execute(
        "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)",
        (migration.version, migration.name, migration.checksum, now),
    )
    cursor.execute(
        "INSERT INTO schema_migrations_audit (version, started_at, duration_ms, sqlite_version) VALUES (?, ?, ?, ?)",
        (migration.version, now, (clock.monotonic_ns() - started_ns) / 1e6, apsw.sqlite_lib_version()),
    )
    cursor.execute(f"PRAGMA user_version = {migration.version}")


def _count(connection: apsw.Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM memories").get)


def _run_canary(connection: apsw.Connection, memories: int) -> None:
    """Check that memories can be read, found by word and by vector, and written; raise ``UpgradeRefused`` if not."""
    try:
        failure = _canary_failure(connection, memories)
    except (apsw.Error, UnicodeDecodeError) as error:
        failure = f"{type(error).__name__}: {error}"
    if failure:
        raise UpgradeRefused(
            f"the upgrade was rolled back, because after it {failure}; the database was not changed: use the earlier"
            " release and report this error"
        )


def _canary_failure(connection: apsw.Connection, memories: int) -> str | None:
    """Return a description of what the canary test found wrong, None if nothing."""
    if _count(connection) != memories:
        return f"the number of memories was {_count(connection)} instead of {memories}"
    rows: list[tuple[Any, ...]] = connection.execute(
        "SELECT seq, content, CAST(content AS BLOB), content_sha256, embedding_seq FROM memories WHERE is_deleted = 0"
        " ORDER BY seq DESC LIMIT 5"
    ).fetchall()
    for seq, content, raw, checksum, _ in rows:
        if hashlib.sha256(raw).digest() != checksum:
            return f"memory number {seq} had a different content"
        word = _WHOLE_WORD.search(content[:INDEXED_CHARS])
        if (
            word
            and not connection.execute(
                "SELECT 1 FROM memories_fts WHERE memories_fts MATCH ? AND rowid = ?", (f'"{word[0]}"', seq)
            ).fetchall()
        ):
            return f"keyword search did not find memory number {seq}"
    for seq, *_, embedding_seq in rows:
        found = connection.execute(
            "SELECT e.vector, x.id FROM embeddings e JOIN embedding_models x"
            " ON x.model = e.model AND x.dimensions = e.dimensions WHERE e.seq = ?",
            (embedding_seq,),
        ).fetchone()
        if found is not None and not nearest(connection, f"vec_embeddings_{found[1]}", found[0], 1):
            return f"vector search did not find memory number {seq}"
    connection.execute("SAVEPOINT canary")
    connection.execute(
        "INSERT INTO memories (id, type, content, normalized_content, content_hash, content_sha256, importance,"
        " created_at, updated_at) VALUES ('canary', 'fact', 'canary', 'canary', 'canary', x'00', 0.5, '', '')"
    )
    canary_found = connection.execute("SELECT 1 FROM memories_fts WHERE memories_fts MATCH 'canary'").fetchall()
    connection.execute("ROLLBACK TO canary")
    connection.execute("RELEASE canary")
    return None if canary_found else "keyword search did not find a new memory"
