"""A ZeroMQ socket in an asyncio loop, read when its descriptor signals, without ``zmq.asyncio``; a mailbox on one.

It needs no task, poll or timer per message. The descriptor of a ZeroMQ socket is edge-triggered: it signals once per
*change*, and any call on the socket may consume the signal. So the socket's state is checked again after every send and
after every burst, and no message is left unread.

Source: docs/messaging.md rules 1-12 and 18.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import zmq

from signet_actors.errors import ErrorCode
from signet_actors.protocol.message import Failure
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.envelope import MessageFactory
from signet_actors.runtime.messaging.mailbox import Incoming, MailboxRules

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

M = TypeVar("M")

_POLLIN = int(zmq.POLLIN)  # plain integers: an operation on enum members costs a microsecond each
_EVENTS = int(zmq.EVENTS)
_RCVMORE = int(zmq.RCVMORE)
_NOBLOCK = int(zmq.NOBLOCK)
_NOBLOCK_MORE = int(zmq.NOBLOCK) | int(zmq.SNDMORE)
BURST: Final = 16
"""Messages read in one go before other callbacks of the loop run: each wakes a request for some 0.2 ms."""
_MAX_UNANSWERED_BYTES: Final = 16 * 1024 * 1024


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
        """True until ``close``."""
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


class AsyncMailbox(MailboxRules[M]):
    """Calls ``handle`` with each message from the loop's thread; ``handle`` returns at once and answers later.

    A message counts as unanswered until ``release``; one more than ``max_unanswered`` is refused at once.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        socket: zmq.Socket[bytes],
        decoder: msgspec.msgpack.Decoder[M],
        handle: Callable[[Incoming[M]], None],
        message_factory: MessageFactory,
        clock: Clock,
        log: FilteringBoundLogger,
        counters: dict[str, int],
        *,
        max_unanswered: int,
    ) -> None:
        self._log = log
        self._handle = handle
        self._socket = AsyncSocket(loop, socket, self._receive, self._failed)
        super().__init__(
            decoder,
            message_factory,
            clock,
            log,
            counters,
            self._socket.send,
            max_items=max_unanswered,
            max_bytes=_MAX_UNANSWERED_BYTES,
        )

    def close(self) -> None:
        """Stop reading; messages in progress may still be answered until the context is closed."""
        self._socket.stop_reading()

    def _receive(self, parts: list[bytes]) -> None:
        incoming = self.accept(parts.pop(0), parts)
        if incoming is None:
            return
        try:
            self._handle(incoming)
        except Exception as error:  # noqa: BLE001 - the next messages can still be handled
            self.release(incoming)
            self._failed(error)
            incoming.reply(Failure(ErrorCode.INTERNAL, "the actor failed on this request"))

    def _failed(self, error: Exception) -> None:
        self._log.error("message_failed", exc_info=error)
