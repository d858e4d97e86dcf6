"""The capability to read: one consistent view, for a bounded time.

A read transaction that is forgotten lets the WAL grow without bound, so every snapshot has a deadline, enforced by
SQLite's progress handler. It can also be ended before that, when the writer needs the log folded back.

Source: docs/reliability.md "Ground rules" 4, R14.
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


class SnapshotEnded(SignetError):
    """The snapshot was ended because the write-ahead log had grown too long; the same question may be asked again."""

    code = ErrorCode.UNAVAILABLE
    retry_after_ms = 1000


class Preempted(Exception):
    """The query stepped back for one that somebody waits for; it may be begun again."""


class Snapshot:
    """An open read transaction. ``should_yield``: whether its query has to step back now, and None if it never has."""

    def __init__(self, connection: apsw.Connection, should_yield: Callable[[], bool] | None = None) -> None:
        self.connection = connection
        self._should_yield = should_yield

    def check_preempted(self) -> None:
        """Raises Preempted if others wait. Called between steps that leave every cache as it was or complete."""
        if self._should_yield is not None and self._should_yield():
            raise Preempted

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
def open_snapshot(
    connection: apsw.Connection,
    clock: Clock,
    *,
    deadline_ns: int,
    heartbeat: Callable[[], None] = lambda: None,
    is_revoked: Callable[[], bool] = lambda: False,
    should_yield: Callable[[], bool] | None = None,
) -> Iterator[Snapshot]:
    """A consistent view until the block ends, ``deadline_ns`` (monotonic) passes: then ``ReadTimeout``, or
    ``is_revoked`` says so: then ``SnapshotEnded``.

    ``heartbeat`` is called while a long statement runs, so that its process is not taken for a hung one.
    """
    ended = False

    def is_over() -> bool:
        nonlocal ended
        heartbeat()
        ended = is_revoked()
        return ended or clock.monotonic_ns() > deadline_ns

    connection.set_progress_handler(is_over, _STEPS_BETWEEN_CHECKS)
    connection.execute("BEGIN")
    try:
        sync_point("searcher.snapshot_open")
        yield Snapshot(connection, should_yield)
    except apsw.InterruptError as error:
        raise (SnapshotEnded if ended else ReadTimeout) from error
    finally:
        connection.set_progress_handler(None)
        if connection.in_transaction:
            connection.execute("ROLLBACK")
