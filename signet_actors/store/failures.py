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
"""Errors after which this connection is not to be believed any more. Source: reliability.md R3."""
