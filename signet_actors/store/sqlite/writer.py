"""The SQLite engine of the writer: the only connection that writes and checkpoints.

Rows are changed only through a ``SqliteTransaction``, which only this engine can open.

Source: docs/reliability.md "The writer's loop"; docs/architecture.md "Dependency rules" 3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import apsw

from signet_actors.errors import CheckIncomplete
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.sync_points import sync_point
from signet_actors.store.engine import Bindings, Insert, WriteTransaction
from signet_actors.store.findings import STRUCTURE, Finding
from signet_actors.store.sqlite.checkpoint import checkpoint
from signet_actors.store.sqlite.checks import schema_findings, scrub
from signet_actors.store.sqlite.connect import has_moved, open_writer, report_progress
from signet_actors.store.sqlite.errors import raise_if_out_of_space
from signet_actors.store.sqlite.migrate import migrate
from signet_actors.store.sqlite.online_backup import OnlineBackup, database_bytes
from signet_actors.store.sqlite.page_checks import first_page_error, is_unread_page
from signet_actors.store.sqlite.reader import NO_BINDINGS, SqliteEngine, SqliteReads
from signet_actors.store.sqlite.repairs import repair_indexes
from signet_actors.store.sqlite.vector_checks import sequence_errors
from signet_actors.store.sqlite.vectors import create_vec_table, vec_table

_UNOBSERVED = nullcontext()
MAX_ROWS_PER_STATEMENT: Final = 32
_INDEX_COLUMNS: Final = ("rowid", "embedding")


class SqliteTransaction(SqliteReads):
    """An open ``BEGIN IMMEDIATE`` transaction; nothing is durable before ``commit`` returns."""

    def __init__(
        self,
        connection: apsw.Connection,
        during_sync: AbstractContextManager[None],
        during_statement: AbstractContextManager[None],
    ) -> None:
        super().__init__(connection)
        self._during_sync = during_sync
        self._during_statement = during_statement

    def execute(self, sql: str, bindings: Bindings = NO_BINDINGS) -> None:
        self._connection.execute(sql, bindings)

    def execute_long(self, sql: str, bindings: Bindings = NO_BINDINGS) -> None:
        with self._during_statement:
            self._connection.execute(sql, bindings)

    def insert(self, insert: Insert, values: Sequence[Any]) -> None:
        width = len(insert.columns)
        begin = 0
        while begin < len(values):
            # Powers of two: a table needs six prepared statements instead of thirty-two.
            left = (len(values) - begin) // width
            rows = min(MAX_ROWS_PER_STATEMENT, 1 << (left.bit_length() - 1))
            with self._during_statement:
                self._connection.execute(_insert_statement(insert, rows), values[begin : begin + rows * width])
            begin += rows * width

    @property
    def is_open(self) -> bool:
        return self._connection.in_transaction

    def total_changes(self) -> int:
        """Return the number of rows that this connection ever changed, with changes by triggers."""
        return self._connection.total_changes()

    def changes(self) -> int:
        return self._connection.changes()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        self._connection.execute("SAVEPOINT command")
        try:
            yield
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK TO command")
                self._connection.execute("RELEASE command")
            raise
        self._connection.execute("RELEASE command")

    def commit(self) -> None:
        """Commit; when this returns, everything is on disk (``synchronous=FULL``). Raises apsw errors."""
        sync_point("writer.before_commit")
        with self._during_sync:
            self._connection.execute("COMMIT")
        sync_point("writer.after_commit")

    def vector_index(self, model: str, dimensions: int) -> Insert | None:
        table = vec_table(self._connection, model, dimensions)
        return None if table is None else Insert(table, _INDEX_COLUMNS)

    def create_vector_index(self, number: int, dimensions: int) -> Insert:
        return Insert(create_vec_table(self._connection, number, dimensions), _INDEX_COLUMNS)

    def rebuild_text_index(self) -> None:
        self.execute_long("INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')")

    def unindex_vector(self, model: str, dimensions: int, seq: int) -> None:
        table = vec_table(self._connection, model, dimensions)
        if table is not None:
            self._connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (seq,))


@lru_cache(maxsize=1024)
def _insert_statement(insert: Insert, rows: int) -> str:
    values = f"({', '.join('?' * len(insert.columns))})"
    columns = ", ".join(insert.columns)
    return f"INSERT INTO {insert.table} ({columns}) VALUES {', '.join([values] * rows)} {insert.on_conflict}"


class SqliteWriter(SqliteEngine):
    """A connection that may write. Reads outside a transaction see what is committed."""

    @contextmanager
    def begin(
        self,
        during_sync: AbstractContextManager[None] = _UNOBSERVED,
        during_statement: AbstractContextManager[None] = _UNOBSERVED,
    ) -> Iterator[WriteTransaction]:
        """Open a transaction that is rolled back unless ``commit`` is called in the block.

        COMMIT runs inside ``during_sync``, long statements run inside ``during_statement``. Waits for a lock of another
        program as long as the connection's busy handler allows, then raises ``apsw.BusyError``.
        """
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            sync_point("writer.after_begin")
            try:
                yield SqliteTransaction(connection, during_sync, during_statement)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except apsw.IOError as error:
            raise_if_out_of_space(connection, error)
            raise

    def migrate(
        self,
        path: Path,
        clock: Clock,
        *,
        progress: Callable[[str], None],
        heartbeat: Callable[[], None],
        keep: int,
    ) -> int:
        return migrate(self._connection, path, clock, progress=progress, heartbeat=heartbeat, keep=keep)

    def report_progress(self, callback: Callable[[], None]) -> None:
        report_progress(self._connection, callback)

    def watch_log(self, callback: Callable[[int], None]) -> None:
        def committed(_connection: apsw.Connection, _database: str, frames: int) -> int:
            callback(frames)
            return apsw.SQLITE_OK

        self._connection.set_wal_hook(committed)

    def checkpoint(self, mode: str) -> tuple[int, int]:
        return checkpoint(self._connection, mode)

    def has_moved(self) -> bool:
        return has_moved(self._connection)

    def database_bytes(self) -> int:
        return database_bytes(self._connection)

    def begin_backup(self, partial: Path) -> OnlineBackup:
        return OnlineBackup(self._connection, partial)

    def object_errors(self) -> list[str]:
        found = [finding.text for finding in schema_findings(self._connection)[0] if finding.kind == STRUCTURE]
        return [*found, *sequence_errors(self._connection)]

    def page_error(self, *, every_page: bool, heartbeat: Callable[[], None]) -> str | None:
        """Return the first thing that is wrong with the pages, or None. Raises ``CheckIncomplete``."""
        error = first_page_error(self._connection, every_page=every_page, heartbeat=heartbeat)
        if error is not None and is_unread_page(error):
            raise CheckIncomplete(f"could not be checked: {error}")
        return error

    def findings(self, *, deep: bool) -> list[Finding]:
        """Return what is wrong with the database; see ``scrub``."""
        return scrub(self._connection, deep=deep)

    def repair_indexes(self) -> tuple[str, ...]:
        return repair_indexes(self._connection)


def write_engine(path: Path, *, busy: Callable[[int], bool], create: bool = True, set_wal: bool = True) -> SqliteWriter:
    """Open the database for writing; see ``open_writer``."""
    return SqliteWriter(open_writer(path, busy=busy, create=create, set_wal=set_wal))
