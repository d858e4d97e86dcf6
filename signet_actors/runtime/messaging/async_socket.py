"""A ZeroMQ socket in an asyncio loop, read when its descriptor signals, without ``zmq.asyncio``.

It needs no task, poll or timer per message. The descriptor of a ZeroMQ socket is edge-triggered: it signals once per
*change*, and any call on the socket may consume the signal. So the socket's state is checked again after every send and
after every burst, and no message is left unread.

Source: docs/messaging.md rules 1-12 and 18.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import zmq

_POLLIN = int(zmq.POLLIN)  # plain integers: an operation on enum members costs a microsecond each
_EVENTS = int(zmq.EVENTS)
_RCVMORE = int(zmq.RCVMORE)
_NOBLOCK = int(zmq.NOBLOCK)
_NOBLOCK_MORE = int(zmq.NOBLOCK) | int(zmq.SNDMORE)
BURST = 64
"""Messages read in one go before other callbacks of the loop run."""


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
        self._open = True
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
            if not self._scheduled and socket.get(_EVENTS) & _POLLIN:
                self._schedule_drain()
        return True

    def close(self) -> None:
        """Stop receiving; the context closes the socket itself."""
        if self._open:
            self._open = False
            self._loop.remove_reader(self._descriptor)

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
        while self._open and socket.get(_EVENTS) & _POLLIN:
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
