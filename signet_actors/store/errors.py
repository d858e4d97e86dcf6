"""Names for SQLite's errors, so that other rooms need not import ``apsw``."""

from __future__ import annotations

import apsw

Connection = apsw.Connection
"""An open database connection."""

StoreError = apsw.Error
"""Any error that SQLite reports."""

LockTimeout = apsw.BusyError
"""Another program held the lock longer than the busy handler waited; nothing was applied."""

DiskFull = apsw.FullError
"""The disk is full or the page limit is reached; nothing was applied, and reads still work."""

ConstraintViolated = apsw.ConstraintError
"""A row violates a constraint."""

QueryRefused = apsw.SQLError
"""The statement, or a caller's FTS5 expression, is not valid."""

REMEDY = (
    "see `signet doctor --deep`; `signet restore latest` puts the newest backup in its place, the daemon being stopped"
)
"""Advice for a damaged database."""

DAMAGED = (apsw.CorruptError, apsw.NotADBError)
"""The file is not what SQLite has written."""

BROKEN_DISK: tuple[type[Exception], ...] = (
    apsw.IOError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    OSError,
)
"""Errors after which this connection must not be trusted any more. Source: docs/reliability.md R3."""


def check_schema(connection: Connection) -> None:
    """Raise a ``StoreError`` unless the schema can be read; rows may still be damaged."""
    connection.execute("SELECT sql FROM sqlite_schema").fetchall()
    connection.execute("SELECT id FROM memories LIMIT 0").fetchall()


def is_index_damage(error: Exception) -> bool:
    """Return True if, as far as SQLite can tell, only an index is damaged, which can be rebuilt."""
    return isinstance(error, apsw.CorruptError) and getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB
