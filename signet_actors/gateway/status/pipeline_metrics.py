"""Counts of the pipeline for the metrics: the latest reports of a searcher, the extractor and the decider.

As in ``store_metrics.py``, a scrape shows the known reports and starts new queries; the next scrape shows the replies.
A process that did not reply is not shown, since old values of a model that cannot be reached would mislead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import Final, NamedTuple, TypeVar

from signet_actors.domain.timestamps import iso
from signet_actors.errors import SignetError
from signet_actors.protocol.control import UP
from signet_actors.protocol.decider import DeciderStatus, GetDeciderStatus
from signet_actors.protocol.extractor import ExtractorStatus, GetExtractorStatus
from signet_actors.protocol.pipeline_queries import GetPipelineStatus, PipelineStatus
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.bus_client import BusClient

MIN_AGE_MS: Final = 10_000
TIMEOUT_MS: Final = 2_000
T = TypeVar("T")


class JunkCounts(NamedTuple):
    """Texts that never became a proposal, by reason. ``rate`` is their share of all texts, None before the first."""

    by_reason: dict[str, int]
    turned_away: int
    facts: int
    rate: float | None


def junk_counts(counters: Mapping[str, int]) -> JunkCounts:
    """Return the junk counts that ``counters`` contain."""
    by_reason = with_prefix(counters, "turned_away.")
    turned_away, facts = sum(by_reason.values()), counters.get("facts", 0)
    seen = turned_away + facts
    return JunkCounts(by_reason, turned_away, facts, round(turned_away / seen, 4) if seen else None)


def with_prefix(counters: Mapping[str, int], prefix: str) -> dict[str, int]:
    """Return the counters whose name begins with ``prefix``, without it."""
    return {name.removeprefix(prefix): count for name, count in counters.items() if name.startswith(prefix)}


class PipelineMetrics:
    """The latest reports; each is None until there is one. One event loop only."""

    def __init__(self) -> None:
        self.store: PipelineStatus | None = None
        self.extractor: ExtractorStatus | None = None
        self.decider: DeciderStatus | None = None
        self._updated_ns = 0
        self._requested_ns: int | None = None
        self._asking: asyncio.Task[None] | None = None

    def age_ms(self, clock: Clock) -> int:
        """Return the age of ``store``."""
        return (clock.monotonic_ns() - self._updated_ns) // 1_000_000

    def set_store(self, store: PipelineStatus, clock: Clock) -> None:
        """Keep ``store``, which was just counted for another purpose."""
        self.store = store
        self._updated_ns = clock.monotonic_ns()

    def refresh(self, bus: BusClient, clock: Clock, trace_id: str) -> None:
        """Start queries for all reports, unless that was done within ``MIN_AGE_MS``."""
        now = clock.monotonic_ns()
        if self._requested_ns is None or now - self._requested_ns >= MIN_AGE_MS * 1_000_000:
            self._requested_ns = now
            self._asking = asyncio.create_task(self._ask(bus, clock, trace_id))

    async def _ask(self, bus: BusClient, clock: Clock, trace_id: str) -> None:
        up = {child.role for child in bus.tree.children if child.state == UP}
        question = GetPipelineStatus(now=iso(clock.wall_ms()))
        reply, self.extractor, self.decider = await asyncio.gather(
            _or_none(bus.ask_searcher(question, trace_id=trace_id, timeout_ms=TIMEOUT_MS)),
            _or_none(bus.ask_extractor(GetExtractorStatus(), trace_id=trace_id, timeout_ms=TIMEOUT_MS))
            if "extractor" in up
            else _nothing(),
            _or_none(bus.ask_decider(GetDeciderStatus(), trace_id=trace_id, timeout_ms=TIMEOUT_MS))
            if "decider" in up
            else _nothing(),
        )
        if reply is not None:  # else the age shows it
            self.set_store(reply[0], clock)


async def _or_none(question: Awaitable[T]) -> T | None:
    try:
        return await question
    except SignetError:
        return None


async def _nothing() -> None:
    return None
