"""SQLite's errors by the names of ``store.errors``."""

from __future__ import annotations

import errno

import apsw

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


UNCHECKABLE: tuple[type[Exception], ...] = (
    apsw.IOError,
    apsw.CantOpenError,
    apsw.FullError,
    apsw.NoMemError,
    apsw.BusyError,
    apsw.LockedError,
    apsw.ReadOnlyError,
    apsw.PermissionsError,
    apsw.ExtensionLoadingError,
    OSError,
    MemoryError,
)
"""Errors that say nothing about the contents of a file: a check that meets one has neither passed nor failed."""

_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""The disk, the user's quota or the file's permitted size is used up."""

_GROWING = frozenset({apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_SHMSIZE})
"""Errors of the calls that make a file longer. A failed sync is never a full disk: written pages may be lost."""


def raise_if_out_of_space(connection: apsw.Connection, error: apsw.IOError) -> None:
    """Raise ``DiskFull`` if ``error`` is a write that failed because of a quota or a limit of the file's size.

    SQLite reports only ENOSPC as a full disk, and EDQUOT and EFBIG as a failed write. It handles both alike: the
    transaction is rolled back, and nothing of it is in the log.

    Source: https://sqlite.org/c3ref/system_errno.html; docs/reliability.md R4.
    """
    if getattr(error, "extendedresult", 0) in _GROWING and connection.system_errno in _NO_SPACE:
        raise DiskFull(f"{error}: {errno.errorcode[connection.system_errno]}") from error


def is_index_damage(error: Exception) -> bool:
    """Return True if, as far as SQLite can tell, only an index is damaged, which can be rebuilt."""
    return isinstance(error, apsw.CorruptError) and getattr(error, "extendedresult", 0) == apsw.SQLITE_CORRUPT_VTAB
