"""The local telemetry of this process: events wait here until they are written. Nothing is ever sent anywhere.

Source: memory-pipeline.txt "Configuration Reference"; docs/compatibility.md "Analytics and telemetry".
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from signet_actors.config.pipeline_schema import PipelineV2Config
from signet_actors.domain.timestamps import iso
from signet_actors.errors import SignetError
from signet_actors.features.telemetry.api import StoreEvents, TelemetryEvent
from signet_actors.protocol.message import Idempotency
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.bus_client import BusClient

MAX_WAITING: Final = 2_000
"""Events that wait for the writer; further ones are counted in the next event that is kept (``dropped``)."""
LEAST_GAP_S: Final = 1.0


class Telemetry:
    """Events are written ``flushIntervalMs`` after the first one, or when ``flushBatchSize`` of them wait."""

    def __init__(
        self, bus: BusClient, clock: Clock, new_id: Callable[[], str], pipeline: Callable[[], PipelineV2Config]
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._new_id = new_id
        self._pipeline = pipeline
        self._waiting: list[TelemetryEvent] = []
        self._dropped = 0
        self._batch: StoreEvents | None = None
        self._lock = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def enabled(self) -> bool:
        """Whether the configuration asks for telemetry."""
        return self._pipeline().telemetry_enabled

    def add(self, event: str, **properties: str | float) -> None:
        """Keep an event, if telemetry is on. The properties have no text of a caller."""
        if not self.enabled:
            return
        if len(self._waiting) >= MAX_WAITING:
            self._dropped += 1
            return
        if self._dropped:
            properties["dropped"], self._dropped = self._dropped, 0
        self._waiting.append(TelemetryEvent(iso(self._clock.wall_ms()), event, properties))
        limits = self._pipeline().telemetry
        if len(self._waiting) == limits.flush_batch_size and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._timer is None and (self._task is None or self._task.done()):
            is_full = len(self._waiting) >= limits.flush_batch_size
            self._set_timer(LEAST_GAP_S if is_full else limits.flush_interval_ms / 1000)

    async def flush(self) -> None:
        """Write what waits. Raises SignetError; nothing is lost then."""
        size = self._pipeline().telemetry.flush_batch_size
        async with self._lock:
            while self._waiting or self._batch is not None:
                if self._batch is None:
                    key = self._new_id()
                    events, self._waiting = tuple(self._waiting[:size]), self._waiting[size:]
                    self._batch = StoreEvents(events=events, idempotency=Idempotency(key, body_digest=key))
                await self._bus.ask_writer(self._batch, trace_id="-")
                self._batch = None

    async def stop(self) -> None:
        """Write what waits."""
        if self._timer is not None:
            self._timer.cancel()
        with contextlib.suppress(SignetError):
            await self.flush()

    def _set_timer(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._task = asyncio.get_running_loop().create_task(self._flush_and_go_on())

    async def _flush_and_go_on(self) -> None:
        with contextlib.suppress(SignetError):
            await self.flush()
        if self._waiting or self._batch is not None:
            self._set_timer(self._pipeline().telemetry.flush_interval_ms / 1000)
