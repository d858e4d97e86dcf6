"""A bounded mailbox: each message is accepted or refused at once, never dropped silently.

``MailboxRules`` decides what becomes of a message, without a socket or a loop. ``Mailbox`` reads the socket of a
blocking actor into batches; ``async_actor.AsyncMailbox`` passes each message to an asyncio actor.

Source: docs/messaging.md rules 6, 7, 9, 19 and 20; docs/reliability.md "The writer's loop"; docs/performance.md "Write
targets" (``Linger``: rows per commit grow with load; one client's p50).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import msgspec
import zmq

from signet_actors.errors import ErrorCode
from signet_actors.protocol.header import Header
from signet_actors.protocol.message import MAX_FRAME_BYTES, REPLY_TOO_LONG, Failure
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.logging.throttle import LogThrottle
from signet_actors.runtime.messaging.envelope import PING, UNDECODABLE, MessageFactory, decode_header, is_tell

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

M = TypeVar("M")

_EVENTS: Final = int(zmq.EVENTS)
_POLLIN: Final = int(zmq.POLLIN)

_REFUSALS_PER_BATCH: Final = 1024
"""Messages beyond the bound that are refused before the batch is handled; more stay in the socket."""
_TOO_LONG: Final = Failure(ErrorCode.PAYLOAD_TOO_LARGE, REPLY_TOO_LONG)
_RETRY_MIN_MS: Final = 20
_RETRY_MAX_MS: Final = 2000

POLL_INTERVAL_NS: Final = 200_000
"""Time between two checks of the mailbox; a sleeping process leaves its core to the senders."""
NS_PER_REQUEST: Final = 500_000
"""Maximum linger per expected request: about what a request costs its sender."""
LONGEST_NS: Final = 1_500_000


class Linger:
    """How long a batch of one mailbox waits for more messages; more than ``limit`` requests are not worth waiting for.

    Work with a cost per batch (a commit) gets cheaper with more messages in it, but only when several senders wait. So
    a batch lingers only while recent batches held more than one request: a single sender never waits, and after a burst
    at most one batch lingers in vain. Lingering ends early when as many requests have arrived as recently, because
    senders that wait for their replies send no more.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._last = 1
        self._before = 1

    @property
    def expected(self) -> int:
        """The number of requests to wait for: the larger of the last two batches."""
        return min(self._limit, max(self._last, self._before))

    def wait_ns(self, count: int, waited_ns: int) -> int:
        """Return how long to sleep before checking again; 0 = handle the ``count`` requests that have arrived now."""
        expected = self.expected
        if expected <= 1 or count >= expected:
            return 0
        left = min(LONGEST_NS, expected * NS_PER_REQUEST) - waited_ns
        return max(0, min(POLL_INTERVAL_NS, left))

    def on_batch(self, count: int) -> None:
        """Record the size of a batch that is handled now."""
        self._before, self._last = self._last, count


class Incoming(Generic[M]):
    """A received message that is to be answered, unless it is a tell.

    ``received_ns`` is on the monotonic clock; ``nbytes`` is the size of all frames; ``answered`` becomes True with the
    first ``reply``.
    """

    __slots__ = ("_identity", "_mailbox", "answered", "body", "frames", "header", "nbytes", "received_ns")

    def __init__(
        self,
        mailbox: MailboxRules[M],
        identity: bytes | None,
        header: Header,
        body: M,
        frames: list[bytes],
        received_ns: int,
        nbytes: int,
    ) -> None:
        self._mailbox = mailbox
        self._identity = identity
        self.header = header
        self.body = body
        self.frames = frames
        self.received_ns = received_ns
        self.nbytes = nbytes
        self.answered = is_tell(header)

    def reply(self, body: msgspec.Struct, frames: Sequence[bytes] = ()) -> None:
        """Send the reply without blocking; count it if it cannot be delivered. Only the first reply is sent."""
        if self.answered:
            if not is_tell(self.header):
                self._mailbox.counters["duplicate"] += 1
            return
        self.answered = True
        self._mailbox.answer(self._identity, self.header, body, frames)

    def expired(self, now_ns: int) -> bool:
        """Return whether the sender has stopped waiting."""
        return 0 < self.header.deadline_ns <= now_ns


