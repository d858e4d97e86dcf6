"""What can go wrong under a statement, in the words of the rest of the program; SQLite's names stay in this room."""

from __future__ import annotations

import apsw

Connection = apsw.Connection
"""An open database connection."""

StoreError = apsw.Error
"""Any error that SQLite reports."""

LockTimeout = apsw.BusyError
"""Another program held the lock for longer than the busy handler allowed; nothing was applied."""

DiskFull = apsw.FullError
"""The disk, or the page limit, is exhausted; nothing was applied and reads go on."""

ConstraintViolated = apsw.ConstraintError
"""A row may not be stored beside one that is there."""

QueryRefused = apsw.SQLError
"""The statement, or a caller's FTS5 expression, is not valid."""

REMEDY = (
    "see `signet doctor --deep`; `signet restore latest` puts the newest backup in its place, the daemon being stopped"
)
"""What to do about a damaged database."""

DAMAGED = (apsw.CorruptError, apsw.NotADBError)
"""The file is not what SQLite wrote."""

BROKEN_DISK: tuple[type[Exception], ...] = (
    apsw.IOError,
    apsw.CorruptError,
    apsw.NotADBError,
    apsw.ReadOnlyError,
    apsw.CantOpenError,
    OSError,
)
"""Errors after which this connection is not to be believed any more. Source: docs/reliability.md R3."""


def check_schema(connection: Connection) -> None:
    """Raise a ``StoreError`` unless the schema can be read; rows may still be damaged."""
    connection.execute("SELECT sql FROM sqlite_schema").fetchall()
    connection.execute("SELECT id FROM memories LIMIT 0").fetchall()


def is_index_damage(error: Exception) -> bool:
    """True if only an index that can be built anew is damaged, as far as SQLite can tell."""
    return isinstance(error, apsw.CorruptError) and getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB
