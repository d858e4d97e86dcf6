"""Admission control of the gateway: which requests start, and which are shed, over all connections.

A request is counted before its body is read and before the application runs, so that shedding one costs next to
nothing. DESIGN.md describes the limits.

Source: docs/reliability.md R13; docs/security.md A12 and A18.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

BURST_TOLERANCE_S = 0.2
"""A few hundred requests that arrive at once take this long to be served."""
BURST_WAIT_S = 0.5
OVERLOAD_RESET_S = 0.5
_RATE_WINDOW_S = 0.1
MAX_STATUS_PROBES = 2
LARGE_BODY_BYTES = 128 * 1024
"""It takes a tenth of a second or more to split and embed a longer text."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one connection, and of all connections together.

    The ``*_ms`` fields of one connection are total deadlines, not per read. ``header_bytes`` covers the request line
    and the headers together. ``write_ms`` is how long a client may leave a full send buffer unread.

    ``connections``, ``max_in_flight`` and ``max_*`` apply to all connections together. ``max_in_flight`` counts
    requests whose handler has not ended. It does not count stalled requests (at most twice ``max_in_flight`` of them)
    and slow bodies (at most one per connection). ``max_total_body_bytes`` counts the bytes of their bodies: as received
    for large bodies and for bodies of undeclared length, else as declared. ``max_large_bodies`` counts requests whose
    complete body is larger than ``LARGE_BODY_BYTES``. ``Admission`` describes ``min_in_flight``,
    ``sustained_min_in_flight``, ``overload_wait_ms``, ``sustained_wait_ms`` and ``stall_ms``.
    """

    header_bytes: int = 16 * 1024
    header_ms: int = 10_000
    body_bytes: int = 1024 * 1024
    body_ms: int = 10_000
    write_ms: int = 15_000
    keep_alive_ms: int = 15_000
    connections: int = 256
    max_in_flight: int = 128
    min_in_flight: int = 64
    overload_wait_ms: int = 100
    sustained_min_in_flight: int = 16
    sustained_wait_ms: int = 25
    stall_ms: int = 250
    max_total_body_bytes: int = 32 * 1024 * 1024
    max_large_bodies: int = 2


class Admission:
    """Count what the requests of this process hold, and decide which new ones are admitted.

    The capacity depends on how long the overload lasts:

    - Burst: up to ``max_in_flight`` requests, and up to as many as are answered within ``BURST_WAIT_S``.
    - Overload (longer than ``BURST_TOLERANCE_S``): as many as are answered within ``overload_wait_ms``, at least
      ``min_in_flight``. More would only wait longer; the number of answers would not grow.
    - Sustained overload (requests have been shed for longer than ``BURST_TOLERANCE_S``): as many as are answered within
      ``sustained_wait_ms``, at least ``sustained_min_in_flight``. There is always a next request, so a short queue
      suffices. This ends when nothing was shed for ``OVERLOAD_RESET_S``.
    - Nothing is answered at all: ``max_in_flight``, because the admitted requests wait for something else, such as slow
      bodies.

    The completion rate is measured over the last ``_RATE_WINDOW_S``.

    Writes wait for the writer and reads mostly for searchers, so each kind has a bulkhead. When no request of a
    bulkhead was answered for ``stall_ms``, its requests count as stalled: they wait for a process that is down and use
    no capacity. A bulkhead with ``max_in_flight / 2`` stalled requests admits no more until one of them is answered.
    Thus writes that wait for a crashed writer do not block reads, and vice versa.

    A request whose body is incomplete ``stall_ms`` after its head is a slow body. It uses no capacity until its body is
    complete; then it is admitted like a new request, or shed.

    Source: docs/reliability.md R13; RFC 8289 (CoDel) for the idea of a standing queue; the bulkhead pattern.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.in_flight = 0
        self.body_bytes = 0
        self.large_bodies = 0
        self.shed = 0
        self.writes = Bulkhead()
        self.reads = Bulkhead()
        self.status_probes: Counter[bytes] = Counter()
        self.slow_bodies: set[Ticket] = set()
        self.now = now
        self._receiving: dict[Ticket, float] = {}  # start time of each, oldest first
        self._overload = PersistenceTimer()
        self._shedding = PersistenceTimer()
        self._finished = 0
        self._rate_since = now()
        self._rate = 0.0

    def admit(self, declared: int, limits: ConnectionLimits, *, is_write: bool = False) -> Ticket | None:
        """Count a new request and return its ticket, or return None if it must be shed."""
        bulkhead = self.writes if is_write else self.reads
        ticket = Ticket(self, bulkhead)
        if declared > LARGE_BODY_BYTES:
            refused = self.large_bodies >= limits.max_large_bodies  # else its bytes are counted as they arrive
        else:
            refused = not ticket.add_bytes(declared, limits)
        if refused or self.is_full(limits) or (bulkhead.stalled and bulkhead.is_closed(limits)):
            ticket.release()
            self.shed += 1
            return None
        self.in_flight += 1
        ticket.counted = True
        self._receiving[ticket] = self.now()
        return ticket

    def admit_unconditionally(self) -> Ticket:
        """Return a ticket that counts against no limit."""
        return Ticket(self, self.reads)

    def admit_status_probe(self, path: bytes) -> Ticket | None:
        """Return a ticket outside the limits, or None if ``MAX_STATUS_PROBES`` requests to ``path`` have one."""
        if self.status_probes[path] >= MAX_STATUS_PROBES:
            return None
        self.status_probes[path] += 1
        ticket = Ticket(self, self.reads)
        ticket.probe_path = path
        return ticket

    def is_full(self, limits: ConnectionLimits) -> bool:
        """Return True if any further short request would be shed."""
        in_flight = self.in_flight
        if (
            in_flight < limits.sustained_min_in_flight
            and in_flight < limits.min_in_flight
            and in_flight < limits.max_in_flight
        ):
            return False  # admitted at any rate
        now = self.now()
        self.writes.detect_stall(now, limits)
        self.reads.detect_stall(now, limits)
        self._update_slow_bodies(now, limits)
        return self._active_count() >= self._capacity(limits, now)

    def is_overloaded(self, limits: ConnectionLimits) -> bool:
        """Return True if a further short request would be shed, at least if it is a write, or a read."""
        if self.is_full(limits):
            return True
        writes, reads = self.writes, self.reads
        return bool(writes.stalled or reads.stalled) and (writes.is_closed(limits) or reads.is_closed(limits))

    @property
    def recently_overloaded(self) -> bool:
        """True if capacity was short within the last ``OVERLOAD_RESET_S``.

        A request should then not hold its slot for a wait that it can skip.
        """
        return self._overload.duration(self.now()) >= 0

    def on_finished(self) -> None:
        """Decrement the in-flight count."""
        self.in_flight -= 1
        self._finished += 1

    def on_body_end(self, ticket: Ticket) -> None:
        """Stop timing the body of a request: it is complete, or the request has ended."""
        self._receiving.pop(ticket, None)
        self.slow_bodies.discard(ticket)

    def _update_slow_bodies(self, now: float, limits: ConnectionLimits) -> None:
        """Mark the requests whose body has been incomplete for ``stall_ms``."""
        while self._receiving:
            oldest, since = next(iter(self._receiving.items()))
            if now - since <= limits.stall_ms / 1000:
                return
            del self._receiving[oldest]
            self.slow_bodies.add(oldest)

    def _active_count(self) -> int:
        """Return the number of requests that wait neither for a stalled process nor for their client."""
        return self.in_flight - len(self.writes.stalled) - len(self.reads.stalled) - len(self.slow_bodies)

    def _capacity(self, limits: ConnectionLimits, now: float) -> int:
        """Return how many requests may be active now, and track how long overload and shedding last."""
        active = self._active_count()
        stalled = not self._rate  # they wait for something else, so a small queue would not help
        sustained = not stalled and self._shedding.duration(now) > BURST_TOLERANCE_S
        least = min(limits.sustained_min_in_flight if sustained else limits.min_in_flight, limits.max_in_flight)
        if active < least:
            return limits.max_in_flight
        if self._overload.duration(now) < 0:
            self._rate_since = now
            self._finished = 0
            self._rate = math.inf  # not measured yet under overload
        self._overload.mark(now)
        measured_s = now - self._rate_since
        if measured_s >= _RATE_WINDOW_S:
            self._rate = self._finished / measured_s
            self._rate_since, self._finished = now, 0
        if sustained:
            wait_s = limits.sustained_wait_ms / 1000
        else:
            wait_s = (
                limits.overload_wait_ms / 1000 if self._overload.duration(now) > BURST_TOLERANCE_S else BURST_WAIT_S
            )
        capacity = limits.max_in_flight if stalled else int(min(limits.max_in_flight, max(least, self._rate * wait_s)))
        if active >= capacity:
            self._shedding.mark(now)
        return capacity


class Bulkhead:
    """Complete requests that wait for the same processes: active ones, and ``stalled`` ones."""

    __slots__ = ("_active", "_progress_at", "stalled")

    def __init__(self) -> None:
        self.stalled: set[Ticket] = set()
        self._active: set[Ticket] = set()
        self._progress_at = 0.0  # last answer, or arrival into an empty bulkhead

    def enter(self, ticket: Ticket, now: float) -> None:
        """Add a request to the active ones."""
        if not self._active:
            self._progress_at = now
        self._active.add(ticket)

    def leave(self, ticket: Ticket, now: float) -> None:
        """Remove a request, and note the progress if it was in here."""
        if ticket in self._active:
            self._active.remove(ticket)
            self._progress_at = now
        elif ticket in self.stalled:
            self.stalled.remove(ticket)
            self._progress_at = now

    def detect_stall(self, now: float, limits: ConnectionLimits) -> None:
        """Move the active requests to ``stalled`` if none was answered for ``stall_ms``.

        Requests that arrive later have ``stall_ms`` of their own.
        """
        if self._active and now - self._progress_at > limits.stall_ms / 1000:
            self.stalled |= self._active
            self._active.clear()

    def is_closed(self, limits: ConnectionLimits) -> bool:
        """Return True if no further request may join the stalled ones."""
        return len(self.stalled) >= max(1, limits.max_in_flight // 2)


class PersistenceTimer:
    """Measure how long a condition has held, ignoring pauses shorter than ``OVERLOAD_RESET_S``."""

    def __init__(self) -> None:
        self._began = self._seen = -math.inf

    def mark(self, now: float) -> None:
        """Record that the condition holds at ``now``."""
        if now - self._seen > OVERLOAD_RESET_S:
            self._began = now
        self._seen = now

    def duration(self, now: float) -> float:
        """Return for how many seconds the condition has held, or -1 if it does not hold."""
        return -1.0 if now - self._seen > OVERLOAD_RESET_S else now - self._began


class Ticket:
    """What one request holds of the limits, until ``release``.

    ``counted``: the request is in the in-flight count. ``probe_path``: the path of a status probe that was admitted
    outside the limits, else empty.
    """

    __slots__ = ("_admission", "_bulkhead", "_large", "body_bytes", "counted", "probe_path")

    def __init__(self, admission: Admission, bulkhead: Bulkhead) -> None:
        self._admission = admission
        self._bulkhead = bulkhead
        self.counted = False
        self.probe_path = b""
        self.body_bytes = 0
        self._large = False

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
        """Record that the body is complete; return False if the request must be shed now.

        A large body takes a slot of ``max_large_bodies`` only here, and a slow body is admitted only here: sending
        slowly occupies nothing.
        """
        if self in self._admission.slow_bodies and self._admission.is_full(limits):
            return False
        if self.body_bytes > LARGE_BODY_BYTES and not self._large:
            if self._admission.large_bodies >= limits.max_large_bodies:
                return False
            self._admission.large_bodies += 1
            self._large = True
        self._admission.on_body_end(self)
        self._bulkhead.enter(self, self._admission.now())
        return True

    def release(self) -> None:
        """Return everything that the request holds. Safe to call twice."""
        if self.counted:
            self._admission.on_finished()
            self._admission.on_body_end(self)
            self._bulkhead.leave(self, self._admission.now())
        if self.probe_path:
            self._admission.status_probes[self.probe_path] -= 1
            self.probe_path = b""
        self._admission.body_bytes -= self.body_bytes
        self._admission.large_bodies -= self._large
        self.counted = self._large = False
        self.body_bytes = 0
