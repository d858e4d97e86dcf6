"""Requests to one mailbox, limited by credits; each ends with exactly one outcome.

=====================  =====================================================================================
answered               the reply says what happened
``Busy``               not applied: never sent because the credits were used up, or refused by the mailbox
``Unavailable``        not applied: never sent because the peer was not there in time
``OutcomeUnknown``     sent, and no reply by the deadline; the same id may be sent again
=====================  =====================================================================================

While a peer restarts, requests wait for it, at most until ``PEER_WAIT_MS`` after it went away, and keep their credits.
A restarted peer receives its unanswered requests again under the same message id. See DESIGN.md.

Source: docs/messaging.md rules 5-9; docs/reliability.md "HTTP outcomes".
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from signet_actors.errors import Busy, ErrorCode, OutcomeUnknown, Unavailable
from signet_actors.protocol.control import FAILED, STOPPING, UP
from signet_actors.protocol.message import Failure
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.dispatch import current_dispatch
from signet_actors.runtime.messaging.envelope import MessageFactory
from signet_actors.runtime.sync_points import sync_point

MAX_ATTEMPTS = 3
_NOT_APPLIED = frozenset({ErrorCode.BUSY, ErrorCode.UNAVAILABLE, ErrorCode.NOT_APPLIED, ErrorCode.STORAGE_FULL})
PEER_WAIT_MS = 2000
"""Twice the longest time until a crashed writer is replaced (docs/performance.md "Recovery targets")."""
_SHORT_WAIT_MS = 50
"""How long requests wait for a peer that has been away for longer or was given up."""
_RETRY_S = 0.01


class PendingRequest:
    """An unanswered request; ``attempt`` 0 = never sent; ``queued`` = waits to be sent."""

    __slots__ = (
        "attempt",
        "deadline_ns",
        "dispatch",
        "future",
        "message_id",
        "nbytes",
        "parts",
        "queued",
        "sent_to",
        "timer",
        "trace_id",
    )

    def __init__(
        self,
        message_id: str,
        trace_id: str,
        deadline_ns: int,
        parts: list[bytes],
        nbytes: int,
        future: asyncio.Future[Any],
    ) -> None:
        self.message_id = message_id
        self.trace_id = trace_id
        self.deadline_ns = deadline_ns
        self.parts = parts
        self.nbytes = nbytes
        self.future = future
        self.attempt = 0
        self.queued = False
        self.sent_to = 0
        self.timer: asyncio.TimerHandle | None = None
        self.dispatch = current_dispatch()


class RequestTracker:
    """The unanswered requests to ``peer``. ``send(parts)`` passes frames to a socket; False if it takes none."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        message_factory: MessageFactory,
        send: Callable[[list[bytes]], bool],
        counters: dict[str, int],
        *,
        peer: str,
        max_items: int,
        max_bytes: int,
        resend: bool,
    ) -> None:
        self._loop = loop
        self._clock = clock
        self._message_factory = message_factory
        self._send = send
        self._counters = counters
        self.peer = peer
        self._sent_point = f"gateway.sent_to_{peer}"
        self.max_items = max_items
        self.max_bytes = max_bytes
        self._resend = resend
        self._pending: dict[str, PendingRequest] = {}
        self._bytes = 0
        self._incarnation = 0
        self._away_since_ns: int | None = None
        self._given_up = False
        self._unsent: deque[PendingRequest] = deque()
        self._retry: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return len(self._pending)

    def submit(self, trace_id: str, timeout_ms: int, body: bytes, frames: list[bytes]) -> asyncio.Future[Any]:
        """Send a request and return the future of its reply; raises Busy when the credits are used up."""
        nbytes = len(body) + sum(map(len, frames))
        if len(self._pending) >= self.max_items or (self._pending and self._bytes + nbytes > self.max_bytes):
            self._counters["shed"] += 1
            raise Busy(f"too many requests are waiting for the {self.peer}", retry_after_ms=1000)
        now = self._clock.monotonic_ns()
        request = PendingRequest(
            self._message_factory.next_id(),
            trace_id,
            now + timeout_ms * 1_000_000,
            [body, *frames],
            nbytes,
            self._loop.create_future(),
        )
        self._pending[request.message_id] = request
        self._bytes += nbytes
        if self._unsent or not self._try_send(request):
            request.queued = True
            self._unsent.append(request)
            request.timer = self._loop.call_later(
                min(timeout_ms, self._peer_wait_ms(now)) / 1000, self._on_deadline, request
            )
            self._retry_soon()
        return request.future

    def on_reply(self, message_id: str, answer: Any, attempt: int) -> None:
        """Deliver the reply to attempt number ``attempt``, or count it as late when no caller waits.

        A refusal of an earlier attempt says nothing about a later one, which may have been applied; the later one's own
        reply is awaited.
        """
        request = self._pending.get(message_id)
        if request is None or (
            attempt < request.attempt and isinstance(answer, Failure) and answer.code in _NOT_APPLIED
        ):
            self._counters["late"] += 1
            return
        self._remove(request)
        if not request.future.done():
            request.future.set_result(answer)

    def on_peer_state(self, state: str, incarnation: int) -> None:
        """Handle a change of the peer's state in the tree."""
        if state == UP:
            self.on_peer_up(incarnation)
        elif state in {FAILED, STOPPING}:
            self.on_peer_given_up()

    def on_peer_up(self, incarnation: int) -> None:
        """Send the unanswered requests again if the peer is a new incarnation."""
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
            if 0 < request.attempt < MAX_ATTEMPTS
            and request.sent_to < incarnation
            and not request.queued
            and not request.future.done()
        ]
        for request in again:
            request.queued = True
        self._unsent.extendleft(reversed(again))
        self._flush()

    def on_peer_given_up(self) -> None:
        """Fail unsent requests soon: the peer will not be restarted for now."""
        if self._given_up:
            return
        self._given_up = True
        for request in list(self._unsent):
            if request.attempt == 0 and request.timer is not None:
                request.timer.cancel()
                request.timer = self._loop.call_later(_SHORT_WAIT_MS / 1000, self._on_deadline, request)

    def close(self) -> None:
        """Fail all requests."""
        if self._retry is not None:
            self._retry.cancel()
        for request in list(self._pending.values()):
            self._on_deadline(request)

    def _try_send(self, request: PendingRequest) -> bool:
        header = self._message_factory.header(
            request.message_id, request.trace_id, request.deadline_ns, request.attempt + 1
        )
        if not self._send([header, *request.parts]):
            if self._away_since_ns is None:
                self._away_since_ns = self._clock.monotonic_ns()
            return False
        self._away_since_ns = None
        request.attempt += 1
        request.sent_to = self._incarnation
        if request.dispatch is not None:
            request.dispatch.sent = True
        if request.attempt == 1:
            if request.timer is not None:
                request.timer.cancel()
            left = max(0, request.deadline_ns - self._clock.monotonic_ns())
            request.timer = self._loop.call_later(left / 1e9, self._on_deadline, request)
        else:
            self._counters["resent"] += 1
        sync_point(self._sent_point)
        return True

    def _flush(self) -> None:
        self._retry = None
        while self._unsent:
            request = self._unsent[0]
            if (
                request.message_id in self._pending
                and not (request.future.done() and request.attempt == 0)
                and not self._try_send(request)
            ):
                self._retry_soon()
                return
            self._unsent.popleft()
            request.queued = False
            if request.attempt == 0:
                self._remove(request)  # cancelled before it was ever sent

    def _peer_wait_ms(self, now_ns: int) -> int:
        """Return how long a new request may wait for a peer that is away."""
        if self._given_up:
            return _SHORT_WAIT_MS
        away_ns = 0 if self._away_since_ns is None else now_ns - self._away_since_ns
        return max(_SHORT_WAIT_MS, PEER_WAIT_MS - away_ns // 1_000_000)

    def _retry_soon(self) -> None:
        if self._retry is None:
            self._retry = self._loop.call_later(_RETRY_S, self._flush)

    def _remove(self, request: PendingRequest) -> None:
        if self._pending.pop(request.message_id, None) is not None:
            self._bytes -= request.nbytes
        if request.timer is not None:
            request.timer.cancel()
            request.timer = None

    def _on_deadline(self, request: PendingRequest) -> None:
        self._remove(request)
        self._counters["expired"] += 1
        if request.future.done():
            return
        if request.attempt == 0:
            request.future.set_exception(Unavailable(f"the {self.peer} is restarting; nothing was applied"))
        else:
            request.future.set_exception(OutcomeUnknown())
