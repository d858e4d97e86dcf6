"""What all requests of the gateway may hold together: which of them is let in, and which is refused at the door.

Counted before a body is read and before the application runs: whoever is refused here has cost next to nothing.

Source: docs/reliability.md R13; docs/security.md A12 and A18.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

BURST_TOLERANCE_S = 0.2
"""So long are a few hundred requests that come at once on their way."""
BURST_WAIT_S = 0.5
OVERLOAD_RESET_S = 0.5
_RATE_WINDOW_S = 0.1
MAX_STATUS_PROBES = 2
LARGE_BODY_BYTES = 128 * 1024
"""What is longer takes a tenth of a second and more to cut up and embed."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Bounds of one connection. ``*_ms`` are total deadlines, not per read; ``header_bytes`` covers request line
    and headers together; ``write_ms`` is how long a client may leave a full send buffer unread.

    ``connections`` and ``unanswered*`` bound all connections together: requests whose handler has not ended (but those
    that wait for a process which is away, of these twice as many at the very most, and those whose body drips, one for
    each connection: see ``Admission``), the bytes of their bodies (of large ones, and where nothing is declared, those
    that have arrived), and those whose whole body, of more than ``LARGE_BODY_BYTES``, has arrived. ``wait_ms``,
    ``sustained_wait_ms``, ``min_in_flight`` and ``sustained_min_in_flight``: see ``Admission``.
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
    """What the requests of this process hold at the moment.

    A burst is admitted up to ``max_in_flight`` requests, and up to as many as are answered in ``BURST_WAIT_S``. When it
    lasts longer than ``BURST_TOLERANCE_S``, only as many requests are admitted as are answered within
    ``overload_wait_ms``. When requests have been shed for longer than ``BURST_TOLERANCE_S``, the overload is sustained,
    and only as many are admitted as are answered within ``sustained_wait_ms``. This ends when nothing was shed for
    ``OVERLOAD_RESET_S``.

    A request whose body is not whole ``stall_ms`` after its head waits for nobody but its client, and takes no part of
    the room either; when it is whole at last, it is let in like a new one, or refused.

    Source: docs/reliability.md R13; the idea of a standing queue is CoDel's (RFC 8289), that of the lanes is a
    bulkhead's.
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
        self._receiving: dict[Ticket, float] = {}  # since when, oldest first
        self._overload = PersistenceTimer()
        self._shedding = PersistenceTimer()
        self._finished = 0
        self._rate_since = now()
        self._rate = 0.0

    def admit(self, declared: int, limits: ConnectionLimits, *, is_write: bool = False) -> Ticket | None:
        """The request counts from now on, or None: it must be refused. ``changes``: it asks for a change."""
        bulkhead = self.writes if is_write else self.reads
        ticket = Ticket(self, bulkhead)
        if declared > LARGE_BODY_BYTES:
            refused = self.large_bodies >= limits.max_large_bodies  # else it counts as it arrives
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
        """A request that is let in whatever else is here, and holds nothing."""
        return Ticket(self, self.reads)

    def admit_status_probe(self, path: bytes) -> Ticket | None:
        """An operator's question is let in, whatever else is here; None while ``MAX_STATUS_PROBES`` to ``path`` are."""
        if self.status_probes[path] >= MAX_STATUS_PROBES:
            return None
        self.status_probes[path] += 1
        ticket = Ticket(self, self.reads)
        ticket.probe_path = path
        return ticket

    def is_full(self, limits: ConnectionLimits) -> bool:
        """Whether another short request would be refused, whatever it asks for."""
        in_flight = self.in_flight
        if (
            in_flight < limits.sustained_min_in_flight
            and in_flight < limits.min_in_flight
            and in_flight < limits.max_in_flight
        ):
            return False  # at any pace
        now = self.now()
        self.writes.detect_stall(now, limits)
        self.reads.detect_stall(now, limits)
        self._update_slow_bodies(now, limits)
        return self._active_count() >= self._capacity(limits, now)

    def is_overloaded(self, limits: ConnectionLimits) -> bool:
        """Whether another short request would be refused, or at least one that asks for a change, or one that does
        not."""
        if self.is_full(limits):
            return True
        writes, reads = self.writes, self.reads
        return bool(writes.stalled or reads.stalled) and (writes.is_closed(limits) or reads.is_closed(limits))

    @property
    def recently_overloaded(self) -> bool:
        """Whether places were short in the last moments, so that nobody is to hold one for longer than his work."""
        return self._overload.duration(self.now()) >= 0

    def on_finished(self) -> None:
        """One request fewer is unanswered."""
        self.in_flight -= 1
        self._finished += 1

    def on_body_end(self, ticket: Ticket) -> None:
        """The request is whole, or will never be."""
        self._receiving.pop(ticket, None)
        self.slow_bodies.discard(ticket)

    def _update_slow_bodies(self, now: float, limits: ConnectionLimits) -> None:
        """Those whose body has taken ``stall_ms`` so far are dripping."""
        while self._receiving:
            oldest, since = next(iter(self._receiving.items()))
            if now - since <= limits.stall_ms / 1000:
                return
            del self._receiving[oldest]
            self.slow_bodies.add(oldest)

    def _active_count(self) -> int:
        """Requests that wait neither for a process that is away nor for their client."""
        return self.in_flight - len(self.writes.stalled) - len(self.reads.stalled) - len(self.slow_bodies)

    def _capacity(self, limits: ConnectionLimits, now: float) -> int:
        """How many requests may be worked on at this moment."""
        active = self._active_count()
        stalled = not self._rate  # what is in here waits for others, and to let few in helps nobody
        sustained = not stalled and self._shedding.duration(now) > BURST_TOLERANCE_S
        least = min(limits.sustained_min_in_flight if sustained else limits.min_in_flight, limits.max_in_flight)
        if active < least:
            return limits.max_in_flight
        if self._overload.duration(now) < 0:
            self._rate_since = now
            self._finished = 0
            self._rate = math.inf  # nobody knows yet: what came before was no crowd
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
    """Requests that are whole and wait for the same: those that are worked on, and those ``waiting`` for a process
    which is away."""

    __slots__ = ("_active", "_progress_at", "stalled")

    def __init__(self) -> None:
        self.stalled: set[Ticket] = set()
        self._active: set[Ticket] = set()
        self._progress_at = 0.0  # when one was answered, or came where there was none

    def enter(self, ticket: Ticket, now: float) -> None:
        """One more is inside."""
        if not self._active:
            self._progress_at = now
        self._active.add(ticket)

    def leave(self, ticket: Ticket, now: float) -> None:
        """It is not inside; whether it was tells whether the bulkhead moves."""
        if ticket in self._active:
            self._active.remove(ticket)
            self._progress_at = now
        elif ticket in self.stalled:
            self.stalled.remove(ticket)
            self._progress_at = now

    def detect_stall(self, now: float, limits: ConnectionLimits) -> None:
        """Those inside are waiting if none was answered for ``stall_ms``; who comes later has as long again."""
        if self._active and now - self._progress_at > limits.stall_ms / 1000:
            self.stalled |= self._active
            self._active.clear()

    def is_closed(self, limits: ConnectionLimits) -> bool:
        """Whether so many wait that no more may."""
        return len(self.stalled) >= max(1, limits.max_in_flight // 2)


class PersistenceTimer:
    """How long something has been going on, with no pause as long as ``OVERLOAD_RESET_S``."""

    def __init__(self) -> None:
        self._began = self._seen = -math.inf

    def mark(self, now: float) -> None:
        """It is seen at ``now``."""
        if now - self._seen > OVERLOAD_RESET_S:
            self._began = now
        self._seen = now

    def duration(self, now: float) -> float:
        """Seconds since it began; -1 while it does not go on."""
        return -1.0 if now - self._seen > OVERLOAD_RESET_S else now - self._began


class Ticket:
    """One request's part of what is held, until ``release``. ``counted``: among the unanswered ones; ``glance``: the
    path of an operator's question that was let in beside them."""

    __slots__ = ("_admission", "_bulkhead", "_large", "body_bytes", "counted", "probe_path")

    def __init__(self, admission: Admission, bulkhead: Bulkhead) -> None:
        self._admission = admission
        self._bulkhead = bulkhead
        self.counted = False
        self.probe_path = b""
        self.body_bytes = 0
        self._large = False

    def add_bytes(self, size: int, limits: ConnectionLimits) -> bool:
        """The request holds ``size`` more bytes, or nothing has changed because that would be too much.

        A single body is never too much, however the limits are set. What makes a body large may take half of all there
        is: clients who stop in the middle of theirs are not in the way of short ones.
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
        """The request is whole; a large one has a place now, and so has one that took long, or there is none. Nobody
        holds one by sending slowly."""
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
        """The request holds nothing more; again is harmless."""
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