class MailboxRules(Generic[M]):
    """Decide what becomes of each received message. ``send`` passes frames to a socket; False if it takes none.

    Accepted messages count against ``max_items`` and ``max_bytes`` until they are released; one more is refused.
    """

    def __init__(
        self,
        decoder: msgspec.msgpack.Decoder[M],
        message_factory: MessageFactory,
        clock: Clock,
        log: FilteringBoundLogger,
        counters: dict[str, int],
        send: Callable[[list[bytes]], bool],
        *,
        max_items: int,
        max_bytes: int,
    ) -> None:
        self.counters = counters
        self._decode = decoder.decode
        self._message_factory = message_factory
        self._clock = clock
        self._warnings = LogThrottle(log, clock)
        self._send_frames = send
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._items = 0
        self._bytes = 0
        self._batch_ms = 0

    def note_duration(self, duration_ns: int) -> None:
        """Record how long the last batch took; it determines ``retry_after_ms``."""
        self._batch_ms = duration_ns // 1_000_000

    @property
    def retry_after_ms(self) -> int:
        """When a refused sender may try again: about the duration of the batch ahead of it."""
        return max(_RETRY_MIN_MS, min(_RETRY_MAX_MS, 2 * self._batch_ms))

    def accept(self, identity: bytes | None, parts: list[bytes]) -> Incoming[M] | None:
        """Return the message to handle; None if it was answered here: foreign, undecodable, expired, or too much."""
        self.counters["received"] += 1
        incoming = self._open(identity, parts)
        if incoming is None:
            return None
        if incoming.expired(incoming.received_ns):
            self.counters["expired"] += 1
            self._reject(incoming, ErrorCode.NOT_APPLIED, "the deadline passed before the request was started")
            return None
        if self._items >= self._max_items or (self._items and self._bytes + incoming.nbytes > self._max_bytes):
            self.counters["shed"] += 1
            self._reject(incoming, ErrorCode.BUSY, "the mailbox is full")
            return None
        self._items += 1
        self._bytes += incoming.nbytes
        return incoming

    def release(self, incoming: Incoming[M]) -> None:
        """Free the slot of a message that was handled."""
        self._items -= 1
        self._bytes -= incoming.nbytes

    def answer(self, identity: bytes | None, asked: Header, body: msgspec.Struct, frames: Sequence[bytes] = ()) -> None:
        """Hand the reply to the socket without waiting; count it when the sender has disconnected.

        A reply that is too long for the bus is replaced by a failure: it would not arrive, and the sender would wait in
        vain.
        """
        parts = self._message_factory.answer(asked, body, frames)
        longest = max(map(len, parts))
        if longest > MAX_FRAME_BYTES:
            self._warnings.warning("reply_too_long", to=asked.sender, answer=type(body).__name__, nbytes=longest)
            parts = self._message_factory.answer(asked, _TOO_LONG)
        self._send(identity, parts)

    def _reject(self, incoming: Incoming[M], code: ErrorCode, detail: str) -> None:
        """Answer a message that was never handled; if it was sent before, its outcome is unknown all the same."""
        if incoming.header.attempt > 1:
            failure = Failure(ErrorCode.OUTCOME_UNKNOWN, f"{detail}; an earlier attempt may have been applied")
        else:
            failure = Failure(code, detail, retry_after_ms=self.retry_after_ms if code is ErrorCode.BUSY else None)
        incoming.reply(failure)

    def _open(self, identity: bytes | None, parts: list[bytes]) -> Incoming[M] | None:
        header = None
        try:
            header = decode_header(parts[0])
            if self._message_factory.is_foreign(header):
                self.counters["foreign"] += 1
                self._warnings.warning("foreign_message_refused", sender=header.sender, proto=header.proto)
                detail = "this message is from another protocol version or another run of the daemon"
                self._refuse(identity, header, ErrorCode.UNAVAILABLE, detail)
                return None
            if parts[1] == PING:
                self._send(identity, [self._message_factory.header(header.message_id, "", 0), PING])
                return None
            body = self._decode(parts[1])
        except (*UNDECODABLE, IndexError) as error:
            self.counters["decode_error"] += 1
            self._warnings.warning(
                "message_unreadable",
                sender=header.sender if header else None,
                error=type(error).__name__,
                sizes=[len(part) for part in parts[:8]],
            )
            self._refuse(identity, header, ErrorCode.INVALID_REQUEST, "the message could not be decoded")
            return None
        nbytes = sum(map(len, parts))
        return Incoming(self, identity, header, body, parts[2:], self._clock.monotonic_ns(), nbytes)

    def _refuse(self, identity: bytes | None, header: Header | None, code: ErrorCode, detail: str) -> None:
        asked = header or Header("", "", "", 0, 0, 1, self._message_factory.boot_id)
        if not is_tell(asked):
            self.answer(identity, asked, Failure(code, detail), ())

    def _send(self, identity: bytes | None, parts: list[bytes]) -> None:
        if identity is not None:
            parts.insert(0, identity)
        self.counters["sent" if self._send_frames(parts) else "unroutable"] += 1


