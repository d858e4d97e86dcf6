"""The capability to read: a consistent snapshot with a deadline.

An open read transaction lets the write-ahead log grow without bound. So every snapshot has a deadline, enforced by
SQLite's progress handler. It can also be revoked earlier, when the writer needs a checkpoint.

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
_STEPS_IF_EXPENSIVE = 200
"""For statements whose single steps are slow: FTS5 ranks a long row within a few steps."""


class ReadTimeout(SignetError):
    """The read exceeded its deadline."""

    code = ErrorCode.UNAVAILABLE
    retry_after_ms = 1000


class SnapshotEnded(SignetError):
    """The snapshot was revoked because the write-ahead log had grown too long; the query may be retried."""

    code = ErrorCode.UNAVAILABLE
    retry_after_ms = 1000


class Preempted(Exception):
    """The query was preempted by a more urgent one; it may be started over."""


class Snapshot:
    """An open read transaction. ``should_yield`` tells whether a more urgent query waits; None disables preemption."""

    def __init__(
        self,
        connection: apsw.Connection,
        should_yield: Callable[[], bool] | None = None,
        is_over: Callable[[], bool] = lambda: False,
    ) -> None:
        self.connection = connection
        self._should_yield = should_yield
        self._is_over = is_over

    def check_often(self) -> None:
        """Check the deadline after fewer steps from now on, because single steps of the next statement are slow."""
        self.connection.set_progress_handler(self._is_over, _STEPS_IF_EXPENSIVE)

    def check_preempted(self) -> None:
        """Raise Preempted if a more urgent query waits. Call this only between steps that leave caches consistent."""
        if self._should_yield is not None and self._should_yield():
            raise Preempted

    def rows(self, sql: str, bindings: Sequence[Any] | Mapping[str, Any] = ()) -> list[tuple[Any, ...]]:
        """Return all rows of a SELECT."""
        return self.connection.execute(sql, bindings).fetchall()

    def one(self, sql: str, bindings: Sequence[Any] | Mapping[str, Any] = ()) -> Any | None:
        """Return the first row, or None."""
        return self.connection.execute(sql, bindings).fetchone()

    def value(self, sql: str, bindings: Sequence[Any] | Mapping[str, Any] = ()) -> Any:
        """Return the first column of the first row, or None."""
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
    """Open a snapshot that lasts until the end of the block.

    Raises ``ReadTimeout`` when ``deadline_ns`` (monotonic) has passed and ``SnapshotEnded`` when ``is_revoked`` returns
    True. ``heartbeat`` is called while a long statement runs, so that the process does not look hung.
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
        yield Snapshot(connection, should_yield, is_over)
    except apsw.InterruptError as error:
        raise (SnapshotEnded if ended else ReadTimeout) from error
    finally:
        connection.set_progress_handler(None)
        if connection.in_transaction:
            connection.execute("ROLLBACK")
