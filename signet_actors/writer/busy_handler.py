"""How long the writer waits for a lock that another program holds on the database.

Source: docs/reliability.md R5, "The writer's loop".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from signet_actors.config.schema import WriterConfig
from signet_actors.protocol.leases import AdvanceHighWaterMark, ReapLeases
from signet_actors.protocol.pipeline import ReconcileJobs
from signet_actors.protocol.writer import PurgeStep, WriterCommand
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.mailbox import Incoming
from signet_actors.runtime.processes.actor_loop import ActorLoop

_NS = 1_000_000_000
REPLY_MARGIN_NS = _NS // 2
"""A refusal is sent this long before the caller's deadline, so that it arrives in time."""
BACKGROUND_COMMANDS: Final = (PurgeStep, ReapLeases, ReconcileJobs, AdvanceHighWaterMark)
"""Periodic commands that are repeated later anyway. Their deadlines do not follow from ``requestTimeoutMs``, so they do
not limit how long a batch waits for a lock."""


def lock_wait_until_ns(deadline_ns: int, limits: WriterConfig) -> int:
    """Return when a command with this deadline must stop waiting for a foreign lock.

    The wait is counted from when the command was sent. A command that queued behind a batch which waited for the lock
    has used up its wait, and is refused as soon as the lock is found taken again; otherwise the second in the queue
    would wait twice as long as the first.
    """
    asked_ns = deadline_ns - limits.request_timeout_ms * 1_000_000
    return min(asked_ns + limits.busy_timeout_ms * 1_000_000, deadline_ns - REPLY_MARGIN_NS)


def batch_wait_until_ns(part: Sequence[Incoming[WriterCommand]], limits: WriterConfig) -> int | None:
    """Return when the commands of one commit must stop waiting for a foreign lock; None if no caller waits for them."""
    deadlines = [
        incoming.header.deadline_ns
        for incoming in part
        if incoming.header.deadline_ns and not isinstance(incoming.body, BACKGROUND_COMMANDS)
    ]
    return lock_wait_until_ns(min(deadlines), limits) if deadlines else None


class BusyHandler:
    """SQLite's busy handler: wait for a foreign lock up to a limit, and send heartbeats meanwhile.

    It gives up at ``until_ns`` at the latest, where that is set, so that a refusal reaches the caller before its
    deadline.
    """

    def __init__(
        self, clock: Clock, loop: ActorLoop, limit_ms: int, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._clock = clock
        self._loop = loop
        self._sleep = sleep
        self.limit_ms = limit_ms
        self.until_ns: int | None = None
        self.starting = True
        self._begun_ns = 0
        self._last_report_ns = 0

    def __call__(self, prior_calls: int) -> bool:
        now_ns = self._clock.monotonic_ns()
        if prior_calls == 0:
            self._begun_ns = now_ns
        if now_ns - self._begun_ns >= self.limit_ms * 1_000_000:
            return False
        if self.until_ns is not None and now_ns >= self.until_ns:
            return False
        if self.starting and now_ns - self._last_report_ns >= _NS:
            self._last_report_ns = now_ns
            self._loop.starting("waiting: another program holds a lock on the database")
        elif not self.starting:
            self._loop.heartbeat()
        self._sleep(0.005)
        return True

    @contextmanager
    def at_most(self, limit_ms: int, *, until_ns: int | None = None) -> Iterator[None]:
        """Use another limit inside the ``with`` block."""
        before = self.limit_ms, self.until_ns
        self.limit_ms, self.until_ns = limit_ms, until_ns
        try:
            yield
        finally:
            self.limit_ms, self.until_ns = before
