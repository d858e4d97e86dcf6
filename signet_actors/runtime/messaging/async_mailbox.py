"""A bounded mailbox in an asyncio loop: each message is handled on arrival and answered when its work is done.

The bound counts messages that are being handled; one more is refused at once.

Source: docs/messaging.md rules 6, 7, 9, 18 and 19.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
import zmq

from signet_actors.errors import ErrorCode
from signet_actors.protocol.header import Header
from signet_actors.protocol.message import Failure
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.messaging.envelope import MessageFactory
from signet_actors.runtime.messaging.mailbox import Incoming, Mailbox

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

M = TypeVar("M")

_POLLIN = int(zmq.POLLIN)
_EVENTS = int(zmq.EVENTS)
_BURST_BYTES = 4 * 1024 * 1024


class AsyncMailbox(Mailbox[M], Generic[M]):
    """Calls ``handle`` with each message from the loop's thread; ``handle`` returns at once and answers later."""

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
        super().__init__(
            socket, decoder, message_factory, clock, log, counters, max_items=max_unanswered, max_bytes=_BURST_BYTES
        )
        self._loop = loop
        self._handle = handle
        self._log = log
        self._events: Any = socket  # its ``get`` is typed for every option at once
        self._max_unanswered = max_unanswered
        self._unanswered = 0
        self._scheduled = False
        self._descriptor = int(self._events.get(zmq.FD))
        self._accepting = True
        loop.add_reader(self._descriptor, self._drain)
        self._schedule_drain()

    def close(self) -> None:
        """Stop reading; messages in progress may still be answered until the context is closed."""
        if self._accepting:
            self._accepting = False
            self._loop.remove_reader(self._descriptor)

    def answer(self, identity: bytes | None, asked: Header, body: msgspec.Struct, frames: Sequence[bytes] = ()) -> None:
        super().answer(identity, asked, body, frames)
        if self._accepting and not self._scheduled and self._events.get(_EVENTS) & _POLLIN:
            self._schedule_drain()  # the send may have swallowed the descriptor's only signal

    def release(self) -> None:
        """Free the slot of one message that was handled."""
        self._unanswered -= 1

    def _schedule_drain(self) -> None:
        if not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._drain)

    def _drain(self) -> None:
        self._scheduled = False
        if not self._accepting:
            return
        self._max_items = self._max_unanswered - self._unanswered
        for incoming in self.take():
            self._unanswered += 1
            try:
                self._handle(incoming)
            except Exception as error:  # noqa: BLE001 - read on: the descriptor may not signal again
                self.release()
                self._log.error("message_failed", exc_info=error)
                incoming.reply(Failure(ErrorCode.INTERNAL, "the actor failed on this request"))
        if self._events.get(_EVENTS) & _POLLIN:
            self._schedule_drain()
