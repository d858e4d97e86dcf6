"""Send requests at a fixed rate, independent of their responses, over plain sockets and one epoll: 20 us each.

An open loop offers several times the capacity of the daemon on the same cores: CPU time of the generator is missing for
the daemon, and while the generator handles one response the others wait in its sockets and seem late. So it uses no
tasks, futures or timers per request, only system calls and a dictionary.

The connections are kept alive and used in rotation, the longest unused first, as if each were a client.
"""

from __future__ import annotations

import errno
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from bench.client import EXCHANGE_TIMEOUT_S, ProtocolError, parse_head

_TICK_S: Final = 0.002
_READ: Final = 256 * 1024


class _Line:
    """One connection, and the request that is in flight on it."""

    __slots__ = ("began", "buffer", "closed", "request", "rest", "socket", "wants_out")

    def __init__(self, connection: socket.socket) -> None:
        self.socket = connection
        self.request: bytes | None = None
        self.rest: memoryview | None = None  # the rest of the request that was not sent yet
        self.began = 0.0
        self.buffer = b""
        self.closed = False
        self.wants_out = False


class OpenLoop:
    """One run. ``answered`` receives the request, status, body and milliseconds of each response, and returns whether
    its connection may be used again; ``failed`` receives the reason if there was none.
    """

    def __init__(
        self,
        address: tuple[str, int],
        most_open: int,
        answered: Callable[[bytes, int, bytes, float], bool],
        failed: Callable[[str], None],
    ) -> None:
        self._address = address
        self._most_open = most_open
        self._answered = answered
        self._failed = failed
        self._lines: dict[int, _Line] = {}
        self._free: deque[_Line] = deque()
        self._busy = 0
        self.offered = 0
        self.unsent = 0

    def run(self, requests: Iterator[bytes], per_s: float, seconds: float) -> float:
        """Wait until every request is answered or given up; return the seconds in which they were sent."""
        with select.epoll() as poller:
            self._poller = poller
            try:
                return self._run(requests, per_s, seconds)
            finally:
                for line in list(self._lines.values()):
                    self._close(line)

    def _run(self, requests: Iterator[bytes], per_s: float, seconds: float) -> float:
        began = time.perf_counter()
        sent_s = 0.0
        while (now := time.perf_counter()) < began + seconds or self._busy:
            if now < began + seconds:
                sent_s = now - began
                for _ in range(int(sent_s * per_s) - self.offered):
                    self.offered += 1
                    if self._busy < self._most_open:
                        self._send(next(requests))
                    else:
                        self.unsent += 1
            elif now > began + seconds + EXCHANGE_TIMEOUT_S:
                self._give_up()
                break
            for descriptor, events in self._poller.poll(_TICK_S):
                line = self._lines.get(descriptor)
                if line is not None:
                    self._heed(line, events)
        return sent_s

    def _send(self, request: bytes) -> None:
        line = None
        while self._free and (line is None or line.closed):
            line = self._free.popleft()
        if line is None or line.closed:
            line = self._connect()
        self._busy += 1
        line.request, line.rest = request, memoryview(request)
        line.began = 0.0
        self._write(line)

    def _connect(self) -> _Line:
        connection = socket.socket()
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.connect_ex(self._address)
        line = _Line(connection)
        self._lines[connection.fileno()] = line
        self._poller.register(connection, select.EPOLLIN)
        return line

    def _heed(self, line: _Line, events: int) -> None:
        if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
            self._read(line)
        if events & select.EPOLLOUT and not line.closed and line.rest is not None:
            self._write(line)

    def _write(self, line: _Line) -> None:
        """Send as much as the kernel accepts; the measurement starts with the first byte."""
        assert line.rest is not None
        before = time.perf_counter()
        try:
            sent = line.socket.send(line.rest)
        except OSError as error:
            if error.errno not in {errno.EAGAIN, errno.ENOTCONN}:
                line.rest = None  # it was rejected before all of it was sent; the response may be there to read
        else:
            line.began = line.began or before
            line.rest = line.rest[sent:] if sent < len(line.rest) else None
        if line.wants_out != (line.rest is not None):
            line.wants_out = not line.wants_out
            self._poller.modify(line.socket, select.EPOLLIN | (select.EPOLLOUT if line.wants_out else 0))

    def _read(self, line: _Line) -> None:
        try:
            data = line.socket.recv(_READ)
        except BlockingIOError:
            return
        except OSError as error:
            self._lost(line, str(error))
            return
        if not data:
            self._lost(line, "closed by the daemon")
            return
        line.buffer += data
        try:
            found = parse_head(line.buffer)
        except ProtocolError as error:
            self._lost(line, str(error))
            return
        if found is None or len(line.buffer) < found[1] + found[2]:
            return
        took_ms = (time.perf_counter() - line.began) * 1000
        status, begin, length = found
        request, body = line.request, line.buffer[begin : begin + length]
        if request is None:
            self._lost(line, f"{status} that nobody asked for")
            return
        whole = line.rest is None
        line.request, line.rest, line.buffer = None, None, b""
        self._busy -= 1
        if self._answered(request, status, body, took_ms) and whole:
            self._free.append(line)
        else:
            self._close(line)

    def _lost(self, line: _Line, why: str) -> None:
        if line.request is not None:
            self._busy -= 1
            line.request = None
            self._failed(f"the connection was lost: {why}")
        self._close(line)

    def _give_up(self) -> None:
        for line in list(self._lines.values()):
            if line.request is not None:
                line.request = None
                self._busy -= 1
                self._failed(f"no answer within {EXCHANGE_TIMEOUT_S:.0f} s")

    def _close(self, line: _Line) -> None:
        if not line.closed:
            line.closed = True
            del self._lines[line.socket.fileno()]
            line.socket.close()
