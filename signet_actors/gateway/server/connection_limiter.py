"""The places that connections have: those that are served, those of them that are idle, and those beyond.

As many as are allowed are served. For one more, the one that has been idle longest makes room. Where none is idle, the
newcomer stays open beside them: it may ask for the health, or waits for a place; as many again may be open so.

Source: docs/security.md A12 and A18; docs/reliability.md R13.
"""

from __future__ import annotations

import itertools
from typing import Final, Protocol

MAX_EVICTION_CHECKS: Final = 32
"""So many idle connections are looked at for one that makes room; the others have a request that is not read yet."""


class Connection(Protocol):
    """What a place is given to."""

    def has_unread_data(self) -> bool:
        """Whether the kernel holds bytes from this client."""

    def evict(self) -> None:
        """It serves nobody any more, and closes."""

    def abort(self) -> None:
        """It is gone at once, without a word."""


class ConnectionLimiter:
    """Who has which; every connection is in at most one of ``served`` and ``beyond``, the idle ones are served."""

    def __init__(self) -> None:
        self.served: set[Connection] = set()
        self.idle: dict[Connection, None] = {}
        """Connections on which nothing of a request has arrived, and nothing is to be answered; longest first."""
        self.overflow: dict[Connection, None] = {}
        """Connections for which there is no place, and those that only wait to be closed; oldest first."""

    def acquire(self, connection: Connection, max_served: int) -> bool:
        """Whether the connection is, or has now become, one of the ``most`` that are served."""
        if connection in self.served:
            return True
        if len(self.served) >= max_served and not self._evict_idle(connection, max_served):
            return False
        self.overflow.pop(connection, None)
        self.served.add(connection)
        return True

    def mark_idle(self, connection: Connection) -> None:
        """A served connection is idle from now on; one that is not served is none of those that make room."""
        if connection in self.served:
            self.idle[connection] = None

    def mark_busy(self, connection: Connection) -> None:
        """The connection is not idle."""
        self.idle.pop(connection, None)

    def release(self, connection: Connection) -> None:
        """The connection has no place, not even one beyond."""
        self._remove(connection)
        self.overflow.pop(connection, None)

    def add_overflow(self, connection: Connection, max_served: int) -> None:
        """The connection is open beside those that are served, of which there are ``most`` at most; the oldest go, so
        that a newcomer can always ask for the health."""
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
        """The connection that has been idle longest is closed; False when none is idle.

        One whose next request has arrived, and only this loop has not read it yet, is not idle.
        """
        for candidate in itertools.islice(self.idle, MAX_EVICTION_CHECKS):
            if candidate.has_unread_data():
                continue
            self.overflow.pop(newcomer, None)  # else the oldest there, who must go now, may be the newcomer
            candidate.evict()
            self.add_overflow(candidate, max_served)
            return True
        return False
