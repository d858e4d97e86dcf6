"""Brings the schema up to date: numbered, checksummed migrations, each all or nothing.

A migration's statements, the row in ``schema_migrations`` and ``PRAGMA user_version`` commit in one transaction, so a
kill at any point leaves the old schema or the new one. Before the first change to a database that already
holds data, a verified copy is made with ``VACUUM INTO`` (a copied file would miss what is still in the WAL). A
schema newer than this code is refused with the file unchanged.

Source: reliability.md R17; architecture.txt "schema_migrations".
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import apsw

from signet_actors.errors import NewerSchema, StoreIOError
from signet_actors.runtime.clock import Clock, iso
from signet_actors.runtime.sync_points import sync_point
from signet_actors.store.connect import sync_directory


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step; ``checksum`` is the SHA-256 of its text."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        return hashlib.sha256(self.sql.encode()).hexdigest()


def load_migrations() -> tuple[Migration, ...]:
    """The migrations that ship with this release, in order, numbered 1, 2, … without a gap."""
    found = []
    for entry in resources.files("signet_actors.store.migrations").iterdir():
        if entry.name.endswith(".sql"):
            number, _, name = entry.name.removesuffix(".sql").partition("_")
            found.append(Migration(int(number), name, entry.read_text("utf-8")))
    found.sort(key=lambda migration: migration.version)
    assert [migration.version for migration in found] == list(range(1, len(found) + 1)), "migrations have a gap"
    return tuple(found)


def schema_version(connection: apsw.Connection) -> int:
    """``PRAGMA user_version``: the number of the last applied migration."""
    return int(connection.pragma("user_version"))


def migrate(
    connection: apsw.Connection,
    path: Path,
    clock: Clock,
    *,
    migrations: Sequence[Migration] | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> int:
    """The schema is current; returns the number of migrations applied.

    Raises ``NewerSchema`` (nothing touched), ``StoreIOError`` when an applied migration's text changed or the backup
    does not verify, apsw errors (the migration in progress rolled back).
    """
    known = tuple(migrations) if migrations is not None else load_migrations()
    current = schema_version(connection)
    if current > len(known):
        raise NewerSchema(
            f"{path} has schema {current}, this release knows {len(known)}:"
            " install the newer release, or restore a backup"
        )
    if current:
        recorded = dict(connection.execute("SELECT version, checksum FROM schema_migrations"))
        for migration in known[:current]:
            if recorded.get(migration.version) != migration.checksum:
                raise StoreIOError(
                    f"migration {migration.version} ({migration.name}) was applied with other text than this one"
                )
    pending = known[current:]
    if not pending:
        return 0
    if current:
        progress(f"backing up schema {current} before migrating")
        backup(connection, path.with_name(f"{path.stem}.schema-{current}.backup.db"))
    for migration in pending:
        progress(f"applying migration {migration.version} ({migration.name})")
        _apply(connection, migration, clock)
    return len(pending)


def _apply(connection: apsw.Connection, migration: Migration, clock: Clock) -> None:
    started_ns = clock.monotonic_ns()
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_migrations ("
            " version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at TEXT NOT NULL) STRICT"
        )
        connection.execute(
            "CREATE TABLE IF NOT EXISTS schema_migrations_audit ("
            " id INTEGER PRIMARY KEY, version INTEGER NOT NULL, started_at TEXT NOT NULL, duration_ms REAL NOT NULL,"
            " sqlite_version TEXT NOT NULL) STRICT"
        )
        for _ in connection.execute(migration.sql):
            pass
        sync_point("writer.mid_migration")
        now = iso(clock.wall_ms())
        connection.execute(
            "INSERT INTO schema_migrations (version, name, checksum, applied_at) VALUES (?, ?, ?, ?)",
            (migration.version, migration.name, migration.checksum, now),
        )
        connection.execute(
            "INSERT INTO schema_migrations_audit (version, started_at, duration_ms, sqlite_version)"
            " VALUES (?, ?, ?, ?)",
            (migration.version, now, (clock.monotonic_ns() - started_ns) / 1e6, apsw.sqlite_lib_version()),
        )
        connection.execute(f"PRAGMA user_version = {migration.version}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def backup(connection: apsw.Connection, target: Path) -> None:
    """``target`` is a consistent, verified copy of the database, readable by its owner only.

    An older file of that name is replaced only after the new one has passed its integrity check, and the new name is on
    disk before the caller changes anything: a copy that a power cut takes away would be none.
    Raises ``StoreIOError`` when the copy does not verify.
    """
    partial = target.with_name(target.name + ".partial")
    partial.unlink(missing_ok=True)
    os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    sync_point("writer.mid_backup")
    connection.execute("VACUUM INTO ?", (str(partial),))
    copy = apsw.Connection(str(partial), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        verdict = copy.pragma("integrity_check")
    finally:
        copy.close()
    if verdict != "ok":
        partial.unlink(missing_ok=True)
        raise StoreIOError(f"the backup {target} did not pass its integrity check: {verdict}")
    descriptor = os.open(partial, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    partial.replace(target)
    sync_directory(target.parent)
