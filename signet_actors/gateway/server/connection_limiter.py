"""The places that connections have: those that are served, those of them that are idle, and those beyond.

As many as are allowed are served. For one more, the one that has been idle longest makes room. Where none is idle, the
newcomer stays open beside them: it may ask for the health, or waits for a place; as many again may be open so.

Source: docs/security.md A12 and A18; docs/reliability.md R13.
"""

from __future__ import annotations

import itertools
from typing import Final, Protocol

EVICTION_LOOKS: Final = 32
"""So many idle connections are looked at for one that makes room; the others have a request that is not read yet."""


class Connection(Protocol):
    """What a place is given to."""

    def has_unread(self) -> bool:
        """Whether the kernel holds bytes from this client."""

    def make_room(self) -> None:
        """It serves nobody any more, and closes."""

    def give_way(self) -> None:
        """It is gone at once, without a word."""


class ConnectionLimiter:
    """Who has which; every connection is in at most one of ``served`` and ``beyond``, the idle ones are served."""

    def __init__(self) -> None:
        self.served: set[Connection] = set()
        self.idle: dict[Connection, None] = {}
        """Connections on which nothing of a request has arrived, and nothing is to be answered; longest first."""
        self.beyond: dict[Connection, None] = {}
        """Connections for which there is no place, and those that only wait to be closed; oldest first."""

    def take(self, connection: Connection, most: int) -> bool:
        """Whether the connection is, or has now become, one of the ``most`` that are served."""
        if connection in self.served:
            return True
        if len(self.served) >= most and not self._another_makes_room(connection, most):
            return False
        self.beyond.pop(connection, None)
        self.served.add(connection)
        return True

    def rest(self, connection: Connection) -> None:
        """A served connection is idle from now on; one that is not served is none of those that make room."""
        if connection in self.served:
            self.idle[connection] = None

    def wake(self, connection: Connection) -> None:
        """The connection is not idle."""
        self.idle.pop(connection, None)

    def leave(self, connection: Connection) -> None:
        """The connection has no place, not even one beyond."""
        self._discount(connection)
        self.beyond.pop(connection, None)

    def go_beyond(self, connection: Connection, most: int) -> None:
        """The connection is open beside those that are served, of which there are ``most`` at most; the oldest go, so
        that a newcomer can always ask for the health."""
        self._discount(connection)
        self.beyond[connection] = None
        if len(self.beyond) > most:
            oldest = next(iter(self.beyond))
            del self.beyond[oldest]
            oldest.give_way()

    def _discount(self, connection: Connection) -> None:
        self.served.discard(connection)
        self.idle.pop(connection, None)

    def _another_makes_room(self, newcomer: Connection, most: int) -> bool:
        """The connection that has been idle longest is closed; False when none is idle.

        One whose next request has arrived, and only this loop has not read it yet, is not idle.
        """
        for longest in itertools.islice(self.idle, EVICTION_LOOKS):
            if longest.has_unread():
                continue
            self.beyond.pop(newcomer, None)  # else the oldest there, who must go now, may be the newcomer
            longest.make_room()
            self.go_beyond(longest, most)
            return True
        return False