class Mailbox(MailboxRules[M]):
    """Reads a socket into batches; a batch is released when the next one is taken.

    ``routed`` means a ROUTER socket, whose messages begin with the sender's identity. With ``linger`` a batch may wait
    a moment for more messages.
    """

    def __init__(
        self,
        socket: zmq.Socket[bytes],
        decoder: msgspec.msgpack.Decoder[M],
        message_factory: MessageFactory,
        clock: Clock,
        log: FilteringBoundLogger,
        counters: dict[str, int],
        *,
        max_items: int,
        max_bytes: int,
        routed: bool = True,
        linger: Linger | None = None,
    ) -> None:
        super().__init__(
            decoder,
            message_factory,
            clock,
            log,
            counters,
            self._pass_to_socket,
            max_items=max_items,
            max_bytes=max_bytes,
        )
        self.socket = socket
        self._routed = routed
        self._linger = linger
        self._sleep = time.sleep

    def take(self, limit: int | None = None) -> list[Incoming[M]]:
        """Return the waiting messages, up to the bound or ``limit``; answer excess, expired and bad ones."""
        self._items = self._bytes = 0
        batch: list[Incoming[M]] = []
        self._read(batch, limit)
        if batch and self._linger is not None:
            self._gather(batch, self._linger)
        return batch

    def _gather(self, batch: list[Incoming[M]], linger: Linger) -> None:
        began_ns = self._clock.monotonic_ns()
        while len(batch) < self._max_items:
            # No sender waits for tells and for messages that are answered already.
            asks = sum(not incoming.answered for incoming in batch)
            wait_ns = linger.wait_ns(asks, self._clock.monotonic_ns() - began_ns)
            if not wait_ns:
                break
            self._sleep(wait_ns / 1e9)
            self._read(batch)
        linger.on_batch(sum(not incoming.answered for incoming in batch))

    def _read(self, batch: list[Incoming[M]], limit: int | None = None) -> None:
        refused = 0
        while refused < _REFUSALS_PER_BATCH and (limit is None or len(batch) < limit):
            try:
                parts = self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            incoming = self.accept(parts.pop(0) if self._routed else None, parts)
            if incoming is None:
                refused += 1
            else:
                batch.append(incoming)

    def _pass_to_socket(self, parts: list[bytes]) -> bool:
        try:
            self.socket.send_multipart(parts, zmq.NOBLOCK)
        except zmq.ZMQError:  # EHOSTUNREACH: the sender has disconnected; EAGAIN: it reads nothing
            return False
        return True


def has_message(socket: zmq.Socket[bytes]) -> bool:
    """Return whether a message can be read from ``socket``. Costs less than the exception of a failed read."""
    events = socket.get(_EVENTS)
    assert isinstance(events, int)
    return bool(events & _POLLIN)
