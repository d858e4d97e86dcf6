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

CROWD_PASSES_S = 0.2
"""So long are a few hundred requests that come at once on their way."""
CROWD_WAIT_S = 0.5
CROWD_FORGOTTEN_S = 0.5
_PACE_S = 0.1
GLANCES_AT_ONCE = 2
LARGE_BODY_BYTES = 128 * 1024
"""What is longer takes a tenth of a second and more to cut up and embed."""


@dataclass(frozen=True, slots=True)
class WireLimits:
    """Bounds of one connection. ``*_ms`` are total deadlines, not per read; ``header_bytes`` covers request line
    and headers together; ``write_ms`` is how long a client may leave a full send buffer unread.

    ``connections`` and ``unanswered*`` bound all connections together: requests whose handler has not ended (but those
    that wait for a process which is away, of these twice as many at the very most, and those whose body drips, one for
    each connection: see ``Admission``), the bytes of their bodies (of large ones, and where nothing is declared, those
    that have arrived), and those whose whole body, of more than ``LARGE_BODY_BYTES``, has arrived. ``wait_ms``,
    ``flood_wait_ms``, ``unanswered_least`` and ``flood_least``: see ``Admission``.
    """

    header_bytes: int = 16 * 1024
    header_ms: int = 10_000
    body_bytes: int = 1024 * 1024
    body_ms: int = 10_000
    write_ms: int = 15_000
    keep_alive_ms: int = 15_000
    connections: int = 256
    unanswered: int = 128
    unanswered_least: int = 64
    wait_ms: int = 100
    flood_least: int = 16
    flood_wait_ms: int = 25
    stuck_ms: int = 250
    unanswered_bytes: int = 32 * 1024 * 1024
    unanswered_large: int = 2


