"""Assign each query to an idle searcher, queue a bounded number, and reassign the queries of a crashed searcher.

A searcher holds one query, so that a slow query delays no other; the longest idle searcher comes first. A single
searcher holds up to ``in_flight`` queries, to have its next one at hand. A query that was lost with two searchers
fails: it may be the one that crashes them. One that would wait for more than half of its time is refused at once.

Source: docs/messaging.md rules 7, 9 and 11; docs/reliability.md "Supervision policy";
zguide, Paranoid Pirate (the queue).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from signet_actors.errors import Busy, Unavailable
from signet_actors.protocol.control import FAILED, RESTARTING, TreeChanged
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.async_client import FutureRequest

MAX_ATTEMPTS = 2
_WEIGHT = 0.1
"""Weight of the latest query in the moving average of query durations."""

Answer = tuple[Any, list[bytes]]


class Query(FutureRequest):
    """One query; ``future`` receives the reply and its frames, or an exception."""

    __slots__ = ("searcher", "sent_ns")

    def __init__(
        self,
        message_id: str,
        trace_id: str,
        deadline_ns: int,
        body: bytes,
        frames: list[bytes],
        future: asyncio.Future[Answer],
    ) -> None:
        super().__init__(message_id, trace_id, deadline_ns, [body, *frames], future)
        self.sent_ns = 0
        self.searcher: _Searcher | None = None


class _Searcher:
    """One incarnation of a searcher. ``unresponsive``: it missed the deadline of a query and has been silent since."""

    __slots__ = ("holds", "identity", "incarnation", "name", "unresponsive")

    def __init__(self, identity: bytes, incarnation: int) -> None:
        self.identity = identity
        self.name = identity.decode(errors="replace")
        self.incarnation = incarnation
        self.holds: set[str] = set()
        self.unresponsive = False


class SearcherPool:
    """The pool of the module's description. ``send(identity, query)`` returns whether a socket took the query."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        send: Callable[[bytes, Query], bool],
        counters: dict[str, int],
        *,
        queue_limit: int,
        in_flight: int = 1,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._send = send
        self._counters = counters
        self.queue_limit = queue_limit
        self._in_flight = in_flight
        self._waiting: deque[Query] = deque()
        self._pending: dict[str, Query] = {}
        self._searchers: dict[bytes, _Searcher] = {}
        self._idle: deque[_Searcher] = deque()
        self._exited: dict[str, int] = {}
        self._mean_ns = 0.0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def unanswered(self) -> int:
        return len(self._pending)

    @property
    def known(self) -> int:
        """The number of searchers that have announced themselves and have not exited since."""
        return len(self._searchers)

    @property
    def _queries_each(self) -> int:
        """How many queries a searcher may hold now."""
        return self._in_flight if len(self._searchers) == 1 else 1

    def submit(self, query: Query) -> None:
        """Assign or queue the query; raises Busy when the queue is full or the expected wait too long."""
        left = max(0, query.deadline_ns - self._clock.monotonic_ns())
        wait_ns = len(self._waiting) * self._mean_ns / max(1, len(self._searchers) * self._queries_each)
        if len(self._waiting) >= self.queue_limit or wait_ns > left / 2:
            self._counters["shed"] += 1
            raise Busy("too many queries are waiting", retry_after_ms=1000)
        self._pending[query.message_id] = query
        query.timer = self._loop.call_later(left / 1e9, self._on_deadline, query)
        self._waiting.append(query)
        self._dispatch()

    def on_idle(self, identity: bytes, incarnation: int) -> None:
        """Handle a searcher's offer; a new incarnation means that its predecessor has lost its queries."""
        searcher = self._register(identity, incarnation)
        if searcher is None:
            return
        if searcher.unresponsive:
            searcher.unresponsive = False
            searcher.holds = {held for held in searcher.holds if held in self._pending}
        self._mark_idle(searcher)

    def on_reply(self, identity: bytes, incarnation: int, message_id: str, answer: Answer) -> None:
        """Deliver the reply if a caller still waits, and mark the searcher as idle."""
        query = self._pending.pop(message_id, None)
        if query is None:
            self._counters["late"] += 1
        else:
            took_ns = self._clock.monotonic_ns() - query.sent_ns
            self._mean_ns += _WEIGHT * (took_ns - self._mean_ns)
            query.deliver(answer)
        searcher = self._register(identity, incarnation)
        if searcher is not None:
            searcher.holds.discard(message_id)
            searcher.unresponsive = False
            self._mark_idle(searcher)

    def tree_changed(self, tree: TreeChanged) -> None:
        """Reassign the queries of searchers that have exited."""
        for child in tree.children:
            searcher = self._searchers.get(child.name.encode())
            if searcher is None:
                continue
            if child.incarnation > searcher.incarnation:
                self._drop(searcher)
            elif child.incarnation == searcher.incarnation and child.state in {RESTARTING, FAILED}:
                self._exited[searcher.name] = searcher.incarnation
                self._drop(searcher)
        self._dispatch()

    def close(self) -> None:
        for query in list(self._pending.values()):
            self._fail(query, Unavailable("the gateway is stopping"))

    def _register(self, identity: bytes, incarnation: int) -> _Searcher | None:
        """Return the sender's searcher, registered if it is new; None for an incarnation that has exited."""
        searcher = self._searchers.get(identity)
        if searcher is not None:
            if searcher.incarnation == incarnation:
                return searcher
            if searcher.incarnation > incarnation:
                return None
            self._drop(searcher)
        if self._exited.get(identity.decode(errors="replace"), 0) >= incarnation:
            return None
        searcher = _Searcher(identity, incarnation)
        self._searchers[identity] = searcher
        return searcher

    def _mark_idle(self, searcher: _Searcher) -> None:
        if not searcher.unresponsive and len(searcher.holds) < self._queries_each and searcher not in self._idle:
            self._idle.append(searcher)
        self._dispatch()

    def _dispatch(self) -> None:
        while self._waiting and self._idle:
            query = self._waiting[0]
            if query.abandoned:  # failed or cancelled while it waited
                self._waiting.popleft()
                self._abandon(query)
                continue
            searcher = self._idle.popleft()
            if len(searcher.holds) >= self._queries_each:  # no longer the only searcher
                continue
            query.sent_ns = self._clock.monotonic_ns()
            if not self._send(searcher.identity, query):
                self._drop(searcher)
                continue
            query.attempt += 1
            self._waiting.popleft()
            query.searcher = searcher
            searcher.holds.add(query.message_id)
            if len(searcher.holds) < self._queries_each:
                self._idle.append(searcher)

    def _abandon(self, query: Query) -> None:
        self._pending.pop(query.message_id, None)
        query.cancel_timer()

    def _drop(self, searcher: _Searcher) -> None:
        """Forget an incarnation that has exited, and put its queries at the head of the queue."""
        if self._searchers.get(searcher.identity) is searcher:
            del self._searchers[searcher.identity]
        if searcher in self._idle:
            self._idle.remove(searcher)
        for message_id in searcher.holds:
            query = self._pending.get(message_id)
            if query is None:
                continue
            query.searcher = None
            if query.abandoned:
                self._abandon(query)
            elif query.attempt >= MAX_ATTEMPTS:
                self._fail(query, Unavailable("the searchers that ran this query crashed"))
            else:
                self._counters["resent"] += 1
                self._waiting.appendleft(query)
        searcher.holds = set()

    def _on_deadline(self, query: Query) -> None:
        self._counters["expired"] += 1
        searcher = query.searcher
        if searcher is None:
            self._waiting.remove(query)
            why = "no searcher was free in time" if self._searchers else "no searcher is running"
        else:
            searcher.unresponsive = True
            if searcher in self._idle:
                self._idle.remove(searcher)
            why = "the searcher did not answer in time"
        self._fail(query, Unavailable(why))

    def _fail(self, query: Query, error: Exception) -> None:
        self._pending.pop(query.message_id, None)
        query.fail(error)
