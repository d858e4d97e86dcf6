"""Which connections are served, and which of their requests start: a fixed bound for each class of work.

Beyond the limit of connections, the one that has been idle longest is closed. Writes wait for the writer and reads
mostly for searchers, so each class has its own bound. Large bodies hold the interpreter, so few are worked on at once.
Beyond a bound the answer is 503; a short request is not even parsed for that. Health probes are always admitted.

Source: docs/reliability.md R13; docs/security.md A12 and A18; the bulkhead pattern.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

from signet_actors.gateway.server import framing as wire
from signet_actors.gateway.server.connection_limits import ConnectionLimits

MAX_EVICTION_CHECKS: Final = 32
"""Idle connections that are checked for unread data before eviction gives up."""
OVERLOAD_RESET_S: Final = 0.5
MAX_STATUS_PROBES: Final = 2
LARGE_BODY_BYTES: Final = 128 * 1024
"""It takes a tenth of a second or more to split and embed a longer text."""
HANDLERS_PER_ITERATION: Final = 4
"""A handler runs for half a millisecond before it first awaits."""
READS_PER_ITERATION: Final = 16
"""It takes 20 microseconds to shed a request without parsing it, and five times as long to admit one."""
STATUS_PATHS: Final = frozenset({b"/metrics", b"/api/status"})
"""Paths that an operator requests to diagnose a problem such as an overload."""
_HEALTH: Final = b"/health"
_READ_IMMEDIATELY: Final = tuple(b"GET " + path for path in (_HEALTH, *sorted(STATUS_PATHS)))


class Deadline:
    """Call a function when a time has passed, unless disarmed or armed anew before."""

    __slots__ = ("_loop", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_armed(self) -> bool:
        return self._timer is not None

    def arm(self, after_ms: float, callback: Callable[[], None]) -> None:
        """Call ``callback`` after ``after_ms``; cancel any callback that was armed before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(after_ms / 1000, self._expire, callback)

    def disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self, callback: Callable[[], None]) -> None:
        self._timer = None
        callback()


class Connection(Protocol):
    """A connection as the limiter sees it."""

    def has_unread_data(self) -> bool:
        """Return True if the kernel holds bytes of this client that were not read yet."""

    def evict(self) -> None:
        """Serve nothing more, and close after what was written has been sent."""

    def abort(self) -> None:
        """Close the connection at once, without a response."""


class ConnectionLimiter:
    """Track which connections are served, idle, or in overflow.

    Each connection is in at most one of ``served`` and ``overflow``; ``idle`` and ``incomplete`` are subsets of
    ``served``, and make room for new connections in this order. One in ``overflow`` may send a health probe, or waits a
    moment until it can be served.
    """

    def __init__(self) -> None:
        self.served: set[Connection] = set()
        self.idle: dict[Connection, None] = {}
        """Served connections without a pending request or response; idle longest first."""
        self.incomplete: dict[Connection, None] = {}
        """Served connections whose only request has not arrived whole; those that sent nothing for longest first."""
        self.overflow: dict[Connection, None] = {}
        """Connections beyond the limit, and connections that only wait to be closed; oldest first."""

    def acquire(self, connection: Connection, max_served: int) -> bool:
        """Return True if the connection is served, or can be served now within ``max_served``."""
        if connection in self.served:
            return True
        if len(self.served) >= max_served and not self._evict(connection, max_served):
            return False
        self.overflow.pop(connection, None)
        self.served.add(connection)
        return True

    def mark_idle(self, connection: Connection) -> None:
        """Mark a served connection as idle. A connection that is not served is never evicted, and is ignored here."""
        if connection in self.served:
            self.idle[connection] = None

    def mark_incomplete(self, connection: Connection) -> None:
        """Mark a served connection as waiting for the rest of its request."""
        if connection in self.served:
            self.incomplete[connection] = None

    def mark_busy(self, connection: Connection) -> None:
        """Mark the connection as neither idle nor incomplete."""
        self.idle.pop(connection, None)
        self.incomplete.pop(connection, None)

    def release(self, connection: Connection) -> None:
        """Remove the connection."""
        self._remove(connection)
        self.overflow.pop(connection, None)

    def add_overflow(self, connection: Connection, max_served: int) -> None:
        """Move the connection to ``overflow``.

        If that exceeds ``max_served``, abort the oldest connection there, so that a new one can always send a health
        probe.
        """
        self._remove(connection)
        self.overflow[connection] = None
        if len(self.overflow) > max_served:
            oldest = next(iter(self.overflow))
            del self.overflow[oldest]
            oldest.abort()

    def _remove(self, connection: Connection) -> None:
        self.served.discard(connection)
        self.mark_busy(connection)

    def _evict(self, newcomer: Connection, max_served: int) -> bool:
        """Close the connection that has been idle longest, else that of an incomplete request; return False if none is.

        A connection that has sent more, which was not read by this loop yet, is neither.
        """
        checked = (itertools.islice(waiting, MAX_EVICTION_CHECKS) for waiting in (self.idle, self.incomplete))
        for candidate in itertools.chain.from_iterable(checked):
            if candidate.has_unread_data():
                continue
            self.overflow.pop(newcomer, None)  # else add_overflow could abort the newcomer
            candidate.evict()
            self.add_overflow(candidate, max_served)
            return True
        return False


