"""Who waits for the vectors of memories, and is told when they are stored, or will not be for a while.

A vector counts as stored when the writer has said so, in answer to the report of an ``embed`` job that read the memory
at the awaited version or a later one: what was stored before a change says nothing about it. The end of a job that
nobody waits for yet is kept for a moment, because an embedding can be faster than the question about it.

Source: docs/decisions.md 23.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from signet_actors.protocol.extractor import VectorsAwaited

MAX_ENDS: Final = 1024
"""Some seconds of the fastest server's work; whoever asks about a job asks some milliseconds after it was enqueued."""


class _End(NamedTuple):
    version: int
    stored: bool


class _Waiter(NamedTuple):
    version: int
    stored: asyncio.Future[bool]


class VectorWaiters:
    """See the module."""

    def __init__(self) -> None:
        self._waiting: defaultdict[str, list[_Waiter]] = defaultdict(list)
        self._ends: dict[str, _End] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    async def stored(self, versions: Mapping[str, int], within_s: float) -> VectorsAwaited:
        """Which of the memories have the vector of that version, as soon as the attempts at all of them have ended."""
        waiters = {memory_id: self._waiter(memory_id, version) for memory_id, version in versions.items()}
        try:
            _, late = await asyncio.wait([waiter.stored for waiter in waiters.values()], timeout=within_s)
        finally:
            for memory_id, waiter in waiters.items():
                self._leave(memory_id, waiter)
        stored = [memory_id for memory_id, (_, told) in waiters.items() if told.done() and told.result()]
        return VectorsAwaited(stored, late=bool(late))

    def ended(self, memory_id: str, version: int, *, stored: bool) -> None:
        """An attempt at the memory's vector, read at ``version``, has ended; who waits for it has been told."""
        self._ends.pop(memory_id, None)
        self._ends[memory_id] = _End(version, stored)
        while len(self._ends) > MAX_ENDS:
            del self._ends[next(iter(self._ends))]
        for waiter in self._waiting.get(memory_id, ()):
            if version >= waiter.version:
                _report_end(waiter, stored=stored)

    def cancel_all(self) -> None:
        """Nobody waits any more: there will be no vector for a while."""
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
