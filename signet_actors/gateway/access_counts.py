"""Tell the writer which memories were returned or injected: at once, or under load together a few times a second.

A message for each recall would wake the writer each time, which costs a tenth of the CPU time of a recall.

Source: docs/performance.md "Recall targets".
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from signet_actors.protocol.writer import TouchMemories
from signet_actors.runtime.messaging.bus_client import BusClient

INTERVAL_S: Final = 0.1
MAX_WAITING: Final = 1_000
"""When more ids wait, they are sent at once."""


class AccessCounts:
    """Sends ids to the writer, at most every ``INTERVAL_S``. Best effort: no reply promises a count."""

    def __init__(self, bus: BusClient) -> None:
        self._bus = bus
        self._waiting: dict[str, list[str]] = {}
        self._pause: asyncio.TimerHandle | None = None

    def add(self, ids: Sequence[str], kind: str = "recalled", *, trace_id: str) -> None:
        """Count one access to each of ``ids``."""
        waiting = self._waiting.setdefault(kind, [])
        waiting += ids
        if self._pause is None or len(waiting) > MAX_WAITING:
            self._send(trace_id)

    def stop(self) -> None:
        """Send what waits, and nothing after a pause any more."""
        if self._pause is not None:
            self._pause_ended("-")
        if self._pause is not None:
            self._pause.cancel()

    def _send(self, trace_id: str) -> None:
        if self._pause is not None:
            self._pause.cancel()
        self._pause = asyncio.get_running_loop().call_later(INTERVAL_S, self._pause_ended, trace_id)
        waiting, self._waiting = self._waiting, {}
        for kind, ids in waiting.items():
            self._bus.tell_writer(TouchMemories(ids=tuple(ids), kind=kind), trace_id=trace_id)

    def _pause_ended(self, trace_id: str) -> None:
        self._pause = None
        if self._waiting:
            self._send(trace_id)