class Admission:
    """What the requests of this process hold at the moment.

    A crowd that passes is let in, up to ``unanswered`` and as many as are answered in ``CROWD_WAIT_S``. Where it stands
    for longer than ``CROWD_PASSES_S``, only so many are let in as are answered within ``wait_ms``: more would wait
    longer, and not one more would be answered. Where that is not enough, and has not been for ``CROWD_PASSES_S``, it is
    a flood: there always is another one to be let in, so none needs to wait in here for longer than ``flood_wait_ms``,
    until for ``CROWD_FORGOTTEN_S`` nobody was refused. Where nothing is answered at all, what is in here waits for
    something else (bodies that drip), and the whole room is open to what need not wait.
    The pace is that of the last moments; ``unanswered_least``, or
    ``flood_least``, are let in at any pace.

    Requests that change something wait for one process and the others for others: each kind has a lane. Where none of
    a lane was answered for ``stuck_ms``, those in it wait for a process that is away, and take no part of the room,
    which is for those that are worked on. So that they stay bounded, a lane in which half of ``unanswered`` wait so is
    closed until one of them is answered: a dead writer's crowd locks out no reader, and the other way round.

    A request whose body is not whole ``stuck_ms`` after its head waits for nobody but its client, and takes no part of
    the room either; when it is whole at last, it is let in like a new one, or refused.

    Source: docs/reliability.md R13; the idea of a standing queue is CoDel's (RFC 8289), that of the lanes is a
    bulkhead's.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.requests = 0
        self.body_bytes = 0
        self.large = 0
        self.shed = 0
        self.changes = Bulkhead()
        self.reads = Bulkhead()
        self.glances: Counter[bytes] = Counter()
        self.dripping: set[Ticket] = set()
        self.now = now
        self._arriving: dict[Ticket, float] = {}  # since when, oldest first
        self._crowd = PersistenceTimer()
        self._refusing = PersistenceTimer()
        self._answered = 0
        self._pace_began = now()
        self._pace = 0.0

    def admit(self, declared: int, limits: WireLimits, *, changes: bool = False) -> Ticket | None:
        """The request counts from now on, or None: it must be refused. ``changes``: it asks for a change."""
        lane = self.changes if changes else self.reads
        admitted = Ticket(self, lane)
        if declared > LARGE_BODY_BYTES:
            refused = self.large >= limits.unanswered_large  # else it counts as it arrives
        else:
            refused = not admitted.grow(declared, limits)
        if refused or self.is_full(limits) or (lane.waiting and lane.is_closed(limits)):
            admitted.release()
            self.shed += 1
            return None
        self.requests += 1
        admitted.counted = True
        self._arriving[admitted] = self.now()
        return admitted

    def admit_on_arrival(self) -> Ticket:
        """A request that is let in whatever else is here, and holds nothing."""
        return Ticket(self, self.reads)

    def glance(self, path: bytes) -> Ticket | None:
        """An operator's question is let in, whatever else is here; None while ``GLANCES_AT_ONCE`` to ``path`` are."""
        if self.glances[path] >= GLANCES_AT_ONCE:
            return None
        self.glances[path] += 1
        admitted = Ticket(self, self.reads)
        admitted.glance = path
        return admitted

    def is_full(self, limits: WireLimits) -> bool:
        """Whether another short request would be refused, whatever it asks for."""
        requests = self.requests
        if requests < limits.flood_least and requests < limits.unanswered_least and requests < limits.unanswered:
            return False  # at any pace
        now = self.now()
        self.changes.look(now, limits)
        self.reads.look(now, limits)
        self._look_for_drips(now, limits)
        return self._worked_on() >= self._room(limits, now)

    def is_crowded(self, limits: WireLimits) -> bool:
        """Whether another short request would be refused, or at least one that asks for a change, or one that does
        not."""
        if self.is_full(limits):
            return True
        changes, reads = self.changes, self.reads
        return bool(changes.waiting or reads.waiting) and (changes.is_closed(limits) or reads.is_closed(limits))

    @property
    def lately_crowded(self) -> bool:
        """Whether places were short in the last moments, so that nobody is to hold one for longer than his work."""
        return self._crowd.lasted(self.now()) >= 0

    def answered(self) -> None:
        """One request fewer is unanswered."""
        self.requests -= 1
        self._answered += 1

    def ends_arriving(self, admitted: Ticket) -> None:
        """The request is whole, or will never be."""
        self._arriving.pop(admitted, None)
        self.dripping.discard(admitted)

    def _look_for_drips(self, now: float, limits: WireLimits) -> None:
        """Those whose body has taken ``stuck_ms`` so far are dripping."""
        while self._arriving:
            oldest, since = next(iter(self._arriving.items()))
            if now - since <= limits.stuck_ms / 1000:
                return
            del self._arriving[oldest]
            self.dripping.add(oldest)

    def _worked_on(self) -> int:
        """Requests that wait neither for a process that is away nor for their client."""
        return self.requests - len(self.changes.waiting) - len(self.reads.waiting) - len(self.dripping)

    def _room(self, limits: WireLimits, now: float) -> int:
        """How many requests may be worked on at this moment."""
        inside = self._worked_on()
        stalled = not self._pace  # what is in here waits for others, and to let few in helps nobody
        flood = not stalled and self._refusing.lasted(now) > CROWD_PASSES_S
        least = min(limits.flood_least if flood else limits.unanswered_least, limits.unanswered)
        if inside < least:
            return limits.unanswered
        if self._crowd.lasted(now) < 0:
            self._pace_began = now
            self._answered = 0
            self._pace = math.inf  # nobody knows yet: what came before was no crowd
        self._crowd.goes_on(now)
        measured_s = now - self._pace_began
        if measured_s >= _PACE_S:
            self._pace = self._answered / measured_s
            self._pace_began, self._answered = now, 0
        if flood:
            wait_s = limits.flood_wait_ms / 1000
        else:
            wait_s = limits.wait_ms / 1000 if self._crowd.lasted(now) > CROWD_PASSES_S else CROWD_WAIT_S
        room = limits.unanswered if stalled else int(min(limits.unanswered, max(least, self._pace * wait_s)))
        if inside >= room:
            self._refusing.goes_on(now)
        return room


