"""The supervisor's socket: hears what its children say, and tells them what they must know.

Every child connects to it under its own name. What comes from another boot, from a life that is over or under
somebody else's name is counted, logged without content and never reaches the supervisor.

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
from signet_actors.runtime.messaging.envelope import UNDECODABLE, MessageFactory
from signet_actors.runtime.messaging.sockets import (
    SUPERVISOR_SOCKET,
    bind_router,
    close_all,
    has_message,
    make_private_directory,
    new_context,
    rebind,
    socket_identity,
)
from signet_actors.runtime.processes.child_context import ChildContext

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


@dataclass(frozen=True, slots=True)
class ControlMessage:
    """``body`` was said by the present life of the child ``name``."""

    name: str
    header: Header
    body: ChildMessage


class ControlSocket:
    """The ROUTER of the supervisor, bound when this is made; never blocks except in ``wait`` and ``poll``."""

    def __init__(self, boot: ChildContext, log: FilteringBoundLogger, counters: dict[str, int], clock: Clock) -> None:
        self._warnings = LogThrottle(log, clock)
        self._counters = counters
        self._message_factory = MessageFactory(boot)
        self._decoder: msgspec.msgpack.Decoder[ChildMessage] = msgspec.msgpack.Decoder(ChildMessage)
        self._context = new_context()
        self._socket = bind_router(self._context, boot.socket_dir, SUPERVISOR_SOCKET, boot.bus_key)
        self._directory = boot.socket_dir
        self._file = socket_identity(self._directory, SUPERVISOR_SOCKET)
        self._poller = zmq.Poller()
        self._poller.register(self._socket, zmq.POLLIN)

    def close(self) -> None:
        """The socket is closed, and what it still had to send is dropped."""
        close_all(self._context, flush=False)

    def reclaim_path(self) -> bool:
        """Take the path back if something else has removed or replaced it, and say whether that was so."""
        if self._file is not None and socket_identity(self._directory, SUPERVISOR_SOCKET) == self._file:
            return False
        self._file = None
        with contextlib.suppress(ConfigError, OSError, zmq.ZMQError):  # the next look tries again
            make_private_directory(Path(self._directory))
            rebind(self._socket, self._directory, SUPERVISOR_SOCKET)
            self._file = socket_identity(self._directory, SUPERVISOR_SOCKET)
        return True

    def wake_on(self, descriptor: int) -> None:
        """From now on ``wait`` also returns when ``descriptor`` can be read."""
        self._poller.register(descriptor, zmq.POLLIN)

    def wait(self, timeout_ms: int) -> None:
        """A child has said something, a descriptor can be read, or ``timeout_ms`` have passed."""
        self._poller.poll(timeout_ms)

    def poll(self, timeout_ms: int) -> bool:
        """True as soon as a child has said something, false when ``timeout_ms`` have passed without a word."""
        return bool(self._socket.poll(timeout_ms))

    def read(self, incarnations: Mapping[str, int]) -> Iterator[ControlMessage]:
        """Yield the messages that have arrived; ``incarnations`` is the current one of each name."""
        while has_message(self._socket):
            parts = self._socket.recv_multipart(zmq.NOBLOCK)
            self._counters["received"] += 1
            name = parts[0].decode(errors="replace")
            try:
                header = self._message_factory.read_header(parts[1])
                if (
                    self._message_factory.is_foreign(header)
                    or name not in incarnations
                    or header.sender != name
                    or header.incarnation != incarnations[name]
                ):
                    self._counters["foreign"] += 1
                    self._warnings.warning("foreign message refused", sender=header.sender)
                    continue
                body = self._decoder.decode(parts[2])
            except (*UNDECODABLE, IndexError) as error:
                self._counters["decode_error"] += 1
                self._warnings.warning("child not understood", error=type(error).__name__)
                continue
            yield ControlMessage(name, header, body)

    def tell(self, name: str, body: msgspec.Struct) -> bool:
        """``body`` is on its way to the child, or false: it is not there, or reads nothing."""
        return self._send(name, self._message_factory.tell(body))

    def broadcast(self, names: Iterable[str], body: msgspec.Struct) -> None:
        """``body`` is on its way to each of these children that is there."""
        for name in names:
            self.tell(name, body)

    def answer(self, asked: ControlMessage, body: msgspec.Struct) -> bool:
        """Like ``tell``, to whoever asked."""
        return self._send(asked.name, self._message_factory.answer(asked.header, body))

    def _send(self, name: str, parts: list[bytes]) -> bool:
        try:
            self._socket.send_multipart([name.encode(), *parts], zmq.NOBLOCK)
        except zmq.ZMQError:  # EHOSTUNREACH: it is gone; EAGAIN: it reads nothing
            self._counters["unroutable"] += 1
            return False
        self._counters["sent"] += 1
        return True
