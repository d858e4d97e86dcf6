"""What all connections of the gateway may hold together, and how many handlers may begin at once.

Counted before a body is read and before the application runs: whoever is refused here has cost next to nothing.

Source: reliability.md R13; section 3.2 A12 and A18.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from signet_actors.gateway.server import BoundedHttpProtocol

HANDLERS_PER_TURN = 8
"""A handler's first stretch takes half a millisecond."""
READINGS_PER_TURN = 64
"""A request that is refused unread takes 20 microseconds, one that is let in five times as many."""
CROWD_PASSES_S = 0.2
"""So long are a few hundred requests that come at once on their way."""
CROWD_WAIT_S = 0.5
CROWD_FORGOTTEN_S = 0.5
_PACE_S = 0.1
LARGE_BODY_BYTES = 128 * 1024
"""What is longer takes a tenth of a second and more to cut up and embed."""


@dataclass(frozen=True, slots=True)
class WireLimits:
    """Bounds of one connection. ``*_ms`` are total deadlines, not per read; ``header_bytes`` covers request line
    and headers together; ``write_ms`` is how long a client may leave a full send buffer unread.

    ``connections`` and ``unanswered*`` bound all connections together: requests whose handler has not ended, the bytes
    of their bodies (of large ones, and where nothing is declared, those that have arrived), and those whose whole body,
    of more than ``LARGE_BODY_BYTES``, has arrived. ``wait_ms``, ``flood_wait_ms``, ``unanswered_least`` and
    ``flood_least``: see ``Admission``.
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
    unanswered_bytes: int = 32 * 1024 * 1024
    unanswered_large: int = 2


class Admission:
    """What all connections of this process hold at the moment.

    A crowd that passes is let in, up to ``unanswered`` and as many as are answered in ``CROWD_WAIT_S``. Where it stands
    for longer than ``CROWD_PASSES_S``, only so many are let in as are answered within ``wait_ms``: more would wait
    longer, and not one more would be answered. Where that is not enough, and has not been for ``CROWD_PASSES_S``, it is
    a flood: there always is another one to be let in, so none needs to wait in here for longer than ``flood_wait_ms``,
    until for ``CROWD_FORGOTTEN_S`` nobody was refused. Where nothing is answered at all, what is in here waits for
    something else (a writer's next life, bodies that drip), and the whole room is open to what need not wait.
    The pace is that of the last moments; ``unanswered_least``, or
    ``flood_least``, are let in at any pace.

    Source: reliability.md R13; the idea of a standing queue is CoDel's (RFC 8289).
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self.connections = 0
        self.idle: dict[BoundedHttpProtocol, None] = {}
        """Connections on which nothing of a request has arrived, and nothing is to be answered; longest first."""
        self.beyond: dict[BoundedHttpProtocol, None] = {}
        """Connections for which there is no place, and those that only wait to be closed; oldest first."""
        self.requests = 0
        self.body_bytes = 0
        self.large = 0
        self.shed = 0
        self._now = now
        self._crowd = Spell()
        self._refusing = Spell()
        self._answered = 0
        self._pace_began = now()
        self._pace = 0.0

    def admit(self, declared: int, limits: WireLimits) -> Admitted | None:
        """The request counts from now on, or None: it must be refused."""
        admitted = Admitted(self)
        if declared > LARGE_BODY_BYTES:
            refused = self.large >= limits.unanswered_large  # else it counts as it arrives
        else:
            refused = not admitted.grow(declared, limits)
        if refused or self.is_full(limits):
            admitted.release()
            self.shed += 1
            return None
        self.requests += 1
        admitted.counted = True
        return admitted

    def is_full(self, limits: WireLimits) -> bool:
        """Whether another short request would be refused."""
        return self.requests >= self._room(limits)

    @property
    def crowded(self) -> bool:
        """Whether places were short in the last moments, so that nobody is to hold one for longer than his work."""
        return self._crowd.lasted(self._now()) >= 0

    def answered(self) -> None:
        """One request fewer is unanswered."""
        self.requests -= 1
        self._answered += 1

    def _room(self, limits: WireLimits) -> int:
        """How many requests may be unanswered at this moment."""
        now = self._now()
        stalled = not self._pace  # what is in here waits for others, and to let few in helps nobody
        flood = not stalled and self._refusing.lasted(now) > CROWD_PASSES_S
        least = min(limits.flood_least if flood else limits.unanswered_least, limits.unanswered)
        if self.requests < least:
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
        if self.requests >= room:
            self._refusing.goes_on(now)
        return room


class Spell:
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


class Admitted:
    """One request's part of what is held, until ``release``."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self.counted = False
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
        """The body is whole; a large one has a place now, or there is none. Nobody holds one by sending slowly."""
        if self.body_bytes > LARGE_BODY_BYTES and not self._large:
            if self._admission.large >= limits.unanswered_large:
                return False
            self._admission.large += 1
            self._large = True
        return True

    def release(self) -> None:
        """The request holds nothing more; again is harmless."""
        if self.counted:
            self._admission.answered()
        self._admission.body_bytes -= self.body_bytes
        self._admission.large -= self._large
        self.counted = self._large = False
        self.body_bytes = 0


class Turns:
    """Lets ``HANDLERS_PER_TURN`` handlers begin in one turn of the loop, in the order in which they came.

    A crowd whose requests arrive at once would otherwise be worked off in one long turn, and whoever asks for the
    health meanwhile would wait for all of it, three times over: to be accepted, to be read, to be answered.
    """

    def __init__(self) -> None:
        self._left = HANDLERS_PER_TURN
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._renewing = False

    async def next(self, loop: asyncio.AbstractEventLoop) -> None:
        """It is the caller's turn to begin."""
        if not self._renewing:
            self._renewing = True
            loop.call_soon(self._renew, loop)
        if self._left and not self._waiting:
            self._left -= 1
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _renew(self, loop: asyncio.AbstractEventLoop) -> None:
        self._left = HANDLERS_PER_TURN
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():  # else its client, or its server, has gone
                turn.set_result(None)
                self._left -= 1
        self._renewing = bool(self._waiting)
        if self._renewing:
            loop.call_soon(self._renew, loop)


class Readings:
    """Reads connections of a standing crowd as they came, ``READINGS_PER_TURN`` in one turn of the loop, or a
    quarter of them where that is more.

    Hundreds of them send at once, and are refused; in one turn that would take so long that whoever was let in, and
    needs several turns to be answered, and whoever asks for the health, would wait for all of them each time.
    """

    def __init__(self) -> None:
        self.waiting: deque[BoundedHttpProtocol] = deque()

    def wait(self, connection: BoundedHttpProtocol, loop: asyncio.AbstractEventLoop) -> None:
        """The connection is read when it is its turn."""
        self.waiting.append(connection)
        if len(self.waiting) == 1:
            loop.call_soon(self._turn, loop)

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        waiting = len(self.waiting)
        try:
            for _ in range(min(waiting, max(READINGS_PER_TURN, waiting // 4))):
                self.waiting.popleft().read_now()
        finally:  # whatever is wrong with one of them is not the others' fault
            if self.waiting:
                loop.call_soon(self._turn, loop)
