"""Send a request to another actor and wait for the reply in a synchronous loop, without missing a heartbeat.

Source: docs/messaging.md rules 5, 6, 8 and 9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

import msgspec
import zmq

from signet_actors.protocol.control import UP, TreeChanged
from signet_actors.protocol.message import MAX_FRAME_BYTES, Failure, Message, Request
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.envelope import MessageFactory, MessageReader, encode_frame
from signet_actors.runtime.messaging.requests import PendingRequest, PendingRequests

R = TypeVar("R")

_CONNECT_WAIT_MS: Final = 1000
_RETRY_MS: Final = 15
_TREE_MS: Final = 100
"""How often the state of the peer is looked at while its reply is awaited."""


class WaitingLoop(Protocol):
    """The loop that waits, as a ref needs it."""

    clock: Clock
    counters: dict[str, int]
    message_factory: MessageFactory
    reader: MessageReader
    tree: TreeChanged

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
        self._decode = decoder.decode
        self._requests: PendingRequests[PendingRequest] = PendingRequests(
            loop.counters, peer=peer, max_items=1, max_bytes=MAX_FRAME_BYTES, resend=True
        )

    def tell(self, message: Message) -> bool:
        """Send a message without a reply; return False when no peer is connected."""
        return self._send(self._loop.message_factory.tell(message))

    def ask(self, request: Request[R], *, timeout_ms: int, trace_id: str | None = None) -> R | Failure:
        """Return the reply, or a Failure: UNAVAILABLE = certainly not applied, OUTCOME_UNKNOWN = sent but not answered.

        The loop's heartbeat continues during the wait. A peer that was restarted receives the same message id again.
        """
        loop, requests = self._loop, self._requests
        message_id = loop.message_factory.next_id()
        now_ns = loop.clock.monotonic_ns()
        pending = PendingRequest(
            message_id, trace_id or message_id, now_ns + timeout_ms * 1_000_000, [encode_frame(request)]
        )
        requests.add(pending, now_ns, _CONNECT_WAIT_MS)
        answer = None
        try:
            answer = self._await_reply(pending)
        finally:
            if answer is None:
                error = requests.expire(pending)
        if answer is not None:
            return answer  # type: ignore[no-any-return]
        # ZeroMQ gives up a connection for good after a failed handshake; one without replies is not worth keeping.
        self._socket.close(0)
        self._socket = self._connect()
        return Failure(error.code, error.detail, retry_after_ms=error.retry_after_ms)

    def _await_reply(self, pending: PendingRequest) -> Any:
        """Return the reply, None if there is none in time."""
        loop, requests = self._loop, self._requests
        while (now_ns := loop.clock.monotonic_ns()) < pending.expires_ns:
            for child in loop.tree.children:
                if child.name == requests.peer and child.state == UP:
                    requests.on_peer_up(child.incarnation)
            self._flush(now_ns)
            longest_ms = _RETRY_MS if pending.queued else _TREE_MS
            loop.wait_for(self._socket, int(max(1, min(longest_ms, (pending.expires_ns - now_ns) // 1_000_000))))
            answer = self._receive(pending)
            if answer is not None:
                return answer
            loop.heartbeat()
        return None

    def _flush(self, now_ns: int) -> None:
        while (request := self._requests.next_unsent()) is not None:
            if not self._send([request.header(self._loop.message_factory), *request.parts]):
                self._requests.on_unreachable(now_ns)
                return
            self._requests.on_sent(request)

    def _send(self, parts: list[bytes]) -> bool:
        try:
            self._socket.send_multipart(parts, zmq.NOBLOCK)
        except zmq.ZMQError:
            return False
        self._loop.counters["sent"] += 1
        return True

    def _receive(self, pending: PendingRequest) -> Any:
        """Return the reply to ``pending`` if it has arrived; replies to older requests are counted and dropped."""
        while True:
            try:
                parts = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return None
            opened = self._loop.reader.read(parts, self._decode, self._requests.peer)
            if opened is None:
                continue
            header, answer = opened
            if self._requests.complete(header.message_id, answer, header.attempt) is pending:
                return answer
