"""A bounded mailbox: waiting messages become one batch; what does not fit is refused, never dropped silently.

Source: docs/messaging.md rules 6, 7, 9, 19 and 20; docs/reliability.md "The writer's loop".
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec
import zmq

from signet_actors.errors import ErrorCode
from signet_actors.protocol.header import Header
from signet_actors.protocol.message import Failure
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.logging.throttle import LogThrottle
from signet_actors.runtime.messaging.envelope import PING, UNDECODABLE, MessageFactory, is_tell
from signet_actors.runtime.messaging.linger import Linger
from signet_actors.runtime.messaging.sockets import MAX_FRAME_BYTES

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

M = TypeVar("M")

_REFUSALS_PER_BATCH = 1024
"""Messages beyond the bound that are refused before the batch is handled; more stay in the socket."""
_TOO_LONG = Failure(
    ErrorCode.PAYLOAD_TOO_LARGE,
    f"the response would be longer than {MAX_FRAME_BYTES} bytes: request fewer items with a smaller limit",
)
_RETRY_MIN_MS = 20
_RETRY_MAX_MS = 2000


class Incoming(Generic[M]):
    """A received message that is to be answered, unless it is a tell.

    ``received_ns`` is on the monotonic clock; ``nbytes`` is the size of all frames; ``answered`` becomes True with the
    first ``reply``.
    """

    __slots__ = ("_identity", "_mailbox", "answered", "body", "frames", "header", "nbytes", "received_ns")

    def __init__(
        self,
        mailbox: Mailbox[M],
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


class Mailbox(Generic[M]):
    """Reads a socket into batches.

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
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.socket = socket
        self.counters = counters
        self._decoder = decoder
        self._message_factory = message_factory
        self._clock = clock
        self._warnings = LogThrottle(log, clock)
        self._max_items = max_items
        self._max_bytes = max_bytes
        self._routed = routed
        self._linger = linger
        self._sleep = sleep
        self._batch_ms = 0

    def note_duration(self, duration_ns: int) -> None:
        """Record how long the last batch took; it determines ``retry_after_ms``."""
        self._batch_ms = duration_ns // 1_000_000

    @property
    def retry_after_ms(self) -> int:
        """When a refused sender may try again: about the duration of the batch ahead of it."""
        return max(_RETRY_MIN_MS, min(_RETRY_MAX_MS, 2 * self._batch_ms))

    def take(self, limit: int | None = None) -> list[Incoming[M]]:
        """Return the waiting messages, up to the bound; answer the excess, expired, foreign and undecodable ones here.

        With ``limit``, at most that many are read; the rest stays in the socket.
        """
        batch: list[Incoming[M]] = []
        total = self._read(batch, 0, limit)
        if batch and self._linger is not None:
            self._gather(batch, total, self._linger)
        return batch

    def _gather(self, batch: list[Incoming[M]], total: int, linger: Linger) -> None:
        began_ns = self._clock.monotonic_ns()
        while len(batch) < self._max_items:
            # No sender waits for tells and for messages that are answered already.
            asks = sum(not incoming.answered for incoming in batch)
            wait_ns = linger.wait_ns(asks, self._clock.monotonic_ns() - began_ns)
            if not wait_ns:
                break
            self._sleep(wait_ns / 1e9)
            total = self._read(batch, total)
        linger.on_batch(sum(not incoming.answered for incoming in batch))

    def _read(self, batch: list[Incoming[M]], total: int, limit: int | None = None) -> int:
        """Append waiting messages to ``batch``, which holds ``total`` bytes; return its new size in bytes."""
        refused = 0
        while refused < _REFUSALS_PER_BATCH and (limit is None or len(batch) < limit):
            try:
                parts = self.socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                break
            self.counters["received"] += 1
            identity = parts.pop(0) if self._routed else None
            incoming = self._open(identity, parts)
            if incoming is None:
                refused += 1
            elif incoming.expired(incoming.received_ns):
                refused += 1
                self.counters["expired"] += 1
                incoming.reply(
                    self._rejection(
                        incoming, ErrorCode.NOT_APPLIED, "the deadline passed before the request was started"
                    )
                )
            elif len(batch) >= self._max_items or (batch and total + incoming.nbytes > self._max_bytes):
                refused += 1
                self.counters["shed"] += 1
                incoming.reply(self._rejection(incoming, ErrorCode.BUSY, "the mailbox is full"))
            else:
                batch.append(incoming)
                total += incoming.nbytes
        return total

    def _rejection(self, incoming: Incoming[M], code: ErrorCode, detail: str) -> Failure:
        """Return the failure for a message that is not handled; ``code`` promises that it never was.

        For a message that was sent before, the outcome is unknown: the earlier one may have been applied.
        """
        if incoming.header.attempt > 1:
            return Failure(ErrorCode.OUTCOME_UNKNOWN, f"{detail}; an earlier attempt may have been applied")
        retry = self.retry_after_ms if code is ErrorCode.BUSY else None
        return Failure(code, detail, retry_after_ms=retry)

    def _open(self, identity: bytes | None, parts: list[bytes]) -> Incoming[M] | None:
        header = None
        try:
            header = self._message_factory.read_header(parts[0])
            if self._message_factory.is_foreign(header):
                self.counters["foreign"] += 1
                self._warnings.warning("foreign_message_refused", sender=header.sender, proto=header.proto)
                detail = "this message is from another protocol version or another run of the daemon"
                self._refuse(identity, header, ErrorCode.UNAVAILABLE, detail)
                return None
            if parts[1] == PING:
                self._send(identity, [self._message_factory.header(header.message_id, "", 0), PING])
                return None
            body = self._decoder.decode(parts[1])
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

    def _send(self, identity: bytes | None, parts: list[bytes]) -> None:
        if identity is not None:
            parts.insert(0, identity)
        try:
            self.socket.send_multipart(parts, zmq.NOBLOCK)
            self.counters["sent"] += 1
        except zmq.ZMQError:  # EHOSTUNREACH: the sender has disconnected; EAGAIN: it reads nothing
            self.counters["unroutable"] += 1
