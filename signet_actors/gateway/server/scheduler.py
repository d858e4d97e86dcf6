"""Limits of work per iteration of the event loop: handlers that start, and deferred connections that are read.

Without them, hundreds of requests that arrive at once would run in a single long iteration. Admitted requests need
several iterations, and a health probe on a new connection two, so each of them would wait for all the others several
times.

Source: docs/reliability.md R13.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Protocol

HANDLERS_PER_ITERATION: Final = 8
"""A handler runs for half a millisecond before it first awaits."""
READS_PER_ITERATION: Final = 64
"""It takes 20 microseconds to shed a request without parsing it, and five times as long to admit one."""


class PendingRead(Protocol):
    """A connection that has received data that was not processed yet."""

    def read_now(self) -> None:
        """Process the data."""


class HandlerScheduler:
    """Start at most ``HANDLERS_PER_ITERATION`` handlers in one iteration of the loop, in order of arrival."""

    def __init__(self) -> None:
        self._available = HANDLERS_PER_ITERATION
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._refill_scheduled = False

    async def wait_to_start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until the caller may start its handler."""
        if not self._refill_scheduled:
            self._refill_scheduled = True
            loop.call_soon(self._refill, loop)
        if self._available and not self._waiting:
            self._available -= 1
            return
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.append(waiter)
        await waiter

    def _refill(self, loop: asyncio.AbstractEventLoop) -> None:
        self._available = HANDLERS_PER_ITERATION
        while self._waiting and self._available:
            waiter = self._waiting.popleft()
            if not waiter.done():  # else its task was cancelled
                waiter.set_result(None)
                self._available -= 1
        self._refill_scheduled = bool(self._waiting)
        if self._refill_scheduled:
            loop.call_soon(self._refill, loop)


class ReadScheduler:
    """Process deferred data in order of arrival.

    One iteration of the loop processes ``READS_PER_ITERATION`` connections, or a quarter of the waiting ones if that is
    more.
    """

    def __init__(self) -> None:
        self.waiting: deque[PendingRead] = deque()

    def enqueue(self, connection: PendingRead, loop: asyncio.AbstractEventLoop) -> None:
        """Schedule the connection's ``read_now``."""
        self.waiting.append(connection)
        if len(self.waiting) == 1:
            loop.call_soon(self._read_batch, loop)

    def _read_batch(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting = len(self.waiting)
        try:
            for _ in range(min(waiting, max(READS_PER_ITERATION, waiting // 4))):
                self.waiting.popleft().read_now()
        finally:  # a failure of one connection must not stop the others
            if self.waiting:
                loop.call_soon(self._read_batch, loop)
