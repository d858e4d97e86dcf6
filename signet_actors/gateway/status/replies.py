"""What the other processes reply about themselves. Each reply arrives in time, or is None and a note gives the reason.

The latest replies are kept, no matter for which page they were requested. A scrape of the metrics shows those and
waits for no process: it starts new requests, at most once in ``MIN_AGE_MS``, and the next scrape shows their replies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Final, Literal, TypeVar

import msgspec

from signet_actors.domain.timestamps import iso
from signet_actors.errors import OutcomeUnknown, SignetError, Unavailable
from signet_actors.features.analytics.api import FindFigures, StoredFigures
from signet_actors.features.diagnostics.api import ChangeFigures, CountChanges, HealthFigures, MeasureHealth
from signet_actors.protocol.control import UP
from signet_actors.protocol.decider import DeciderStatus, GetDeciderStatus
from signet_actors.protocol.embeddings import EmbeddingHealth, GetEmbeddingHealth
from signet_actors.protocol.extractor import ExtractorStatus, GetExtractorStatus
from signet_actors.protocol.message import Answered, Request
from signet_actors.protocol.pipeline_queries import GetPipelineStatus, PipelineStatus
from signet_actors.protocol.retention import GetRetentionStatus, RetentionStatus
from signet_actors.protocol.searcher import GetStoreStats, StoreStats
from signet_actors.protocol.writer import GetWriterStatus, WriterStatus
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.bus_client import BusClient

TIMEOUT_MS: Final = 1_000
MIN_AGE_MS: Final = 10_000
EMBEDDINGS_TIMEOUT_MS: Final = 8_000
"""Below ``gateway.requestTimeoutMs``, by default."""
_SCRAPE_TIMEOUT_MS: Final = 2_000

R = TypeVar("R")
StructT = TypeVar("StructT", bound=msgspec.Struct)
Part = Literal["store", "queues", "health", "changes", "jobs", "writer", "retention", "extractor", "decider"]

_SCRAPED: Final[tuple[Part, ...]] = ("store", "queues", "extractor", "decider")
_OF_SEARCHER: Final = ("store", "queues", "health", "changes", "jobs")
_OPTIONAL: Final = ("extractor", "decider")
"""Processes that a daemon may run without: one that is not up is not asked."""


class Replies(msgspec.Struct):
    """The replies: the first five are of a searcher, the others are by the process that replied."""

    store: StoreStats | None = None
    queues: PipelineStatus | None = None
    health: HealthFigures | None = None
    changes: ChangeFigures | None = None
    jobs: StoredFigures | None = None
    writer: WriterStatus | None = None
    retention: RetentionStatus | None = None
    extractor: ExtractorStatus | None = None
    decider: DeciderStatus | None = None


class _EmbeddingCounts(msgspec.Struct):
    query: GetEmbeddingHealth
    asked_ms: int
    reply: asyncio.Task[EmbeddingHealth]

    def is_recent(self, now_ms: int) -> bool:
        """Return whether the reply is waited for, or came and is not old."""
        if not self.reply.done():
            return True
        failed = self.reply.cancelled() or self.reply.exception() is not None
        return not failed and 0 <= now_ms - self.asked_ms < MIN_AGE_MS


class StatusRequests:
    """Requests the replies and keeps the latest. One event loop only.

    A count that could not be renewed is kept, with its age. A process that did not reply is not shown, since old values
    of a model that cannot be reached would mislead.
    """

    def __init__(self, bus: BusClient, clock: Clock) -> None:
        self.latest = Replies()
        self._bus = bus
        self._clock = clock
        self._received_ns: dict[Part, int] = {}
        self._scraped_ns: int | None = None
        self._asking: asyncio.Task[Replies] | None = None
        self._embedding_counts: _EmbeddingCounts | None = None
        self._counted: tuple[GetEmbeddingHealth, EmbeddingHealth, int] | None = None

    def age_ms(self, part: Part) -> int:
        """Return the age of the latest reply, which was received."""
        return (self._clock.monotonic_ns() - self._received_ns.get(part, 0)) // 1_000_000

    def refresh(self, trace_id: str) -> None:
        """Start requests for what a scrape shows, unless that was done within ``MIN_AGE_MS``."""
        now = self._clock.monotonic_ns()
        if self._scraped_ns is None or now - self._scraped_ns >= MIN_AGE_MS * 1_000_000:
            self._scraped_ns = now
            self._asking = asyncio.create_task(self.ask(_SCRAPED, trace_id, [], timeout_ms=_SCRAPE_TIMEOUT_MS))

    async def ask(
        self, parts: tuple[Part, ...], trace_id: str, notes: list[str], *, timeout_ms: int = TIMEOUT_MS
    ) -> Replies:
        """Request these parts at the same time; a part without a reply is None, and ``notes`` gets the reason.

        ``changes`` may be ``MIN_AGE_MS`` old, because they take long to count.
        """
        received = await asyncio.gather(*(self._ask(part, trace_id, notes, timeout_ms) for part in parts))
        replies = Replies()
        for part, reply in zip(parts, received, strict=True):
            setattr(replies, part, reply)
            if (reply is not None or part in _OPTIONAL) and reply is not getattr(self.latest, part):
                setattr(self.latest, part, reply)
                self._received_ns[part] = self._clock.monotonic_ns()
        return replies

    async def embedding_health(self, query: GetEmbeddingHealth, trace_id: str) -> tuple[EmbeddingHealth, int]:
        """Return the counts, at most ``MIN_AGE_MS`` old, and when they were requested. Raises SignetError.

        They read every stored embedding, so that requests at the same time share one reply, and a large store that is
        not in memory yet takes longer than other queries may. Counts that cannot be renewed are returned as they were.
        """
        now_ms, last = self._clock.wall_ms(), self._embedding_counts
        if last is None or last.query != query or not last.is_recent(now_ms):
            asked = _body(self._bus.ask_searcher(query, trace_id=trace_id, timeout_ms=EMBEDDINGS_TIMEOUT_MS))
            last = self._embedding_counts = _EmbeddingCounts(query, now_ms, asyncio.create_task(asked))
        try:
            self._counted = query, await asyncio.shield(last.reply), last.asked_ms
        except Unavailable:
            if self._counted is None or self._counted[0] != query:
                raise
        return self._counted[1:]

    async def _ask(self, part: Part, trace_id: str, notes: list[str], timeout_ms: int) -> object:
        if part == "changes" and self.latest.changes is not None and self.age_ms(part) < MIN_AGE_MS:
            return self.latest.changes
        actor = "searcher" if part in _OF_SEARCHER else part
        if part in _OPTIONAL:
            child = next((child for child in self._bus.tree.children if child.role == part), None)
            if child is None or child.state != UP:
                notes += [] if child is None else [f"{part}: {child.state}"]
                return None
        try:
            async with asyncio.timeout(timeout_ms * 1.5 / 1000):
                return await self._request(part, trace_id, timeout_ms)
        except (OutcomeUnknown, TimeoutError):
            notes.append(f"{actor}: no answer within {timeout_ms} ms")
        except SignetError as error:
            notes.append(f"{actor}: {error.detail}")
        return None

    def _request(self, part: Part, trace_id: str, timeout_ms: int) -> Awaitable[object]:
        bus = self._bus
        match part:
            case "store":
                return _body(bus.ask_searcher(GetStoreStats(), trace_id=trace_id, timeout_ms=timeout_ms))
            case "queues":
                question = GetPipelineStatus(now=iso(self._clock.wall_ms()))
                return _body(bus.ask_searcher(question, trace_id=trace_id, timeout_ms=timeout_ms))
            case "health":
                return self._figures(MeasureHealth(iso(self._clock.wall_ms())), HealthFigures, trace_id, timeout_ms)
            case "changes":
                return self._figures(CountChanges(iso(self._clock.wall_ms())), ChangeFigures, trace_id, timeout_ms)
            case "jobs":
                return self._figures(FindFigures(("jobs",)), StoredFigures, trace_id, timeout_ms)
            case "writer":
                return bus.ask_writer(GetWriterStatus(), trace_id=trace_id, timeout_ms=timeout_ms)
            case "retention":
                return bus.ask_retention(GetRetentionStatus(), trace_id=trace_id, timeout_ms=timeout_ms)
            case "extractor":
                return bus.ask_extractor(GetExtractorStatus(), trace_id=trace_id, timeout_ms=timeout_ms)
            case "decider":
                return bus.ask_decider(GetDeciderStatus(), trace_id=trace_id, timeout_ms=timeout_ms)

    async def _figures(
        self, question: Request[Answered], figures: type[StructT], trace_id: str, timeout_ms: int
    ) -> StructT:
        return (await _body(self._bus.ask_searcher(question, trace_id=trace_id, timeout_ms=timeout_ms))).read(figures)


async def _body(reply: Awaitable[tuple[R, object]]) -> R:
    return (await reply)[0]
