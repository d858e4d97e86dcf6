"""Send a request to another actor and wait for the reply in a synchronous loop, without missing a heartbeat.

Source: docs/messaging.md rules 5, 6, 8 and 9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

import msgspec
import zmq

from signet_actors.errors import ErrorCode
from signet_actors.protocol.control import UP, ChildState, TreeChanged
from signet_actors.protocol.message import Failure, Message, Request
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.logging.throttle import LogThrottle
from signet_actors.runtime.messaging.envelope import UNDECODABLE, MessageFactory, encode_body

R = TypeVar("R")

MAX_ATTEMPTS = 3
_CONNECT_WAIT_MS = 1000
_RETRY_MS = 15


class WaitingLoop(Protocol):
    """The loop that waits, as a ref needs it."""

    clock: Clock
    counters: dict[str, int]
    message_factory: MessageFactory
    tree: TreeChanged
    warnings: LogThrottle

    def wait_for(self, socket: zmq.Socket[bytes], timeout_ms: int) -> None:
        """Wait for a message from ``socket`` or the supervisor, at most ``timeout_ms``."""

    def heartbeat(self) -> None:
        """Send the heartbeat if it is due."""


class BlockingRef:
    """A client of another actor's mailbox; one request at a time."""

    def __init__(
        self,
        loop: WaitingLoop,
        connect: Callable[[], zmq.Socket[bytes]],
        peer: str,
        decoder: msgspec.msgpack.Decoder[Any],
    ) -> None:
        self._loop = loop
        self._connect = connect
        self._socket = connect()
        self._peer = peer
        self._decoder = decoder

    def tell(self, message: Message, *, trace_id: str = "") -> bool:
        """Send a message without a reply; return False when no peer is connected."""
        return self._send(self._loop.message_factory.tell(message, trace_id))

    def ask(self, request: Request[R], *, timeout_ms: int, trace_id: str | None = None) -> R | Failure:
        """Return the reply, or a Failure: UNAVAILABLE = certainly not applied, OUTCOME_UNKNOWN = sent but not answered.

        The loop's heartbeat continues during the wait. A peer that was restarted receives the same message id again.
        """
        loop = self._loop
        message_factory = loop.message_factory
        message_id = message_factory.next_id()
        trace = trace_id or message_id
        body = encode_body(request)
        start = loop.clock.monotonic_ns()
        deadline = start + timeout_ms * 1_000_000
        give_up_unsent = start + min(timeout_ms, _CONNECT_WAIT_MS) * 1_000_000
        attempt = 0
        sent_to = -1
        while True:
            now = loop.clock.monotonic_ns()
            if now >= (give_up_unsent if attempt == 0 else deadline):
                break
            peer = self._peer_state()
            reborn = peer is not None and peer.state == UP and peer.incarnation > sent_to
            if attempt == 0 or (reborn and attempt < MAX_ATTEMPTS):
                header = message_factory.header(message_id, trace, deadline, attempt + 1)
                if self._send([header, body]):
                    attempt += 1
                    if attempt > 1:
                        loop.counters["resent"] += 1
                    sent_to = peer.incarnation if peer is not None else 0
            wait = _RETRY_MS if attempt == 0 else max(1, min(100, (deadline - now) // 1_000_000))
            loop.wait_for(self._socket, int(wait))
            answer = self._receive(message_id)
            if answer is not None:
                return answer  # type: ignore[no-any-return]
            loop.heartbeat()
        # ZeroMQ gives up a connection for good after a failed handshake; one without replies is not worth keeping.
        self._socket.close(0)
        self._socket = self._connect()
        if attempt == 0:
            return Failure(ErrorCode.UNAVAILABLE, f"the {self._peer} is not running", retry_after_ms=1000)
        return Failure(ErrorCode.OUTCOME_UNKNOWN, f"the {self._peer} did not answer in time")

    def _peer_state(self) -> ChildState | None:
        return next((child for child in self._loop.tree.children if child.name == self._peer), None)

    def _send(self, parts: list[bytes]) -> bool:
        try:
            self._socket.send_multipart(parts, zmq.NOBLOCK)
        except zmq.ZMQError:
            return False
        self._loop.counters["sent"] += 1
        return True

    def _receive(self, message_id: str) -> Any:
        """Return the reply to ``message_id`` if it has arrived; count and drop replies to older requests."""
        loop = self._loop
        while True:
            try:
                parts = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return None
            loop.counters["received"] += 1
            try:
                header = loop.message_factory.read_header(parts[0])
                if loop.message_factory.is_foreign(header):
                    loop.counters["foreign"] += 1
                    continue
                if header.message_id != message_id:
                    loop.counters["late"] += 1
                    continue
                return self._decoder.decode(parts[1])
            except (*UNDECODABLE, IndexError) as error:
                loop.counters["decode_error"] += 1
                loop.warnings.warning("reply_unreadable", peer=self._peer, error=type(error).__name__)
