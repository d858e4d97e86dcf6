"""The pipeline's figures for the metrics, which ask nobody, and what its counters say.

As with the row counts (``store_figures.py``): a scrape shows what is known and has the searcher, the extractor and the
decider asked behind its back; the next scrape shows their answers. Who did not answer is not shown: a figure of a model
that nobody can ask is worth nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from signet_actors.errors import SignetError
from signet_actors.protocol.control import UP
from signet_actors.protocol.decider import DeciderStatus, GetDeciderStatus
from signet_actors.protocol.extractor import ExtractorStatus, GetExtractorStatus
from signet_actors.protocol.pipeline_queries import GetPipelineStatus, PipelineStatus
from signet_actors.runtime.clock import iso

if TYPE_CHECKING:
    from signet_actors.runtime.clock import Clock
    from signet_actors.runtime.messaging.bus_client import BusClient

MIN_AGE_MS: Final = 10_000
TIMEOUT_MS: Final = 2_000
T = TypeVar("T")


class JunkCounts(NamedTuple):
    """What never became a proposal, by reason; ``rate`` is over that and the facts that did, None before the first."""

    by_reason: dict[str, int]
    turned_away: int
    facts: int
    rate: float | None


def junk_counts(counters: Mapping[str, int]) -> JunkCounts:
    """The junk_counts that the counters tell."""
    by_reason = with_prefix(counters, "turned_away.")
    turned_away, facts = sum(by_reason.values()), counters.get("facts", 0)
    seen = turned_away + facts
    return JunkCounts(by_reason, turned_away, facts, round(turned_away / seen, 4) if seen else None)


def with_prefix(counters: Mapping[str, int], prefix: str) -> dict[str, int]:
    """The counters under ``prefix``, without it."""
    return {name.removeprefix(prefix): count for name, count in counters.items() if name.startswith(prefix)}


class PipelineMetrics:
    """The newest answers; each None while there is none. One event loop only."""

    def __init__(self) -> None:
        self.store: PipelineStatus | None = None
        self.extractor: ExtractorStatus | None = None
        self.decider: DeciderStatus | None = None
        self._updated_ns = 0
        self._requested_ns: int | None = None
        self._asking: asyncio.Task[None] | None = None

    def age_ms(self, clock: Clock) -> int:
        """How old ``store`` is."""
        return (clock.monotonic_ns() - self._updated_ns) // 1_000_000

    def set_store(self, store: PipelineStatus, clock: Clock) -> None:
        """Keep ``store``, which was counted just now for another purpose."""
        self.store = store
        self._updated_ns = clock.monotonic_ns()

    def refresh(self, bus: BusClient, clock: Clock, trace_id: str) -> None:
        """They are being asked, unless that was done a moment ago."""
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
        if reply is not None:  # else the age tells
            self.set_store(reply[0], clock)


async def _or_none(question: Awaitable[T]) -> T | None:
    try:
        return await question
    except SignetError:
        return None


async def _nothing() -> None:
    return None
