"""Requests in flight to one mailbox: credits, attempts, deadlines, outcomes. No socket, event loop or clock is in here.

The blocking side (``blocking.py``) and the asyncio side (``async_client.py``) send what ``next_unsent`` returns, and
call ``expire`` when a request's ``expires_ns`` has passed. A request ends with its reply; with ``Busy`` (no credits, or
refused by the mailbox) or ``Unavailable`` (never sent), and was not applied; or with ``OutcomeUnknown``: sent, and no
reply by the deadline, so the same id may be sent again.

Source: docs/messaging.md rules 5-9; docs/reliability.md "HTTP outcomes".
"""

from __future__ import annotations

from collections import deque
from contextvars import ContextVar
from typing import Any, Final, Generic, TypeVar

from signet_actors.errors import Busy, ErrorCode, OutcomeUnknown, SignetError, Unavailable
from signet_actors.protocol.message import Failure
from signet_actors.runtime.messaging.envelope import MessageFactory

MAX_ATTEMPTS: Final = 3
PEER_WAIT_MS: Final = 2000
"""How long requests wait for a restarting peer, counted from when it went away: twice the longest time until a crashed
writer is replaced (docs/performance.md "Recovery targets").
"""
SHORT_WAIT_MS: Final = 50
"""How long requests wait for a peer that has been away for longer or was given up."""
_NOT_APPLIED: Final = frozenset({ErrorCode.BUSY, ErrorCode.UNAVAILABLE, ErrorCode.NOT_APPLIED, ErrorCode.STORAGE_FULL})


class Dispatch:
    """The progress of one HTTP request; ``sent`` is True once it may have taken effect.

    A request that times out before that was certainly not applied (503); afterwards its outcome is unknown (504).
    """

    __slots__ = ("sent",)

    def __init__(self) -> None:
        self.sent = False


_current: ContextVar[Dispatch | None] = ContextVar("dispatch", default=None)


def track_dispatch() -> Dispatch:
    """Start a record for the request of this task and of the tasks that it starts; return it."""
    dispatch = Dispatch()
    _current.set(dispatch)
    return dispatch


def current_dispatch() -> Dispatch | None:
    return _current.get()


def mark_sent() -> None:
    """Note that the request of this task may take effect from here on."""
    dispatch = _current.get()
    if dispatch is not None:
        dispatch.sent = True


class PendingRequest:
    """A request without an answer; ``attempt`` 0: never sent. It ends at ``expires_ns`` or at its deadline."""

    __slots__ = (
        "attempt",
        "deadline_ns",
        "dispatch",
        "expires_ns",
        "message_id",
        "nbytes",
        "parts",
        "queued",
        "trace_id",
    )

    def __init__(self, message_id: str, trace_id: str, deadline_ns: int, parts: list[bytes]) -> None:
        self.message_id = message_id
        self.trace_id = trace_id
        self.deadline_ns = self.expires_ns = deadline_ns
        self.parts = parts
        self.nbytes = sum(map(len, parts))
        self.attempt = 0
        self.queued = False
        self.dispatch = _current.get()

    @property
    def abandoned(self) -> bool:
        """True if no caller waits any more. A request that was sent keeps its credit all the same."""
        return False

    def header(self, message_factory: MessageFactory) -> bytes:
        """Return the header of the next attempt. Every attempt has the same message id."""
        return message_factory.header(self.message_id, self.trace_id, self.deadline_ns, self.attempt + 1)


RequestT = TypeVar("RequestT", bound=PendingRequest)


