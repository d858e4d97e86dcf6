"""Row and job counts for the metrics: the latest that a searcher reported, and their age.

A scrape shows the known counts. If they are old, it starts a query to a searcher, and the next scrape shows the result.
A scrape never waits for a query, and a query runs at most once in ``MIN_AGE_MS``.
"""

from __future__ import annotations

import asyncio
from typing import Final

from signet_actors.errors import SignetError
from signet_actors.protocol.searcher import GetStoreStats, StoreStats
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.bus_client import BusClient

MIN_AGE_MS: Final = 10_000
TIMEOUT_MS: Final = 2_000


class StoreMetrics:
    """``latest`` is None until a searcher has replied once. One event loop only."""

    def __init__(self) -> None:
        self.latest: StoreStats | None = None
        self._updated_ns = 0
        self._requested_ns: int | None = None
        self._asking: asyncio.Task[None] | None = None

    def age_ms(self, clock: Clock) -> int:
        """Return the age of ``latest``."""
        return (clock.monotonic_ns() - self._updated_ns) // 1_000_000

    def refresh(self, bus: BusClient, clock: Clock, trace_id: str) -> None:
        """Start a query to a searcher, unless one was started within ``MIN_AGE_MS``."""
        now = clock.monotonic_ns()
        if self._requested_ns is None or now - self._requested_ns >= MIN_AGE_MS * 1_000_000:
            self._requested_ns = now
            self._asking = asyncio.create_task(self._ask(bus, clock, trace_id))

    async def _ask(self, bus: BusClient, clock: Clock, trace_id: str) -> None:
        try:
            self.latest, _ = await bus.ask_searcher(GetStoreStats(), trace_id=trace_id, timeout_ms=TIMEOUT_MS)
        except SignetError:
            return  # the age shows it
        self._updated_ns = clock.monotonic_ns()