class Bulkhead:
    """Requests that are whole and wait for the same: those that are worked on, and those ``waiting`` for a process
    which is away."""

    __slots__ = ("_moved", "_moving", "waiting")

    def __init__(self) -> None:
        self.waiting: set[Ticket] = set()
        self._moving: set[Ticket] = set()
        self._moved = 0.0  # when one was answered, or came where there was none

    def enter(self, admitted: Ticket, now: float) -> None:
        """One more is inside."""
        if not self._moving:
            self._moved = now
        self._moving.add(admitted)

    def leave(self, admitted: Ticket, now: float) -> None:
        """It is not inside; whether it was tells whether the lane moves."""
        if admitted in self._moving:
            self._moving.remove(admitted)
            self._moved = now
        elif admitted in self.waiting:
            self.waiting.remove(admitted)
            self._moved = now

    def look(self, now: float, limits: WireLimits) -> None:
        """Those inside are waiting if none was answered for ``stuck_ms``; who comes later has as long again."""
        if self._moving and now - self._moved > limits.stuck_ms / 1000:
            self.waiting |= self._moving
            self._moving.clear()

    def is_closed(self, limits: WireLimits) -> bool:
        """Whether so many wait that no more may."""
        return len(self.waiting) >= max(1, limits.unanswered // 2)


class PersistenceTimer:
    """How long something has been going on, with no pause as long as ``CROWD_FORGOTTEN_S``."""

    def __init__(self) -> None:
        self._began = self._seen = -math.inf

    def goes_on(self, now: float) -> None:
        """It is seen at ``now``."""
        if now - self._seen > CROWD_FORGOTTEN_S:
            self._began = now
        self._seen = now

    def lasted(self, now: float) -> float:
        """Seconds since it began; -1 while it does not go on."""
        return -1.0 if now - self._seen > CROWD_FORGOTTEN_S else now - self._began


class Ticket:
    """One request's part of what is held, until ``release``. ``counted``: among the unanswered ones; ``glance``: the
    path of an operator's question that was let in beside them."""

    __slots__ = ("_admission", "_lane", "_large", "body_bytes", "counted", "glance")

    def __init__(self, admission: Admission, lane: Bulkhead) -> None:
        self._admission = admission
        self._lane = lane
        self.counted = False
        self.glance = b""
        self.body_bytes = 0
        self._large = False

    def grow(self, size: int, limits: WireLimits) -> bool:
        """The request holds ``size`` more bytes, or nothing has changed because that would be too much.

        A single body is never too much, however the limits are set. What makes a body large may take half of all there
        is: clients who stop in the middle of theirs are not in the way of short ones.
        """
        admission = self._admission
        others = admission.body_bytes - self.body_bytes
        becomes_large = self.body_bytes + size > LARGE_BODY_BYTES
        most = limits.unanswered_bytes // 2 if becomes_large else limits.unanswered_bytes
        if others and size and admission.body_bytes + size > most:
            return False
        admission.body_bytes += size
        self.body_bytes += size
        return True

    def arrived(self, limits: WireLimits) -> bool:
        """The request is whole; a large one has a place now, and so has one that took long, or there is none. Nobody
        holds one by sending slowly."""
        if self in self._admission.dripping and self._admission.is_full(limits):
            return False
        if self.body_bytes > LARGE_BODY_BYTES and not self._large:
            if self._admission.large >= limits.unanswered_large:
                return False
            self._admission.large += 1
            self._large = True
        self._admission.ends_arriving(self)
        self._lane.enter(self, self._admission.now())
        return True

    def release(self) -> None:
        """The request holds nothing more; again is harmless."""
        if self.counted:
            self._admission.answered()
            self._admission.ends_arriving(self)
            self._lane.leave(self, self._admission.now())
        if self.glance:
            self._admission.glances[self.glance] -= 1
            self.glance = b""
        self._admission.body_bytes -= self.body_bytes
        self._admission.large -= self._large
        self.counted = self._large = False
        self.body_bytes = 0