class PendingRequests(Generic[RequestT]):
    """The unanswered requests to ``peer``, at most ``max_items`` of ``max_bytes`` together.

    While the peer restarts, requests wait for it and keep their credits. With ``resend`` a restarted peer receives its
    unanswered requests again, under the same message id.
    """

    def __init__(self, counters: dict[str, int], *, peer: str, max_items: int, max_bytes: int, resend: bool) -> None:
        self.peer = peer
        self.max_items = max_items
        self.max_bytes = max_bytes
        self._counters = counters
        self._resend = resend
        self._pending: dict[str, RequestT] = {}
        self._bytes = 0
        self._unsent: deque[RequestT] = deque()
        self._incarnation = 0
        self._away_since_ns: int | None = None
        self._given_up = False

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, request: RequestT, now_ns: int, wait_ms: int | None = None) -> None:
        """Take a credit and queue the request for ``wait_ms``, by default as the peer's absence allows; raises Busy."""
        if len(self._pending) >= self.max_items or (self._pending and self._bytes + request.nbytes > self.max_bytes):
            self._counters["shed"] += 1
            raise Busy(f"too many requests are waiting for the {self.peer}", retry_after_ms=1000)
        wait_ms = self._peer_wait_ms(now_ns) if wait_ms is None else wait_ms
        request.expires_ns = min(request.deadline_ns, now_ns + wait_ms * 1_000_000)
        self._pending[request.message_id] = request
        self._bytes += request.nbytes
        request.queued = True
        self._unsent.append(request)

    def next_unsent(self) -> RequestT | None:
        """Return the request to send next; None if there is none."""
        while self._unsent:
            request = self._unsent[0]
            if request.message_id not in self._pending:
                self._dequeue()
            elif request.attempt == 0 and request.abandoned:
                self._dequeue()
                self._remove(request)  # cancelled before it was ever sent
            else:
                return request
        return None

    def on_sent(self, request: RequestT) -> None:
        """Note that a socket has taken ``request``, the one that ``next_unsent`` returned."""
        self._dequeue()
        self._away_since_ns = None
        request.attempt += 1
        request.expires_ns = request.deadline_ns
        if request.dispatch is not None:
            request.dispatch.sent = True
        if request.attempt > 1:
            self._counters["resent"] += 1

    def on_unreachable(self, now_ns: int) -> None:
        """Note that no socket took the next request: the peer is away."""
        if self._away_since_ns is None:
            self._away_since_ns = now_ns

    def complete(self, message_id: str, answer: Any, attempt: int) -> RequestT | None:
        """Return the request that ``answer``, the reply to attempt number ``attempt``, ends; else count it as late.

        A refusal of an earlier attempt says nothing about a later one, which may have been applied; the later one's own
        reply is awaited.
        """
        request = self._pending.get(message_id)
        if request is None or (attempt < request.attempt and type(answer) is Failure and answer.code in _NOT_APPLIED):
            self._counters["late"] += 1
            return None
        self._remove(request)
        return request

    def on_peer_up(self, incarnation: int) -> None:
        """Queue the unanswered requests again if the peer is a new incarnation."""
        self._given_up = False
        if incarnation <= self._incarnation:
            return
        self._incarnation = incarnation
        self._away_since_ns = None
        if not self._resend:
            return
        again = [
            request
            for request in self._pending.values()
            if 0 < request.attempt < MAX_ATTEMPTS and not request.queued and not request.abandoned
        ]
        for request in again:
            request.queued = True
        self._unsent.extendleft(reversed(again))

    def on_peer_given_up(self, now_ns: int) -> list[RequestT]:
        """Let unsent requests expire soon, and return them: the peer will not be restarted for now."""
        if self._given_up:
            return []
        self._given_up = True
        unsent = [request for request in self._unsent if request.attempt == 0]
        for request in unsent:
            request.expires_ns = min(request.expires_ns, now_ns + SHORT_WAIT_MS * 1_000_000)
        return unsent

    def expire(self, request: RequestT) -> SignetError:
        """Give the request up, and return its outcome."""
        self._remove(request)
        self._counters["expired"] += 1
        if request.attempt == 0:
            return Unavailable(f"the {self.peer} is restarting; nothing was applied")
        return OutcomeUnknown()

    def _peer_wait_ms(self, now_ns: int) -> int:
        """Return how long a new request may wait for a peer that is away."""
        if self._given_up:
            return SHORT_WAIT_MS
        away_ns = 0 if self._away_since_ns is None else now_ns - self._away_since_ns
        return max(SHORT_WAIT_MS, PEER_WAIT_MS - away_ns // 1_000_000)

    def _dequeue(self) -> None:
        self._unsent.popleft().queued = False

    def _remove(self, request: RequestT) -> None:
        if self._pending.pop(request.message_id, None) is not None:
            self._bytes -= request.nbytes
