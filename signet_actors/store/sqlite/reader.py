"""The SQLite engine of a process that only reads."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from signet_actors.runtime.clock import Clock
from signet_actors.store.engine import Snapshot
from signet_actors.store.sqlite.connect import drop_cached_pages, open_reader
from signet_actors.store.sqlite.reads import SqliteReads
from signet_actors.store.sqlite.snapshot import open_snapshot


class SqliteEngine(SqliteReads):
    """What the engines of readers and of the writer have in common."""

    def check_schema(self) -> None:
        """Raise a ``StoreError`` unless the schema can be read; rows may still be damaged."""
        self._connection.execute("SELECT sql FROM sqlite_schema").fetchall()
        self._connection.execute("SELECT id FROM memories LIMIT 0").fetchall()

    def file_bytes(self) -> int:
        """Return the size of the database file."""
        return os.stat(self._connection.filename).st_size

    def drop_cached_pages(self) -> None:
        """Free SQLite's page cache; the next statements read the pages from the operating system's cache."""
        drop_cached_pages(self._connection)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class SqliteReader(SqliteEngine):
    """A read-only connection, which can neither write nor checkpoint."""

    def snapshot(
        self,
        clock: Clock,
        *,
        deadline_ns: int,
        heartbeat: Callable[[], None] = lambda: None,
        is_revoked: Callable[[], bool] = lambda: False,
        should_yield: Callable[[], bool] | None = None,
    ) -> AbstractContextManager[Snapshot]:
        """Open a snapshot; see ``open_snapshot``."""
        return open_snapshot(
            self._connection,
            clock,
            deadline_ns=deadline_ns,
            heartbeat=heartbeat,
            is_revoked=is_revoked,
            should_yield=should_yield,
        )


def read_engine(path: Path) -> SqliteReader:
    """Open the database for reading."""
    return SqliteReader(open_reader(path))
