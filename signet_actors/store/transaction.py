"""The capability to write: only who holds a ``WriteTransaction`` can change rows, and only the writer can make one.

Source: docs/reliability.md "The writer's loop"; docs/architecture.md "Dependency rules" 3.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from signet_actors.runtime.sync_points import sync_point

Bindings = Sequence[Any] | Mapping[str, Any]


class WriteTransaction:
    """An open ``BEGIN IMMEDIATE``: statements run in it, nothing is durable before ``commit`` returns."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    def execute(self, sql: str, bindings: Bindings = ()) -> None:
        """Run one statement that returns nothing."""
        self.connection.execute(sql, bindings)

    def rows(self, sql: str, bindings: Bindings = ()) -> list[tuple[Any, ...]]:
        """All rows of a SELECT."""
        return self.connection.execute(sql, bindings).fetchall()

    def one(self, sql: str, bindings: Bindings = ()) -> Any | None:
        """The first row, or None."""
        return self.connection.execute(sql, bindings).fetchone()

    def changes(self) -> int:
        """Rows that the last INSERT, UPDATE or DELETE changed itself (not its triggers)."""
        return self.connection.changes()

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """What runs inside is undone when it raises, and the transaction goes on."""
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
        """All of it is on disk (``synchronous=FULL``), or an apsw error says otherwise."""
        sync_point("writer.before_commit")
        self.connection.execute("COMMIT")
        sync_point("writer.after_commit")


@contextmanager
def write_transaction(connection: apsw.Connection) -> Iterator[WriteTransaction]:
    """A transaction that rolls back unless ``commit`` was called inside.

    Waits for a foreign lock as long as the connection's busy handler allows; raises ``apsw.BusyError`` after that.
    """
    connection.execute("BEGIN IMMEDIATE")
    sync_point("writer.after_begin")
    try:
        yield WriteTransaction(connection)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
