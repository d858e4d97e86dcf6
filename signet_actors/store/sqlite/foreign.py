"""Read the tables of another program's database, which is opened for reading only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from signet_actors.store.sqlite.connect import harden

_TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table'"
_ROWS = 'SELECT * FROM "{}"'


def foreign_rows(path: Path, tables: Sequence[str]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield ``(table, None)`` for each of the tables that exists, and ``(table, row)`` for its rows, without blobs.

    Raises apsw.Error.
    """
    uri = f"{path.absolute().as_uri()}?mode=ro"
    connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI)
    try:
        harden(connection)
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
