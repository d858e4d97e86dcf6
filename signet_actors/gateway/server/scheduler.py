"""Turns of the event loop: how many handlers begin in one, and how many connections of a crowd are read in one.

Hundreds of requests that arrive at once would otherwise be worked off in one long turn, and whoever was let in, and
needs several turns to be answered, and whoever asks for the health, would wait for all of them each time.

Source: docs/reliability.md R13.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Protocol

HANDLERS_PER_ITERATION: Final = 8
"""A handler's first stretch takes half a millisecond."""
READS_PER_ITERATION: Final = 64
"""A request that is refused unread takes 20 microseconds, one that is let in five times as many."""


class PendingRead(Protocol):
    """A connection on which something has arrived that nobody has looked at."""

    def read_now(self) -> None:
        """It has been looked at."""


class HandlerScheduler:
    """Lets ``HANDLERS_PER_ITERATION`` handlers begin in one turn of the loop, in the order in which they came."""

    def __init__(self) -> None:
        self._available = HANDLERS_PER_ITERATION
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._refill_scheduled = False

    async def wait_to_start(self, loop: asyncio.AbstractEventLoop) -> None:
        """It is the caller's turn to begin."""
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
            if not waiter.done():  # else its client, or its server, has gone
                waiter.set_result(None)
                self._available -= 1
        self._refill_scheduled = bool(self._waiting)
        if self._refill_scheduled:
            loop.call_soon(self._refill, loop)


class ReadScheduler:
    """Reads connections of a standing crowd as they came, ``READS_PER_ITERATION`` in one turn of the loop, or a
    quarter of them where that is more."""

    def __init__(self) -> None:
        self.waiting: deque[PendingRead] = deque()

    def enqueue(self, connection: PendingRead, loop: asyncio.AbstractEventLoop) -> None:
        """The connection is read when it is its waiter."""
        self.waiting.append(connection)
        if len(self.waiting) == 1:
            loop.call_soon(self._read_batch, loop)

    def _read_batch(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting = len(self.waiting)
        try:
            for _ in range(min(waiting, max(READS_PER_ITERATION, waiting // 4))):
                self.waiting.popleft().read_now()
        finally:  # whatever is wrong with one of them is not the others' fault
            if self.waiting:
                loop.call_soon(self._read_batch, loop)
