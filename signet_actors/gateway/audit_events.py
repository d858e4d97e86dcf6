"""Collect events for the audit log, and have the writer record them.

Equal ones within a minute are two rows at most: one a second after the first, one at the end of the minute with the
number of those that came later. Those of more than ``MOST`` kinds are counted together. So neither the memory of this
process nor the log grows with the number of denied requests. What the writer does not take is kept and sent again.

Source: docs/operations.md "Audit log".
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from signet_actors.domain.timestamps import iso
from signet_actors.errors import SignetError
from signet_actors.features.audit.api import MAX_EVENTS, MORE, AuditEvent, RecordEvents
from signet_actors.protocol.message import Idempotency
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.bus_client import BusClient

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

INTERVAL_S: Final = 1.0
WAIT_S: Final = 2.0
"""The longest that the answer to a change waits for its row, which is recorded later then."""
WINDOW_NS: Final = 60_000_000_000
MOST: Final = 20
"""Different events that are counted at a time."""
MOST_WAITING: Final = 1000
"""Rows that wait for the writer."""


class _Window:
    """Equal events of a minute. ``event`` is the first of those that are in no row yet; ``count`` is their number."""

    def __init__(self, closes_ns: int) -> None:
        self.closes_ns = closes_ns
        self.event: AuditEvent | None = None
        self.count = 0
        self.has_row = False


class AuditEvents:
    """The events of this process that are not recorded yet. One event loop only."""

    def __init__(self, bus: BusClient, clock: Clock, log: FilteringBoundLogger, new_id: Callable[[], str]) -> None:
        self._bus = bus
        self._clock = clock
        self._log = log
        self._new_id = new_id
        self._windows: dict[tuple[Any, ...], _Window] = {}
        self._waiting: list[AuditEvent] = []
        self._batch: RecordEvents | None = None
        self._lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def event(self, kind: str, actor: str, outcome: str, **detail: Any) -> AuditEvent:
        """Return the event of now, without the parts of ``detail`` that are None."""
        known = {name: value for name, value in detail.items() if value is not None}
        now = iso(self._clock.wall_ms())
        return AuditEvent(created_at=now, kind=kind, actor=actor, outcome=outcome, detail=known)

    def add(self, event: AuditEvent) -> None:
        """Count an event, which is recorded within a second. Does not wait."""
        key: tuple[Any, ...] = (event.kind, event.actor, event.outcome, event.detail.get("operation"))
        if key not in self._windows and len(self._windows) >= MOST:
            key = (MORE,)
            event = self.event(MORE, "daemon", event.outcome)
        window = self._windows.setdefault(key, _Window(self._clock.monotonic_ns() + WINDOW_NS))
        window.event = window.event or event
        window.count += 1
        self._set_timer()

    def add_apart(self, event: AuditEvent) -> None:
        """Have the event recorded within a second, as a row of its own unless too many wait. Does not wait."""
        if len(self._waiting) >= MOST_WAITING:
            self.add(event)
        else:
            self._waiting.append(event)
            self._set_timer()

    async def record(self, event: AuditEvent) -> None:
        """Have the event recorded before this returns, or later if the writer cannot now. Raises nothing."""
        self.add_apart(event)
        with contextlib.suppress(SignetError, TimeoutError):
            async with asyncio.timeout(WAIT_S):
                await self._send()

    async def flush(self, *, all_of_them: bool = False) -> None:
        """Send the rows that are due, or ``all_of_them``. Raises SignetError; what was not taken is kept."""
        now_ns = self._clock.monotonic_ns()
        for key, window in list(self._windows.items()):
            is_over = all_of_them or now_ns >= window.closes_ns
            has_room = all_of_them or len(self._waiting) < MOST_WAITING
            if window.event is not None and (is_over or not window.has_row) and has_room:
                self._waiting.append(msgspec.structs.replace(window.event, count=window.count))
                window.event, window.count, window.has_row = None, 0, True
            if is_over and window.event is None:
                del self._windows[key]
        await self._send()

    async def stop(self) -> None:
        """Send everything."""
        if self._timer is not None:
            self._timer.cancel()
        try:
            await self.flush(all_of_them=True)
        except SignetError as error:
            self._log.warning("audit_events_not_recorded", error=error.detail)

    def _set_timer(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._task = asyncio.get_running_loop().create_task(self._flush_and_go_on())

    async def _flush_and_go_on(self) -> None:
        try:
            await self.flush()
        except SignetError as error:
            self._log.debug("audit_events_wait", error=error.detail)
        if self._windows or self._waiting or self._batch is not None:
            self._set_timer()

    async def _send(self) -> None:
        """Send what waits. A batch that was not answered is sent again under its key, and so is recorded once."""
        async with self._lock:
            while self._waiting or self._batch is not None:
                if self._batch is None:
                    key = self._new_id()
                    events = tuple(self._waiting[:MAX_EVENTS])
                    self._batch = RecordEvents(events=events, idempotency=Idempotency(key, body_digest=key))
                    del self._waiting[:MAX_EVENTS]
                await self._bus.ask_writer(self._batch, trace_id="-")
                self._batch = None
