"""The asyncio side of requests to one mailbox: ``RequestTracker`` has the requests, ``PeerLink`` the connection.

``AsyncSocket`` is read without ``zmq.asyncio`` when its descriptor signals: no task, poll or timer per message. The
descriptor is edge-triggered: it signals once per *change*, and any call on the socket may consume the signal. So the
socket's state is checked again after every send and after every burst, and no message is left unread.

Source: docs/messaging.md rules 1-12 and 18.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import zmq

from signet_actors.protocol.control import FAILED, STOPPING, UP
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.envelope import PING, MessageFactory
from signet_actors.runtime.messaging.requests import PendingRequest, PendingRequests
from signet_actors.runtime.sync_points import sync_point

_POLLIN = int(zmq.POLLIN)  # plain integers: an operation on enum members costs a microsecond each
_EVENTS = int(zmq.EVENTS)
_RCVMORE = int(zmq.RCVMORE)
_NOBLOCK = int(zmq.NOBLOCK)
_NOBLOCK_MORE = int(zmq.NOBLOCK) | int(zmq.SNDMORE)
BURST: Final = 16
"""Messages read in one go before other callbacks of the loop run: each wakes a request for some 0.2 ms."""
_RETRY_S: Final = 0.01
_S: Final = 1_000_000_000
_PROBE_AFTER_NS: Final = _S * 9 // 10
"""Every second heartbeat at the default interval: a probe wakes two processes that may be idle."""
_REOPEN_UNCONNECTED_NS: Final = 1 * _S
_REOPEN_SILENT_NS: Final = 12 * _S
"""Longer than the writer may work on a batch: messages queued in a connection are lost when it is closed."""
UNCONNECTED_NS: Final = 2 * _S
SILENT_NS: Final = 6 * _S
"""From then on the peer counts as not answering. Longer than it may wait for another program's lock."""


