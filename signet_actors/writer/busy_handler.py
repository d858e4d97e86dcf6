"""The wait for a lock of another program. Source: docs/reliability.md R5, "The writer's loop"."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from signet_actors.runtime.clock import Clock
from signet_actors.runtime.processes.actor_loop import ActorLoop

_NS = 1_000_000_000


class BusyHandler:
    """SQLite's busy handler: wait for a foreign lock up to a limit, and send heartbeats meanwhile.

    It gives up at ``until_ns`` at the latest, where that is set, so that a refusal reaches the caller before its
    deadline.
    """

    def __init__(self, clock: Clock, loop: ActorLoop, limit_ms: int) -> None:
        self._clock = clock
        self._loop = loop
        self._sleep = time.sleep
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
    def at_most(self, limit_ms: int) -> Iterator[None]:
        """Use only this limit inside the ``with`` block."""
        before = self.limit_ms, self.until_ns
        self.limit_ms, self.until_ns = limit_ms, None
        try:
            yield
        finally:
            self.limit_ms, self.until_ns = before