class Admission:
    """Counts what the requests of this process hold, and decides which new ones are admitted.

    A request takes its place in a class when its body is complete; until then it holds the bytes of its body and
    nothing else, so a client that sends slowly keeps no other from being served. It is refused by its head if its
    class is full then.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.writes = 0
        self.reads = 0
        self.body_bytes = 0
        self.large_bodies = 0
        self.shed = 0
        self.status_probes: Counter[bytes] = Counter()
        self._now = now
        self._full_at = -math.inf

    @property
    def in_flight(self) -> int:
        """The number of requests with a complete body that are not answered yet."""
        return self.writes + self.reads

    @property
    def recently_overloaded(self) -> bool:
        """True if a class was full in ``OVERLOAD_RESET_S``: requests should skip waits that they can skip."""
        return self._now() - self._full_at <= OVERLOAD_RESET_S

    def is_full(self, limits: ConnectionLimits, *, is_write: bool) -> bool:
        """Return True if a further request of the class must be shed."""
        if (self.writes if is_write else self.reads) < limits.max_in_flight:
            return False
        self._full_at = self._now()
        return True

    def is_overloaded(self, limits: ConnectionLimits) -> bool:
        """Return True if one of the classes is full."""
        return self.writes >= limits.max_in_flight or self.reads >= limits.max_in_flight

    def admit(self, declared: int, limits: ConnectionLimits, *, is_write: bool = False) -> Ticket | None:
        """Return the ticket of a new request with a body of ``declared`` bytes, or None if it must be shed."""
        ticket = Ticket(self, is_write=is_write)
        if declared > LARGE_BODY_BYTES:
            refused = self.large_bodies >= limits.max_large_bodies  # else its bytes are counted as they arrive
        else:
            refused = not ticket.add_bytes(declared, limits)
        if refused or self.is_full(limits, is_write=is_write):
            ticket.release()
            self.shed += 1
            return None
        return ticket

    def admit_unconditionally(self) -> Ticket:
        """Return a ticket that counts against no limit."""
        return Ticket(self, is_limited=False)

    def admit_status_probe(self, path: bytes) -> Ticket | None:
        """Return a ticket outside the limits, or None if ``MAX_STATUS_PROBES`` requests to ``path`` have one."""
        if self.status_probes[path] >= MAX_STATUS_PROBES:
            return None
        self.status_probes[path] += 1
        return Ticket(self, is_limited=False, probe_path=path)


class Ticket:
    """What one request holds of the limits, until ``release``.

    ``is_limited`` is False for a probe that is admitted outside the limits; ``probe_path`` is the path of a status
    probe, else empty.
    """

    __slots__ = ("_admission", "_is_write", "_large", "_started", "body_bytes", "is_limited", "probe_path")

    def __init__(
        self, admission: Admission, *, is_write: bool = False, is_limited: bool = True, probe_path: bytes = b""
    ) -> None:
        self._admission = admission
        self._is_write = is_write
        self.is_limited = is_limited
        self.probe_path = probe_path
        self.body_bytes = 0
        self._large = False
        self._started = False

    def add_bytes(self, size: int, limits: ConnectionLimits) -> bool:
        """Count ``size`` more bytes of the body; return False and count nothing if that exceeds the limit.

        A body that is alone is always accepted, however low the limit is. Large bodies may use half of the limit, so
        that clients that stop in the middle of a large body do not block short ones.
        """
        admission = self._admission
        others = admission.body_bytes - self.body_bytes
        becomes_large = self.body_bytes + size > LARGE_BODY_BYTES
        most = limits.max_total_body_bytes // 2 if becomes_large else limits.max_total_body_bytes
        if others and size and admission.body_bytes + size > most:
            return False
        admission.body_bytes += size
        self.body_bytes += size
        return True

    def complete_body(self, limits: ConnectionLimits) -> bool:
        """Take a place, because the body is complete; return False if the request must be shed now."""
        admission = self._admission
        if not self.is_limited:
            return True
        if admission.is_full(limits, is_write=self._is_write):
            return False
        if self.body_bytes > LARGE_BODY_BYTES:
            if admission.large_bodies >= limits.max_large_bodies:
                return False
            admission.large_bodies += 1
            self._large = True
        self._started = True
        self._count(1)
        return True

    def become_write(self, limits: ConnectionLimits) -> bool:
        """Count a read as a write from now on; return False and change nothing if no more writes are admitted."""
        if self._is_write or not self._started:
            return True
        if self._admission.is_full(limits, is_write=True):
            self._admission.shed += 1
            return False
        self._count(-1)
        self._is_write = True
        self._count(1)
        return True

    def release(self) -> None:
        """Return everything that the request holds. Safe to call twice."""
        admission = self._admission
        if self._started:
            self._count(-1)
        if self.probe_path:
            admission.status_probes[self.probe_path] -= 1
            self.probe_path = b""
        admission.body_bytes -= self.body_bytes
        admission.large_bodies -= self._large
        self.is_limited = self._started = self._large = False
        self.body_bytes = 0

    def _count(self, change: int) -> None:
        if self._is_write:
            self._admission.writes += change
        else:
            self._admission.reads += change


class HandlerScheduler:
    """Start at most ``HANDLERS_PER_ITERATION`` handlers in one iteration of the loop, in order of arrival.

    A health probe on a new connection needs two iterations, so none of them may be long.
    """

    def __init__(self) -> None:
        self._available = HANDLERS_PER_ITERATION
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._refill_scheduled = False

    async def wait_to_start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until the caller may start its handler."""
        if not self._refill_scheduled:
            self._refill_scheduled = True
            loop.call_soon(self._refill, loop)
        if self._available and not self._waiting:
            self._available -= 1
            return
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiting.append(waiter)
        await waiter

    def _refill(self, loop: asyncio.AbstractEventLoop) -> None:
        self._available = HANDLERS_PER_ITERATION
        while self._waiting and self._available:
            waiter = self._waiting.popleft()
            if not waiter.done():  # else its task was cancelled
                waiter.set_result(None)
                self._available -= 1
        self._refill_scheduled = bool(self._waiting)
        if self._refill_scheduled:
            loop.call_soon(self._refill, loop)


