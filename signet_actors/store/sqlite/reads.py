"""Reading through a connection, in whatever transaction it has open; what is committed if it has none."""

from __future__ import annotations

from typing import Any, Final

import apsw

from signet_actors.store.engine import Bindings
from signet_actors.store.sqlite.dialect import DIALECT, SqliteDialect

NO_BINDINGS: Final[dict[str, Any]] = {}
_LAST_NUMBER: Final = "SELECT seq FROM sqlite_sequence WHERE name = ?"


class SqliteReads:
    """Reads through a connection."""

    dialect: SqliteDialect = DIALECT

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, bindings: Bindings = NO_BINDINGS) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT."""
        return self._connection.execute(sql, bindings).fetchall()

    def one(self, sql: str, bindings: Bindings = NO_BINDINGS) -> Any | None:
        """Return the first row, or None."""
        return self._connection.execute(sql, bindings).fetchone()

    def value(self, sql: str, bindings: Bindings = NO_BINDINGS) -> Any:
        """Return the first column of the first row, or None."""
        row = self._connection.execute(sql, bindings).fetchone()
        return None if row is None else row[0]

    def last_number(self, table: str) -> int:
        """Return the highest number that the table ever gave out for a row, 0 if none or if that is damaged."""
        row = self._connection.execute(_LAST_NUMBER, (table,)).fetchone()
        return row[0] if row is not None and isinstance(row[0], int) else 0

    def schema_version(self) -> int:
        """Return ``PRAGMA user_version``, the number of the newest applied migration."""
        return int(self._connection.pragma("user_version"))
