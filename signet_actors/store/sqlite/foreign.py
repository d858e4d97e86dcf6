"""Read the tables of another program's database, which is opened for reading only.

Its generated columns may make a text of any length out of nothing, so the length of a value is bounded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import apsw

from signet_actors.store.sqlite.connect import harden

MAX_VALUE_BYTES: Final = 16 * 1024 * 1024
_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"
_ROWS = 'SELECT * FROM "{}"'


def foreign_rows(path: Path, tables: Sequence[str]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield ``(table, None)`` for each of the tables that exists, and ``(table, row)`` for its rows, without blobs.

    Raises apsw.Error, ``TooBigError`` for a value of more than ``MAX_VALUE_BYTES``.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        harden(connection)
        connection.limit(apsw.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        connection.set_busy_timeout(5000)
        existing = {name for (name,) in connection.execute(_TABLES)}
        for table in tables:
            if table not in existing:
                continue
            yield table, None
            cursor = connection.execute(_ROWS.format(table.replace('"', '""')))
            names: list[str] = []
            for row in cursor:
                names = names or [name for name, *_ in cursor.get_description()]
                cells = zip(names, row, strict=True)
                yield table, {name: value for name, value in cells if not isinstance(value, bytes)}
    finally:
        connection.close()
