"""The capability to write: rows are changed only through a ``WriteTransaction``, which only the writer can open.

Source: docs/reliability.md "The writer's loop"; docs/architecture.md "Dependency rules" 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import apsw

from signet_actors.runtime.sync_points import sync_point
from signet_actors.store.access import Bindings
from signet_actors.store.errors import quota_as_full_disk

_UNOBSERVED = nullcontext()


class WriteTransaction:
    """An open ``BEGIN IMMEDIATE`` transaction; nothing is durable before ``commit`` returns."""

    def __init__(
        self,
        connection: apsw.Connection,
        during_sync: AbstractContextManager[None],
        during_statement: AbstractContextManager[None],
    ) -> None:
        self.connection = connection
        self._during_sync = during_sync
        self._during_statement = during_statement

    def execute(self, sql: str, bindings: Bindings = ()) -> None:
        """Run one statement that returns no rows."""
        self.connection.execute(sql, bindings)

    def execute_long(self, sql: str, bindings: Bindings = ()) -> None:
        """Run one statement that may take long for few rows, because it writes long texts and their index."""
        with self._during_statement:
            self.connection.execute(sql, bindings)

    def rows(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT."""
        return self.connection.execute(sql, bindings).fetchall()

    def one(self, sql: str, bindings: Bindings = ()) -> Any | None:
        """Return the first row, or None."""
        return self.connection.execute(sql, bindings).fetchone()

    @property
    def is_open(self) -> bool:
        """Whether SQLite has not rolled the transaction back because of an error."""
        return self.connection.in_transaction

    def total_changes(self) -> int:
        """Return the number of rows that this connection ever changed, with changes by triggers."""
        return self.connection.total_changes()

    def changes(self) -> int:
        """Return the number of rows that the last INSERT, UPDATE or DELETE changed, without changes by triggers."""
        return self.connection.changes()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """Undo the statements of the block if it raises; the transaction stays open."""
        self.connection.execute("SAVEPOINT command")
        try:
            yield
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK TO command")
                self.connection.execute("RELEASE command")
            raise
        self.connection.execute("RELEASE command")

    def commit(self) -> None:
        """Commit; when this returns, everything is on disk (``synchronous=FULL``). Raises apsw errors."""
        sync_point("writer.before_commit")
        with self._during_sync:
            self.connection.execute("COMMIT")
        sync_point("writer.after_commit")


@contextmanager
def write_transaction(
    connection: apsw.Connection,
    during_sync: AbstractContextManager[None] = _UNOBSERVED,
    during_statement: AbstractContextManager[None] = _UNOBSERVED,
) -> Iterator[WriteTransaction]:
    """Open a transaction that is rolled back unless ``commit`` is called in the block.

    COMMIT runs inside ``during_sync``, long statements run inside ``during_statement``.

    Waits for a lock of another program as long as the connection's busy handler allows, then raises ``apsw.BusyError``.
    """
    with quota_as_full_disk(connection):
        connection.execute("BEGIN IMMEDIATE")
        sync_point("writer.after_begin")
        try:
            yield WriteTransaction(connection, during_sync, during_statement)
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
