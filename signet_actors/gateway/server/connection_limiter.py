"""Limits of connections: what one may send and how long it may take, and how many are open.

Up to the limit, connections are served. For one more, the connection that has been idle longest is closed. If none is
idle, the new connection stays open in ``overflow``: it may send a health probe, or waits a moment until it can be
served. As many connections again may be in ``overflow``.

Source: docs/security.md A12 and A18; docs/reliability.md R13.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

MAX_EVICTION_CHECKS: Final = 32
"""Idle connections that are checked for unread data before eviction gives up."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of one connection, and of all connections together.

    The ``*_ms`` fields of one connection are total deadlines, not per read. ``header_bytes`` covers the request line
    and the headers together. ``write_ms`` is how long a client may leave a full send buffer unread.

    ``connections`` and ``max_*`` apply to all connections together. ``max_in_flight`` bounds the requests with a
    complete body whose handler has not ended: so many writes, and as many reads. ``max_total_body_bytes`` counts the
    bytes of their bodies: as received for large bodies and for bodies of undeclared length, else as declared.
    ``max_large_bodies`` counts requests whose complete body is larger than ``load_shedding.LARGE_BODY_BYTES``.
    """

    header_bytes: int = 16 * 1024
    header_ms: int = 10_000
    body_bytes: int = 1024 * 1024
    body_ms: int = 10_000
    write_ms: int = 15_000
    keep_alive_ms: int = 15_000
    connections: int = 256
    max_in_flight: int = 128
    max_total_body_bytes: int = 32 * 1024 * 1024
    max_large_bodies: int = 2


class Deadline:
    """Call a function when a time has passed, unless disarmed or armed anew before."""

    __slots__ = ("_loop", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_armed(self) -> bool:
        """True while a callback is pending."""
        return self._timer is not None

    def arm(self, after_ms: float, callback: Callable[[], None]) -> None:
        """Call ``callback`` after ``after_ms``; cancel any callback that was armed before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(after_ms / 1000, self._expire, callback)

    def disarm(self) -> None:
        """Cancel the timer."""
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

    Each connection is in at most one of ``served`` and ``overflow``; ``idle`` is a subset of ``served``.
    """

    def __init__(self) -> None:
        self.served: set[Connection] = set()
        self.idle: dict[Connection, None] = {}
        """Served connections without a pending request or response; idle longest first."""
        self.overflow: dict[Connection, None] = {}
        """Connections beyond the limit, and connections that only wait to be closed; oldest first."""

    def acquire(self, connection: Connection, max_served: int) -> bool:
        """Return True if the connection is served, or can be served now within ``max_served``."""
        if connection in self.served:
            return True
        if len(self.served) >= max_served and not self._evict_idle(connection, max_served):
            return False
        self.overflow.pop(connection, None)
        self.served.add(connection)
        return True

    def mark_idle(self, connection: Connection) -> None:
        """Mark a served connection as idle. A connection that is not served is never evicted, and is ignored here."""
        if connection in self.served:
            self.idle[connection] = None

    def mark_busy(self, connection: Connection) -> None:
        """Mark the connection as not idle."""
        self.idle.pop(connection, None)

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
        self.idle.pop(connection, None)

    def _evict_idle(self, newcomer: Connection, max_served: int) -> bool:
        """Close the connection that has been idle longest; return False if none is idle.

        A connection whose next request has arrived in the kernel, but was not read by this loop yet, is not idle.
        """
        for candidate in itertools.islice(self.idle, MAX_EVICTION_CHECKS):
            if candidate.has_unread_data():
                continue
            self.overflow.pop(newcomer, None)  # else add_overflow could abort the newcomer
            candidate.evict()
            self.add_overflow(candidate, max_served)
            return True
        return False