class PendingRead(Protocol):
    """A connection that has received data that was not processed yet."""

    def read_now(self) -> None:
        """Process the data."""


class ReadScheduler:
    """Process deferred data in order of arrival.

    One iteration of the loop processes ``READS_PER_ITERATION`` connections, or a quarter of the waiting ones if that is
    more.
    """

    def __init__(self) -> None:
        self.waiting: deque[PendingRead] = deque()

    def enqueue(self, connection: PendingRead, loop: asyncio.AbstractEventLoop) -> None:
        """Schedule the connection's ``read_now``."""
        self.waiting.append(connection)
        if len(self.waiting) == 1:
            loop.call_soon(self._read_batch, loop)

    def _read_batch(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting = len(self.waiting)
        try:
            for _ in range(min(waiting, max(READS_PER_ITERATION, waiting // 4))):
                self.waiting.popleft().read_now()
        finally:  # a failure of one connection must not stop the others
            if self.waiting:
                loop.call_soon(self._read_batch, loop)


@dataclass(eq=False, repr=False)
class ServerContext:
    """State that all connections share: limits, what is held within them, and counts of rejections.

    A reload replaces ``limits`` while the server runs. ``is_write`` takes the method and path of a request and returns
    True if it changes something, which selects its class.
    """

    limits: ConnectionLimits
    new_trace_id: Callable[[], str]
    is_write: Callable[[bytes, bytes], bool] = lambda _method, _path: False
    rejections: wire.RejectionCounts = field(default_factory=wire.RejectionCounts)
    admission: Admission = field(default_factory=Admission)
    connections: ConnectionLimiter = field(default_factory=ConnectionLimiter)
    handler_scheduler: HandlerScheduler = field(default_factory=HandlerScheduler)
    read_scheduler: ReadScheduler = field(default_factory=ReadScheduler)
    busy_response: wire.PrebuiltBusyResponse = field(default_factory=wire.PrebuiltBusyResponse)


def should_defer(server_context: ServerContext, limits: ConnectionLimits, data: bytes) -> bool:
    """Return True under overload if ``data``, the start of a request, is short and is not a health or status probe."""
    return (
        len(data) <= wire.MAX_PLAIN_BYTES
        and not data.startswith(_READ_IMMEDIATELY)
        and (bool(server_context.read_scheduler.waiting) or server_context.admission.is_overloaded(limits))
    )


def should_shed(server_context: ServerContext, limits: ConnectionLimits, data: bytes) -> bool:
    """Return True if ``data`` is one ordinary request whose class is full: it needs no parser to be refused."""
    if not server_context.admission.is_overloaded(limits):
        return False
    plain = wire.plain_request(data)
    if plain is None:
        return False
    method, target = plain
    is_write = server_context.is_write(method, target.partition(b"?")[0])
    return server_context.admission.is_full(limits, is_write=is_write)


def admit(
    server_context: ServerContext,
    limits: ConnectionLimits,
    method: bytes,
    target: bytes,
    framing: wire.Framing,
    *,
    is_served: bool,
) -> Ticket | None:
    """Return the request's ticket, or None if it must be answered with 503 after its short body was discarded.

    Health probes without a body are always admitted, also on connections beyond the limit: under overload, a client
    must still learn that the daemon is alive. Status probes are admitted too, but few at a time. ``is_served``: the
    connection is within the connection limit.

    Raises RequestRejected if the connection is beyond that limit, or if a body that is too long to be discarded must be
    shed.
    """
    admission = server_context.admission
    path = target.partition(b"?")[0]
    if not framing.declared and not framing.streamed:
        if path == _HEALTH or path.startswith(b"/health/"):
            return admission.admit_unconditionally()
        if path in STATUS_PATHS and method == b"GET" and (not is_served or admission.is_overloaded(limits)):
            probe = admission.admit_status_probe(path)
            if probe is not None:
                return probe
    if not is_served:
        server_context.rejections.connections += 1
        raise wire.RequestRejected(wire.TOO_MANY_CONNECTIONS)
    ticket = admission.admit(framing.declared, limits, is_write=server_context.is_write(method, path))
    if ticket is None and counts_received_bytes(framing):
        raise wire.RequestRejected(wire.BUSY)
    return ticket


def counts_received_bytes(framing: wire.Framing) -> bool:
    """Return True if the body counts by the bytes received, because it is large or of undeclared length."""
    return framing.streamed or framing.declared > LARGE_BODY_BYTES
