"""The capability to read: one consistent view, for a bounded time.

A read transaction that is forgotten lets the WAL grow without bound, so every snapshot has a deadline, enforced by
SQLite's progress handler.

Source: reliability.md section 0 (4), R14.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import apsw

from signet_actors.errors import ErrorCode, SignetError
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.sync_points import sync_point

_STEPS_BETWEEN_CHECKS = 20_000


class ReadTimeout(SignetError):
    """The read took longer than its deadline and was ended."""

    code = ErrorCode.UNAVAILABLE
    retry_after_ms = 1000


class Snapshot:
    """An open read transaction."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection

    def rows(self, sql: str, bindings: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a SELECT."""
        return self.connection.execute(sql, bindings).fetchall()

    def one(self, sql: str, bindings: Sequence[Any] | Mapping[str, Any] = ()) -> Any | None:
        """The first row, or None."""
        return self.connection.execute(sql, bindings).fetchone()

    def value(self, sql: str, bindings: Sequence[Any] | Mapping[str, Any] = ()) -> Any:
        """The first column of the first row, or None."""
        row = self.connection.execute(sql, bindings).fetchone()
        return None if row is None else row[0]


@contextmanager
def snapshot(
    connection: apsw.Connection, clock: Clock, *, deadline_ns: int, beat: Callable[[], None] = lambda: None
) -> Iterator[Snapshot]:
    """A consistent view until the block ends or ``deadline_ns`` (monotonic) passes: then ``ReadTimeout``.

    ``beat`` is called while a long statement runs, so that its process is not taken for a hung one.
    """

    def past_deadline() -> bool:
        beat()
        return clock.monotonic_ns() > deadline_ns

    connection.set_progress_handler(past_deadline, _STEPS_BETWEEN_CHECKS)
    connection.execute("BEGIN")
    try:
        sync_point("searcher.snapshot_open")
        yield Snapshot(connection)
    except apsw.InterruptError as error:
        raise ReadTimeout from error
    finally:
        connection.set_progress_handler(None)
        if connection.in_transaction:
            connection.execute("ROLLBACK")
