"""SQLite's own checks of the pages of a database file, and what their results mean."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import apsw

from signet_actors.store.sqlite.connect import heartbeat_during

_UNREADABLE_CODES: Final = frozenset(
    {apsw.SQLITE_IOERR, apsw.SQLITE_NOMEM, apsw.SQLITE_FULL, apsw.SQLITE_CANTOPEN, apsw.SQLITE_BUSY}
)


def is_unread_page(verdict: str) -> bool:
    """Return True if a line of ``integrity_check`` reports a page that could not be read, not one that is wrong."""
    code = verdict.partition("error code=")[2].partition("\n")[0].strip()
    return code.isdecimal() and int(code) & 0xFF in _UNREADABLE_CODES


def first_page_error(connection: apsw.Connection, *, every_page: bool, heartbeat: Callable[[], None]) -> str | None:
    """Return the first thing that is wrong with the pages, or None.

    With ``every_page`` also what is on each page is checked, otherwise only how they hang together.
    """
    with heartbeat_during(connection, heartbeat):
        verdict = str(connection.pragma("integrity_check" if every_page else "quick_check", 1))
    return None if verdict == "ok" else verdict
