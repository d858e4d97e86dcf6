"""The gateway's client of the bus: requests to the writer, the searchers, retention and the pipeline's actors.

No coroutine receives from a socket, so cancelling a request cannot lose a message: timeouts and cancellations belong to
futures, and a late reply to one of them is counted and dropped.

Source: docs/messaging.md rules 1-12 and 18; docs/performance.md "Recall targets".
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from signet_actors.config.schema import Config
from signet_actors.errors import ErrorCode, OutcomeUnknown, Unavailable
from signet_actors.protocol.control import UP, Idle, TreeChanged
from signet_actors.protocol.decider import DeciderReply
from signet_actors.protocol.extractor import ExtractorReply
from signet_actors.protocol.message import Failure, Message, Request
from signet_actors.protocol.retention import RetentionReply
from signet_actors.protocol.searcher import SearcherReply
from signet_actors.protocol.writer import WriterReply
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.histogram import Histogram
from signet_actors.runtime.messaging.async_client import UNCONNECTED_NS, RequestTracker
from signet_actors.runtime.messaging.envelope import encode_frame, is_tell, result_of
from signet_actors.runtime.messaging.searcher_pool import Query, SearcherPool
from signet_actors.runtime.messaging.sockets import SEARCH_SOCKET
from signet_actors.runtime.processes.async_process import AsyncProcess
from signet_actors.runtime.processes.child_context import ChildContext
from signet_actors.runtime.sync_points import sync_point

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

R = TypeVar("R")

_FAILED_CODES = frozenset({ErrorCode.UNAVAILABLE, ErrorCode.NOT_APPLIED, ErrorCode.OUTCOME_UNKNOWN, ErrorCode.INTERNAL})
_STORAGE_FULL_NS = 2_000_000_000
"""How long a STORAGE_FULL reply counts, until the heartbeat reports it; the writer checks for space every second."""
_REFUSED_NS = 2_000_000_000
"""How long a lasting refusal counts, until the heartbeat reports it."""
_RETENTION_ITEMS = 8
_IN_FLIGHT_PER_SEARCHER = 2
_PIPELINE_ITEMS = 24
"""Eight summaries, eight waits for vectors, and requests of users."""

IN_A_ROW: Final = 3
"""So many failures without a success between them are a problem; a single slow query is not."""
WINDOW_NS: Final = 10_000_000_000
"""Older failures do not count."""


class Outcomes:
    """Counts consecutive failures of one kind of request; one that is refused as invalid says nothing."""

    def __init__(self, clock: Clock, kind: str) -> None:
        self._clock = clock
        self._kind = kind
        self._in_a_row = 0
        self._failed_ns = 0
        self._why = ""

    def succeeded(self) -> None:
        self._in_a_row = 0

    def failed(self, why: str) -> None:
        """Record a request that was not answered, or whose reply was that nothing could be done."""
        self._in_a_row += 1
        self._failed_ns = self._clock.monotonic_ns()
        self._why = why

    def problem(self) -> str | None:
        """Return a description of the recent failures, None if there is no problem."""
        if self._in_a_row < IN_A_ROW or self._clock.monotonic_ns() - self._failed_ns > WINDOW_NS:
            return None
        return f"the last {self._in_a_row} {self._kind} failed ({self._why})"


@dataclass(frozen=True, slots=True)
class BusHealth:
    """Whether requests are answered: why ``writer`` or ``searcher`` answer nothing at all, and other problems."""

    writer: str | None = None
    searcher: str | None = None
    storage_full: bool = False
    notes: tuple[str, ...] = ()


class BusClient(AsyncProcess):
    """The client of the module's description.

    ``latency`` holds the duration of requests by peer, whatever their outcome; requests refused at once are not in it.
    """

    def __init__(self, boot: ChildContext, clock: Clock, log: FilteringBoundLogger, rng: random.Random) -> None:
        super().__init__(boot, clock, log, rng)
        self.latency = {peer: Histogram() for peer in ("writer", "searcher", "retention", "extractor", "decider")}
        self._outcomes = {"writer": Outcomes(clock, "writes"), "searcher": Outcomes(clock, "reads")}
        self._storage_full_ns: int | None = None
        self._refused_ns: int | None = None
        self._refusal = ""
        self._unreached_since_ns: int | None = None
        self._decode_search = msgspec.msgpack.Decoder(SearcherReply | Idle).decode

    def _open_sockets(self) -> None:
        config = self.config
        self._search = self._wrap_socket(self._bind_router(SEARCH_SOCKET), self._from_searcher)
        self._pool = SearcherPool(
            self._loop,
            self.clock,
            self._send_query,
            self.counters,
            queue_limit=config.searcher.queue_limit,
            in_flight=_IN_FLIGHT_PER_SEARCHER,
        )
        self._writer, self._writer_link = self._connect(
            "writer",
            msgspec.msgpack.Decoder(WriterReply).decode,
            max_items=config.writer.queue_limit,
            max_bytes=config.writer.queue_bytes,
            resend=True,
            probe=True,
        )
        self._retention = self._connect_once("retention", RetentionReply, _RETENTION_ITEMS)
        self._extractor = self._connect_once("extractor", ExtractorReply, _PIPELINE_ITEMS)
        self._decider = self._connect_once("decider", DeciderReply, _PIPELINE_ITEMS)

    def _connect_once(self, peer: str, replies: Any, max_items: int) -> RequestTracker:
        """Connect to a peer that gets no request twice."""
        decode, max_bytes = msgspec.msgpack.Decoder(replies).decode, self.config.writer.queue_bytes
        return self._connect(peer, decode, max_items=max_items, max_bytes=max_bytes, resend=False)[0]

    def _fail_pending_requests(self) -> None:
        self._pool.close()

    def _on_tree_change(self, tree: TreeChanged) -> None:
        self._pool.tree_changed(tree)

    def _apply_config(self, config: Config) -> None:
        self._pool.queue_limit = config.searcher.queue_limit
        self._writer.max_items = config.writer.queue_limit
        self._writer.max_bytes = config.writer.queue_bytes

    def _metrics(self) -> dict[str, float]:
        return {
            "searchers_known": self.searchers_known,
            "search_backlog": self.search_backlog,
            "writer_backlog": self.writer_backlog,
        }

    async def ask_writer(
        self, request: Request[R], *, trace_id: str, timeout_ms: int | None = None, frames: Sequence[bytes] = ()
    ) -> R:
        """Return the writer's reply; what it reports is on disk.

        Raises Busy and Unavailable (certainly not applied), OutcomeUnknown (sent, not answered), or a SignetError with
        the writer's own code.
        """
        timeout = self.config.writer.request_timeout_ms if timeout_ms is None else timeout_ms
        asked = self._writer.submit(trace_id, timeout, encode_frame(request), list(frames))
        reply: R | Failure = await self._timed("writer", asked)
        sync_point("gateway.reply_received")
        return result_of(reply)

    async def ask_retention(self, request: Request[R], *, trace_id: str, timeout_ms: int = 60_000) -> R:
        return await self._ask_once(self._retention, request, trace_id, timeout_ms)

    async def ask_extractor(self, request: Request[R], *, trace_id: str, timeout_ms: int) -> R:
        return await self._ask_once(self._extractor, request, trace_id, timeout_ms)

    async def ask_decider(self, request: Request[R], *, trace_id: str, timeout_ms: int) -> R:
        return await self._ask_once(self._decider, request, trace_id, timeout_ms)

    async def _ask_once(self, peer: RequestTracker, request: Request[R], trace_id: str, timeout_ms: int) -> R:
        """Return the peer's reply; raises like ``ask_writer``; never sends a request twice."""
        asked = peer.submit(trace_id, timeout_ms, encode_frame(request), [])
        reply: R | Failure = await self._timed(peer.peer, asked)
        return result_of(reply)

    def tell_writer(self, message: Message, *, trace_id: str) -> bool:
        """Send a message without a reply; return False when it was dropped.

        Best effort: it is dropped and counted when the writer is not connected, or when more than half of the writer's
        credits are in use.
        """
        if 2 * len(self._writer) > self._writer.max_items:
            self.counters["shed"] += 1
            return False
        if self._writer_link.send(self._message_factory.tell(message, trace_id)):
            self.counters["sent"] += 1
            return True
        self.counters["unroutable"] += 1
        return False

    async def ask_searcher(
        self, request: Request[R], *, trace_id: str, timeout_ms: int | None = None, frames: Sequence[bytes] = ()
    ) -> tuple[R, list[bytes]]:
        """Return a searcher's reply and its raw frames; raises Busy, Unavailable, or SignetError with its own code."""
        timeout = self.config.searcher.read_timeout_ms if timeout_ms is None else timeout_ms
        query = Query(
            self._message_factory.next_id(),
            trace_id,
            self.clock.monotonic_ns() + timeout * 1_000_000,
            encode_frame(request),
            list(frames),
            self._loop.create_future(),
        )
        self._pool.submit(query)
        reply, extra = await self._timed("searcher", query.future)
        return result_of(reply), extra

    async def _timed(self, peer: str, asked: asyncio.Future[Any]) -> Any:
        begun = self.clock.monotonic_ns()
        outcomes = self._outcomes.get(peer)
        try:
            reply = await asked
        except (OutcomeUnknown, Unavailable) as error:
            if outcomes is not None:
                outcomes.failed(error.detail)
            raise
        else:
            if outcomes is not None:
                self._record_outcome(outcomes, reply[0] if peer == "searcher" else reply)
            return reply
        finally:
            self.latency[peer].observe(self.clock.monotonic_ns() - begun)

    def _record_outcome(self, outcomes: Outcomes, reply: Any) -> None:
        if type(reply) is Failure and reply.is_lasting:
            self._refused_ns, self._refusal = self.clock.monotonic_ns(), reply.detail
        if type(reply) is not Failure:
            outcomes.succeeded()
            if outcomes is self._outcomes["writer"]:
                self._storage_full_ns = self._refused_ns = None
        elif reply.code is ErrorCode.STORAGE_FULL:
            self._storage_full_ns = self.clock.monotonic_ns()
        elif reply.code in _FAILED_CODES:
            outcomes.failed(reply.detail)

    def health(self) -> BusHealth:
        """Return whether writes and reads are answered, judged by recent requests and, without any, by probes."""
        up = {child.role for child in self.tree.children if child.state == UP}
        writer = self._writer_link.problem() if "writer" in up else None
        reached = self._pool.known > 0 or "searcher" not in up
        now_ns = self.clock.monotonic_ns()
        if reached:
            self._unreached_since_ns = None
        elif self._unreached_since_ns is None:
            self._unreached_since_ns = now_ns
        unreached = self._unreached_since_ns is not None and now_ns - self._unreached_since_ns > UNCONNECTED_NS
        full = self._storage_full_ns is not None and now_ns - self._storage_full_ns < _STORAGE_FULL_NS
        if self._refused_ns is not None and now_ns - self._refused_ns < _REFUSED_NS:
            writer = f"refuses writes: {self._refusal}"
        notes = [found for outcomes in self._outcomes.values() if (found := outcomes.problem()) is not None]
        return BusHealth(
            writer=None if writer is None else f"the writer {writer}",
            searcher="no searcher can be reached: none has registered" if unreached else None,
            storage_full=full,
            notes=tuple(notes),
        )

    @property
    def searchers_known(self) -> int:
        return self._pool.known

    @property
    def writer_backlog(self) -> int:
        return len(self._writer)

    @property
    def search_backlog(self) -> int:
        return self._pool.waiting

    @property
    def unanswered_searches(self) -> int:
        return self._pool.unanswered

    def _send_query(self, identity: bytes, query: Query) -> bool:
        if self._search.send([identity, query.header(self._message_factory), *query.parts]):
            self.counters["sent"] += 1
            return True
        self.counters["unroutable"] += 1
        return False

    def _from_searcher(self, parts: list[bytes]) -> None:
        identity = parts.pop(0)
        opened = self._reader.read(parts, self._decode_search, "searcher", ErrorCode.UNAVAILABLE)
        if opened is None:
            return
        header, body = opened
        if header.sender.encode() != identity:
            self.counters["foreign"] += 1
        elif is_tell(header):
            self._pool.on_idle(identity, header.incarnation)
        else:
            self._pool.on_reply(identity, header.incarnation, header.message_id, (body, parts[2:]))
