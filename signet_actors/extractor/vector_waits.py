"""Requests that wait until the vectors of memories are stored, or until they cannot be for a while.

A vector counts as stored when the writer has confirmed it to an ``embed`` job that read the memory at the awaited
version or a later one; a vector of an earlier version does not count. Recent ends of jobs are kept, because a job can
finish before the request that waits for it arrives.

Source: docs/decisions.md 23.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from signet_actors.protocol.extractor import VectorsAwaited

MAX_ENDS: Final = 1024
"""Ends of jobs that are kept: some seconds of the fastest server's work. Requests arrive within milliseconds."""


class _End(NamedTuple):
    version: int
    stored: bool


class _Waiter(NamedTuple):
    version: int
    stored: asyncio.Future[bool]


class VectorWaiters:
    """The waiting requests by memory, and a bounded cache of recent ends of jobs."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, list[_Waiter]] = defaultdict(list)
        self._ends: dict[str, _End] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def stored(self, versions: Mapping[str, int], within_s: float) -> VectorsAwaited:
        """Wait until the attempts at all the memories have ended; return which have a vector of that version."""
        waiters = {memory_id: self._waiter(memory_id, version) for memory_id, version in versions.items()}
        try:
            _, late = await asyncio.wait([waiter.stored for waiter in waiters.values()], timeout=within_s)
        finally:
            for memory_id, waiter in waiters.items():
                self._leave(memory_id, waiter)
        stored = [memory_id for memory_id, (_, told) in waiters.items() if told.done() and told.result()]
        return VectorsAwaited(stored, late=bool(late))

    def ended(self, memory_id: str, version: int, *, stored: bool) -> None:
        """Record the end of an attempt that read the memory at ``version``; resolve the requests that wait for it."""
        self._ends.pop(memory_id, None)
        self._ends[memory_id] = _End(version, stored)
        while len(self._ends) > MAX_ENDS:
            del self._ends[next(iter(self._ends))]
        for waiter in self._waiting.get(memory_id, ()):
            if version >= waiter.version:
                _report_end(waiter, stored=stored)

    def cancel_all(self) -> None:
        """Resolve all waiting requests as not stored, because there will be no vectors for a while."""
        for waiters in self._waiting.values():
            for waiter in waiters:
                _report_end(waiter, stored=False)

    def _waiter(self, memory_id: str, version: int) -> _Waiter:
        waiter = _Waiter(version, asyncio.get_running_loop().create_future())
        self._waiting[memory_id].append(waiter)
        end = self._ends.get(memory_id)
        if end is not None and end.version >= version:
            _report_end(waiter, stored=end.stored)
        return waiter

    def _leave(self, memory_id: str, waiter: _Waiter) -> None:
        waiters = self._waiting[memory_id]
        waiters[:] = [other for other in waiters if other.stored is not waiter.stored]
        if not waiters:
            del self._waiting[memory_id]


def _report_end(waiter: _Waiter, *, stored: bool) -> None:
    if not waiter.stored.done():
        waiter.stored.set_result(stored)
