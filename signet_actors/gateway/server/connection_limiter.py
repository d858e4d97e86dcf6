"""Limit of open connections.

Up to the limit, connections are served. For one more, the connection that has been idle longest is closed. If none is
idle, the new connection stays open in ``overflow``: it may send a health probe, or waits a moment until it can be
served. As many connections again may be in ``overflow``.

Source: docs/security.md A12 and A18; docs/reliability.md R13.
"""

from __future__ import annotations

import itertools
from typing import Final, Protocol

MAX_EVICTION_CHECKS: Final = 32
"""Idle connections that are checked for unread data before eviction gives up."""


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
