"""The supervisor's socket: receives messages from its children and sends messages to them.

Every child connects under its own name. Messages from another boot, from an earlier incarnation or under another
child's name are counted, logged without their content, and dropped.

Source: docs/reliability.md R19; docs/messaging.md rules 8, 10, 15 and 20; docs/architecture.md "Messages".
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import zmq

from signet_actors.errors import ConfigError
from signet_actors.protocol.control import ChildMessage
from signet_actors.protocol.header import Header
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.logging.throttle import LogThrottle
from signet_actors.runtime.messaging import sockets
from signet_actors.runtime.messaging.envelope import UNDECODABLE, MessageFactory, decode_header
from signet_actors.runtime.messaging.mailbox import has_message
from signet_actors.runtime.processes.child_context import ChildContext

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


@dataclass(frozen=True, slots=True)
class ControlMessage:
    """A message from the current incarnation of the child ``name``."""

    name: str
    header: Header
    body: ChildMessage


class ControlSocket:
    """The supervisor's ROUTER socket, bound on construction; only ``wait`` and ``poll`` block."""

    def __init__(self, boot: ChildContext, log: FilteringBoundLogger, counters: dict[str, int], clock: Clock) -> None:
        self._warnings = LogThrottle(log, clock)
        self._counters = counters
        self._message_factory = MessageFactory(boot)
        self._decoder: msgspec.msgpack.Decoder[ChildMessage] = msgspec.msgpack.Decoder(ChildMessage)
        self._context = sockets.new_context()
        self._socket = sockets.bind_router(self._context, boot.socket_dir, sockets.SUPERVISOR_SOCKET, boot.bus_key)
        self._directory = boot.socket_dir
        self._file = sockets.socket_identity(self._directory, sockets.SUPERVISOR_SOCKET)
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)

    def close(self) -> None:
        """Close the socket and drop what it has not sent yet."""
        sockets.close_all(self._context, flush=False)

    def reclaim_path(self) -> bool:
        """Bind the path again if its socket file was removed or replaced; return whether that was so."""
        if self._file is not None and sockets.socket_identity(self._directory, sockets.SUPERVISOR_SOCKET) == self._file:
            return False
        self._file = None
        with contextlib.suppress(ConfigError, OSError, zmq.ZMQError):  # tried again at the next check
            sockets.make_private_directory(Path(self._directory))
            sockets.rebind(self._socket, self._directory, sockets.SUPERVISOR_SOCKET)
            self._file = sockets.socket_identity(self._directory, sockets.SUPERVISOR_SOCKET)
        return True

    def wake_on(self, descriptor: int) -> None:
        """Make ``wait`` also return when ``descriptor`` is readable."""
        self._poller.register(descriptor, zmq.POLLIN)

    def wait(self, timeout_ms: int) -> None:
        self._poller.poll(timeout_ms)

    def poll(self, timeout_ms: int) -> bool:
        """Wait for a message; return False when none has arrived within ``timeout_ms``."""
        return bool(self._socket.poll(timeout_ms))

    def read(self, incarnations: Mapping[str, int]) -> Iterator[ControlMessage]:
        """Yield the messages that have arrived; ``incarnations`` holds the current one of each name."""
        while has_message(self._socket):
            parts = self._socket.recv_multipart(zmq.NOBLOCK)
            self._counters["received"] += 1
            name = parts[0].decode(errors="replace")
            try:
                header = decode_header(parts[1])
                if (
                    self._message_factory.is_foreign(header)
                    or name not in incarnations
                    or header.sender != name
                    or header.incarnation != incarnations[name]
                ):
                    self._counters["foreign"] += 1
                    self._warnings.warning("foreign_message_refused", sender=header.sender)
                    continue
                body = self._decoder.decode(parts[2])
            except (*UNDECODABLE, IndexError) as error:
                self._counters["decode_error"] += 1
                self._warnings.warning("child_message_unreadable", error=type(error).__name__)
                continue
            yield ControlMessage(name, header, body)

    def tell(self, name: str, body: msgspec.Struct) -> bool:
        """Send ``body`` to the child; return False when it is not connected or reads nothing."""
        return self._send(name, self._message_factory.tell(body))

    def broadcast(self, names: Iterable[str], body: msgspec.Struct) -> None:
        for name in names:
            self.tell(name, body)

    def answer(self, asked: ControlMessage, body: msgspec.Struct) -> bool:
        """Send ``body`` as the reply to ``asked``; return False like ``tell``."""
        return self._send(asked.name, self._message_factory.answer(asked.header, body))

    def _send(self, name: str, parts: list[bytes]) -> bool:
        try:
            self._socket.send_multipart([name.encode(), *parts], zmq.NOBLOCK)
        except zmq.ZMQError:  # EHOSTUNREACH: not connected; EAGAIN: it reads nothing
            self._counters["unroutable"] += 1
            return False
        self._counters["sent"] += 1
        return True
