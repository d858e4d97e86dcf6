"""The capability to write: rows are changed only through a transaction, which only the writer can open.

Source: docs/reliability.md "The writer's loop"; docs/architecture.md "Dependency rules" 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from typing import Any, Final

import apsw

from signet_actors.runtime.sync_points import sync_point
from signet_actors.store.engine import Bindings, Insert
from signet_actors.store.sqlite.errors import quota_as_full_disk
from signet_actors.store.sqlite.reads import NO_BINDINGS, SqliteReads
from signet_actors.store.sqlite.vectors import create_vec_table, vec_table

MAX_ROWS_PER_STATEMENT: Final = 32

_UNOBSERVED: Final = nullcontext()
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
        """Run one statement that returns no rows."""
        self._connection.execute(sql, bindings)

    def execute_long(self, sql: str, bindings: Bindings = NO_BINDINGS) -> None:
        """Run one statement that may take long for few rows, because it writes long texts and their index."""
        with self._during_statement:
            self._connection.execute(sql, bindings)

    def insert(self, insert: Insert, values: Sequence[Any]) -> None:
        """Insert rows whose values are given one after another, many to a statement."""
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
        """Whether SQLite has not rolled the transaction back because of an error."""
        return self._connection.in_transaction

    def total_changes(self) -> int:
        """Return the number of rows that this connection ever changed, with changes by triggers."""
        return self._connection.total_changes()

    def changes(self) -> int:
        """Return the number of rows that the last INSERT, UPDATE or DELETE changed, without changes by triggers."""
        return self._connection.changes()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo the statements of the block if it raises; the transaction stays open."""
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
        """Return the INSERT of ``(embeddings.seq, vector)`` into the ``vec0`` table of the model, or None."""
        table = vec_table(self._connection, model, dimensions)
        return None if table is None else Insert(table, _INDEX_COLUMNS)

    def create_vector_index(self, number: int, dimensions: int) -> Insert:
        """Create the ``vec0`` table of the model with this ``embedding_models.id``; return its INSERT."""
        return Insert(create_vec_table(self._connection, number, dimensions), _INDEX_COLUMNS)

    def unindex_vector(self, model: str, dimensions: int, seq: int) -> None:
        """Remove the vector from the ``vec0`` table of the model, if it is there."""
        table = vec_table(self._connection, model, dimensions)
        if table is not None:
            self._connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (seq,))


@lru_cache(maxsize=1024)
def _insert_statement(insert: Insert, rows: int) -> str:
    values = f"({', '.join('?' * len(insert.columns))})"
    columns = ", ".join(insert.columns)
    return f"INSERT INTO {insert.table} ({columns}) VALUES {', '.join([values] * rows)} {insert.on_conflict}"


@contextmanager
def write_transaction(
    connection: apsw.Connection,
    during_sync: AbstractContextManager[None] = _UNOBSERVED,
    during_statement: AbstractContextManager[None] = _UNOBSERVED,
) -> Iterator[SqliteTransaction]:
    """Open a transaction that is rolled back unless ``commit`` is called in the block.

    COMMIT runs inside ``during_sync``, long statements run inside ``during_statement``.

    Waits for a lock of another program as long as the connection's busy handler allows, then raises ``apsw.BusyError``.
    """
    with quota_as_full_disk(connection):
        connection.execute("BEGIN IMMEDIATE")
        sync_point("writer.after_begin")
        try:
            yield SqliteTransaction(connection, during_sync, during_statement)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
