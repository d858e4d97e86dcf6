"""What this and earlier gateways did: requests by endpoint and actor, durations, errors.

Counts of endpoints come from the counts of the metrics. What earlier processes stored is read once and added; until it
is known, nothing is stored, so that no count is lost. Once a minute, if there was a request, the sums are stored. A
crash loses the last minute.

Source: architecture.txt "Analytics"; docs/compatibility.md "Analytics and telemetry".
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET

from signet_actors.domain.timestamps import iso
from signet_actors.errors import SignetError
from signet_actors.features.analytics import api
from signet_actors.features.analytics.rules import (
    CLASS_OF,
    CLASSES,
    MAX_ERRORS,
    MAX_SAMPLES,
    MESSAGES,
    OTHER,
    latency_of,
    refused_change,
)
from signet_actors.features.audit.api import UNKNOWN
from signet_actors.gateway.status.request_metrics import RequestMetrics
from signet_actors.gateway.telemetry import Telemetry
from signet_actors.operations.operation import Operation
from signet_actors.protocol.message import Idempotency
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.bus_client import BusClient

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

INTERVAL_S: Final = 60.0
MAX_ACTORS: Final = 64
"""Names of actors; what further ones do counts as ``OTHER_ACTOR``."""
OTHER_ACTOR: Final = "other"
_TIMED: Final = CLASSES[:-1]


class Usage:
    """The figures. One event loop only. ``clean`` returns a name as it may be stored."""

    def __init__(
        self,
        bus: BusClient,
        clock: Clock,
        log: FilteringBoundLogger,
        new_id: Callable[[], str],
        requests: RequestMetrics,
        clean: Callable[[str], str],
        telemetry: Telemetry,
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._log = log
        self._new_id = new_id
        self._requests = requests
        self._clean = clean
        self._telemetry = telemetry
        self._earlier: api.Totals | None = None
        self._actors: dict[str, api.ActorUsage] = {}
        self._names: dict[bytes | str, api.ActorUsage] = {}
        """The counts by the name as it is sent."""
        self._samples: dict[str, deque[int]] = {name: deque(maxlen=MAX_SAMPLES) for name in _TIMED}
        self._of_minute: dict[str, list[int]] = {name: [] for name in _TIMED}
        self._counted = self._failed = 0
        self._errors: deque[api.ErrorEvent] = deque(maxlen=MAX_ERRORS)
        self._batch: api.StoreFigures | None = None
        self._since = iso(clock.wall_ms())
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    def observe(self, operation: Operation[Any] | None, actor: bytes | str, status: int, took_ns: int) -> None:
        """Count a response to the actor (empty if it is not known). Takes about a microsecond."""
        name = OTHER if operation is None else CLASS_OF.get(operation.name, OTHER)
        counts = self._names.get(actor) or self._counts_of(actor)
        setattr(counts, name, getattr(counts, name) + 1)
        self._counted += 1
        if operation is not None and (name is not OTHER or operation.lenient) and self._telemetry.enabled:
            self._telemetry.add(operation.name, status=status, ms=round(took_ns / 1e6, 2))
        if name is not OTHER:
            took_us = took_ns // 1000
            self._samples[name].append(took_us)
            of_minute = self._of_minute[name]
            if len(of_minute) < MAX_SAMPLES:
                of_minute.append(took_us)
        if status >= 400:
            self._failed += 1
            code = refused_change(name, status)
            if code is not None:
                self.note_error(code, actor=actor)
        if self._timer is None:
            self._set_timer()

    def note_error(self, code: str, *, actor: bytes | str = "") -> None:
        """Record an error of a documented code."""
        stage, message = MESSAGES[code]
        known = self._shown(actor)
        error = api.ErrorEvent(
            timestamp=iso(self._clock.wall_ms()), stage=stage, code=code, message=message, actor=known or UNSET
        )
        self._errors.append(error)
        self._telemetry.add("error", stage=stage, code=code)

    async def usage(self, stored: api.StoredFigures) -> api.UsageReply:
        """Return the counts, with those of models that are ``stored``. Raises SignetError if others cannot be read."""
        totals = self._totals(await self._stored())
        return api.UsageReply(totals.endpoints, totals.actors, stored.providers, {}, stored.days, totals.since)

    async def latencies(self) -> dict[str, Any]:
        """Return the latencies by class of operation. Raises SignetError."""
        totals = self._totals(await self._stored())
        return {name: latency_of([us / 1000 for us in totals.samples.get(name, ())]) for name in _TIMED}

    def minute(self) -> api.MinuteFigures:
        """Return the figures of the minute that runs."""
        latencies = {name: latency_of([us / 1000 for us in took]) for name, took in self._of_minute.items()}
        now = iso(self._clock.wall_ms())
        return api.MinuteFigures(minute=now, requests=self._counted, errors=self._failed, **latencies)

    def errors(self, stored: list[api.ErrorEvent]) -> list[api.ErrorEvent]:
        """Return those of this process that are not stored yet and the ``stored`` ones, the newest first."""
        waiting = [*(self._batch.errors if self._batch is not None else ()), *self._errors]
        return sorted([*reversed(waiting), *stored], key=lambda error: error.timestamp, reverse=True)[:MAX_ERRORS]

    async def flush(self) -> None:
        """Store the figures. Raises SignetError; nothing is lost then."""
        earlier = await self._stored()
        if self._batch is None:
            key = self._new_id()
            errors, self._errors = tuple(self._errors), deque(maxlen=MAX_ERRORS)
            self._batch = api.StoreFigures(
                totals=self._totals(earlier),
                minute=self._minute(),
                errors=errors,
                idempotency=Idempotency(key, body_digest=key),
            )
        await self._bus.ask_writer(self._batch, trace_id="-")
        self._batch = None

    async def stop(self) -> None:
        """Store what is not stored yet."""
        if self._timer is None:
            return
        self._timer.cancel()
        with contextlib.suppress(SignetError):
            await self.flush()

    def _set_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(INTERVAL_S, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._task = asyncio.get_running_loop().create_task(self._flush_and_go_on())

    async def _flush_and_go_on(self) -> None:
        try:
            await self.flush()
        except SignetError as error:
            self._log.debug("figures_wait", error=error.detail)
            if self._timer is None:
                self._set_timer()

    async def _stored(self) -> api.Totals:
        """Return what earlier processes stored."""
        if self._earlier is None:
            found, _ = await self._bus.ask_searcher(api.FindFigures(("totals",)), trace_id="-")
            self._earlier = found.read(api.StoredFigures).totals or api.Totals(since=self._since)
        return self._earlier

    def _totals(self, earlier: api.Totals) -> api.Totals:
        """Return the sums of ``earlier`` and of this process."""
        endpoints = {name: msgspec.structs.replace(usage) for name, usage in earlier.endpoints.items()}
        for (route, method, hundreds), (count, took_ns) in self._requests.responses.items():
            usage = endpoints.setdefault(f"{method} {route}", api.EndpointUsage())
            usage.count += count
            usage.errors += count if hundreds >= 4 else 0
            usage.total_latency_ms = round(usage.total_latency_ms + took_ns / 1e6, 2)
        actors = {name: msgspec.structs.replace(usage) for name, usage in earlier.actors.items()}
        for name, counts in self._actors.items():
            known = actors.setdefault(
                name if name in actors or len(actors) < MAX_ACTORS else OTHER_ACTOR, api.ActorUsage()
            )
            for each in CLASSES:
                setattr(known, each, getattr(known, each) + getattr(counts, each))
        samples = {name: [*earlier.samples.get(name, ()), *self._samples[name]][-MAX_SAMPLES:] for name in _TIMED}
        return api.Totals(since=earlier.since, endpoints=endpoints, actors=actors, samples=samples)

    def _minute(self) -> api.MinuteFigures:
        """Return what was counted since the last call, as the figures of a minute that ends now."""
        minute, self._of_minute = self.minute(), {name: [] for name in _TIMED}
        self._counted = self._failed = 0
        return minute

    def _counts_of(self, actor: bytes | str) -> api.ActorUsage:
        """Return the counts of an actor that is not known by this name; of most names only the first is looked at."""
        if len(self._names) >= MAX_ACTORS:
            return self._actors.setdefault(OTHER_ACTOR, api.ActorUsage())
        counts = self._actors.setdefault(self._shown(actor) or UNKNOWN, api.ActorUsage())
        self._names[actor] = counts
        return counts

    def _shown(self, actor: bytes | str) -> str:
        """Return the name as it may be stored: a short line without secrets."""
        text = actor.decode("utf-8", "replace") if isinstance(actor, bytes) else actor
        return self._clean("".join(filter(str.isprintable, text[:100])).strip())