class AsyncSocket:
    """Calls ``receive`` for each message, and ``failed`` with an exception from it; ``send`` never waits."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        socket: zmq.Socket[bytes],
        receive: Callable[[list[bytes]], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._loop = loop
        self._socket: Any = socket  # its ``get`` is typed for every option at once
        self._receive = receive
        self._failed = failed
        self._descriptor = int(self._socket.get(zmq.FD))
        self._scheduled = False
        self._open = self._reading = True
        loop.add_reader(self._descriptor, self._drain)
        self._schedule_drain()

    @property
    def is_open(self) -> bool:
        return self._open

    def send(self, parts: Sequence[bytes]) -> bool:
        """Send the frames; return False when no peer is connected or the peer reads nothing."""
        if not self._open:
            return False
        socket = self._socket
        last = len(parts) - 1
        try:  # only the first part can be refused: messages are accepted whole or not at all
            for part in parts[:last]:
                socket.send(part, _NOBLOCK_MORE)
            socket.send(parts[last], _NOBLOCK)
        except zmq.ZMQError:
            return False
        finally:
            if self._reading and not self._scheduled and socket.get(_EVENTS) & _POLLIN:
                self._schedule_drain()  # the send may have swallowed the descriptor's only signal
        return True

    def stop_reading(self) -> None:
        """Stop receiving; what is being handled may still be answered."""
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._descriptor)

    def close(self) -> None:
        """Stop receiving and sending; the context closes the socket itself."""
        self._open = False
        self.stop_reading()

    def discard(self) -> None:
        """Close the socket itself and drop what it still holds."""
        self.close()
        self._socket.close(0)

    def _schedule_drain(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._drain)

    def _drain(self) -> None:
        self._scheduled = False
        socket = self._socket
        left = BURST
        while self._reading and socket.get(_EVENTS) & _POLLIN:
            if not left:
                self._schedule_drain()
                return
            left -= 1
            parts = [socket.recv(_NOBLOCK)]
            while socket.get(_RCVMORE):
                parts.append(socket.recv(_NOBLOCK))
            try:
                self._receive(parts)
            except Exception as error:  # noqa: BLE001 - read on: the descriptor may not signal again
                self._failed(error)


class FutureRequest(PendingRequest):
    """A request whose reply, or failure, is delivered to ``future``."""

    __slots__ = ("future", "timer")

    def __init__(
        self, message_id: str, trace_id: str, deadline_ns: int, parts: list[bytes], future: asyncio.Future[Any]
    ) -> None:
        super().__init__(message_id, trace_id, deadline_ns, parts)
        self.future = future
        self.timer: asyncio.TimerHandle | None = None

    @property
    def abandoned(self) -> bool:
        return self.future.done()

    def deliver(self, answer: Any) -> None:
        """End the request with its reply, unless the caller was cancelled."""
        self.cancel_timer()
        if not self.future.done():
            self.future.set_result(answer)

    def fail(self, error: Exception) -> None:
        """End the request with ``error``, unless the caller was cancelled."""
        self.cancel_timer()
        if not self.future.done():
            self.future.set_exception(error)

    def cancel_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


class RequestTracker(PendingRequests[FutureRequest]):
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
        super().__init__(counters, peer=peer, max_items=max_items, max_bytes=max_bytes, resend=resend)
        self._loop = loop
        self._clock = clock
        self._message_factory = message_factory
        self._send = send
        self._sent_point = f"gateway.sent_to_{peer}"
        self._retry: asyncio.TimerHandle | None = None

    def submit(self, trace_id: str, timeout_ms: int, body: bytes, frames: list[bytes]) -> asyncio.Future[Any]:
        """Send a request and return the future of its reply; raises Busy when the credits are used up."""
        now_ns = self._clock.monotonic_ns()
        future = self._loop.create_future()
        request = FutureRequest(
            self._message_factory.next_id(), trace_id, now_ns + timeout_ms * 1_000_000, [body, *frames], future
        )
        self.add(request, now_ns)
        if self._retry is None:
            self._flush()
        self._start_timer(request, now_ns)
        return future

    def on_reply(self, message_id: str, answer: Any, attempt: int) -> None:
        """Deliver the reply to attempt number ``attempt``, or count it as late."""
        request = self.complete(message_id, answer, attempt)
        if request is not None:
            request.deliver(answer)

    def on_peer_state(self, state: str, incarnation: int) -> None:
        """Handle a change of the peer's state in the tree."""
        if state == UP:
            self.on_peer_up(incarnation)
        elif state in {FAILED, STOPPING}:
            now_ns = self._clock.monotonic_ns()
            for request in self.on_peer_given_up(now_ns):
                self._start_timer(request, now_ns)

    def on_peer_up(self, incarnation: int) -> None:
        """Send the unanswered requests again if the peer is a new incarnation."""
        super().on_peer_up(incarnation)
        self._flush()

    def close(self) -> None:
        """Fail all requests."""
        if self._retry is not None:
            self._retry.cancel()
        for request in list(self._pending.values()):
            request.fail(self.expire(request))

    def _flush(self) -> None:
        """Send what was not sent yet; try again soon while no socket takes it."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        while (request := self.next_unsent()) is not None:
            if not self._send([request.header(self._message_factory), *request.parts]):
                self.on_unreachable(self._clock.monotonic_ns())
                self._retry = self._loop.call_later(_RETRY_S, self._flush)
                return
            self.on_sent(request)
            if request.attempt == 1 and request.timer is not None:
                self._start_timer(request, self._clock.monotonic_ns())  # it waited, and has until its deadline now
            sync_point(self._sent_point)

    def _start_timer(self, request: FutureRequest, now_ns: int) -> None:
        request.cancel_timer()
        left_ns = max(0, request.expires_ns - now_ns)
        request.timer = self._loop.call_later(left_ns / 1e9, self._on_deadline, request)

    def _on_deadline(self, request: FutureRequest) -> None:
        if request.message_id in self._pending:  # else its caller went before it was sent
            request.fail(self.expire(request))


class PeerLink:
    """The connection to one peer: detects that nothing answers, and connects again.

    ZeroMQ gives up a connection for good when its handshake meets an unknown process. A connection whose peer answers
    no probe for longer than any batch may take is of no use either. Both are closed and opened again.

    Only probes are expected to be answered soon: some messages have no reply, and some requests wait for half a minute.
    With ``probe`` a probe is sent when there is no other traffic.
    """

    def __init__(
        self, clock: Clock, message_factory: MessageFactory, connect: Callable[[], AsyncSocket], *, probe: bool
    ) -> None:
        self._clock = clock
        self._message_factory = message_factory
        self._connect = connect
        self._probe = probe
        self._socket = connect()
        self._opened_ns = self._last_message_ns = clock.monotonic_ns()
        self._probe_is_out = False
        self._unconnected_since_ns: int | None = None
        self._unanswered_since_ns: int | None = None
        """When the first probe that is still unanswered was sent."""

    def send(self, parts: list[bytes]) -> bool:
        """Send the frames; return False when the peer is not connected or reads nothing."""
        if self._socket.send(parts):
            self._unconnected_since_ns = None
            return True
        if self._unconnected_since_ns is None:
            self._unconnected_since_ns = self._clock.monotonic_ns()
        return False

    def on_message(self) -> None:
        """Note that the peer has sent something."""
        self._last_message_ns = self._clock.monotonic_ns()
        self._unanswered_since_ns = None
        self._probe_is_out = False

    def check(self, *, is_up: bool) -> None:
        """Probe and reconnect as needed; called with each heartbeat. Nothing is expected of a peer that is not up."""
        now_ns = self._clock.monotonic_ns()
        if not is_up:
            self._unconnected_since_ns = self._unanswered_since_ns = None
            self._probe_is_out = False
            return
        if self._probe and not self._probe_is_out and now_ns - self._last_message_ns >= _PROBE_AFTER_NS:
            self._send_probe(now_ns)
        unconnected = self._exceeds(self._unconnected_since_ns, _REOPEN_UNCONNECTED_NS, now_ns)
        silent = self._exceeds(self._unanswered_since_ns, _REOPEN_SILENT_NS, now_ns)
        if (unconnected and now_ns - self._opened_ns > _REOPEN_UNCONNECTED_NS) or (
            silent and now_ns - self._opened_ns > _REOPEN_SILENT_NS
        ):
            self._socket.discard()
            self._socket = self._connect()
            self._opened_ns = now_ns
            self._probe_is_out = False
            if not self._probe:
                self._unconnected_since_ns = None  # set again by the next failed send

    def problem(self) -> str | None:
        """Return why the peer counts as not answering, None while it answers or no probe was sent."""
        now_ns = self._clock.monotonic_ns()
        if self._exceeds(self._unconnected_since_ns, UNCONNECTED_NS, now_ns):
            return "cannot be reached: no process of this daemon responds at its socket"
        if self._exceeds(self._unanswered_since_ns, SILENT_NS, now_ns):
            return f"has not responded for {(now_ns - self._last_message_ns) // _S} s"
        return None

    def _send_probe(self, now_ns: int) -> None:
        self._probe_is_out = self.send([self._message_factory.header(self._message_factory.next_id(), "", 0), PING])
        if self._probe_is_out and self._unanswered_since_ns is None:
            self._unanswered_since_ns = now_ns

    @staticmethod
    def _exceeds(since_ns: int | None, longer_than_ns: int, now_ns: int) -> bool:
        return since_ns is not None and now_ns - since_ns > longer_than_ns
