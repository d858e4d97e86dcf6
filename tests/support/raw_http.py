"""HTTP/1.1 as bytes on a socket: everything that a hostile client can send, and the exact bytes of the response."""

from __future__ import annotations

import contextlib
import re
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

Pairs = Sequence[tuple[bytes, bytes]]

HANG_S: Final = 30.0
"""An exchange that takes longer has no outcome. A timeout against hanging, never a measurement."""
_STATUS_LINE: Final = re.compile(rb"HTTP/1\.1 ([1-5][0-9]{2}) [^\r\n]*")
_LENGTH: Final = re.compile(rb"[0-9]{1,9}")


class NotAnAnswer(AssertionError):
    """The received bytes are not an HTTP/1.1 response."""


@dataclass(frozen=True)
class RawReply:
    """One response; header names are lower-case. ``closes``: the connection ends with it."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes
    closes: bool


def encoded(method: bytes, target: bytes, headers: Pairs, body: bytes | None = None) -> bytes:
    """Return a request as bytes. Only the length of the body is added, if its framing is not given."""
    lines = [b"%s %s HTTP/1.1" % (method, target), *(b"%s: %s" % pair for pair in headers)]
    if body is not None and not any(name.lower() in {b"content-length", b"transfer-encoding"} for name, _ in headers):
        lines.append(b"Content-Length: %d" % len(body))
    return b"\r\n".join(lines) + b"\r\n\r\n" + (body or b"")


def split_reply(data: bytes, *, without_body: bool = False) -> tuple[RawReply, bytes] | None:
    """Return the first response in ``data`` and the rest, or None while it is incomplete. Raises NotAnAnswer."""
    head, end, rest = data.partition(b"\r\n\r\n")
    if not end:
        return None
    line, *fields = head.split(b"\r\n")
    match = _STATUS_LINE.fullmatch(line)
    if match is None:
        raise NotAnAnswer(f"status line {line[:100]!r}")
    headers: dict[bytes, bytes] = {}
    for field in fields:
        name, colon, value = field.partition(b":")
        if not colon or name.lower() in headers:
            raise NotAnAnswer(f"header {field[:100]!r}")
        headers[name.lower()] = value.strip()
    status = int(match[1])
    if status == 100:  # the response to Expect, not to the request
        return split_reply(rest, without_body=without_body)
    length = headers.get(b"content-length", b"" if status not in {204, 304} else b"0")
    if _LENGTH.fullmatch(length) is None:
        raise NotAnAnswer(f"an answer without a length: {head[:200]!r}")
    size = 0 if without_body else int(length)
    if len(rest) < size:
        return None
    return RawReply(status, headers, rest[:size], headers.get(b"connection") == b"close"), rest[size:]


def all_replies(data: bytes) -> list[RawReply]:
    """Return every response in ``data``, which must contain nothing else. Raises NotAnAnswer."""
    replies = []
    while data:
        found = split_reply(data)
        if found is None:
            raise NotAnAnswer(f"a cut answer: {data[:200]!r}")
        reply, data = found
        replies.append(reply)
    return replies


class RawConnection:
    """A kept-alive connection that is reopened whenever the daemon has closed it."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def exchange(self, request: bytes, *, without_body: bool = False) -> RawReply:
        """Return the response to ``request``. Sends it a second time if an idle connection had been closed meanwhile.

        Raises TimeoutError if there is no outcome, ConnectionError if the connection ends without one.
        """
        fresh = self._socket is None
        try:
            return self._exchange(request, without_body=without_body)
        except ConnectionError:
            self.close()
            if fresh:
                raise
            return self._exchange(request, without_body=without_body)

    def _exchange(self, request: bytes, *, without_body: bool) -> RawReply:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), timeout=HANG_S)
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(request)  # rejected during sending: the response may still have arrived
        data = b""
        while True:
            part = self._socket.recv(262_144)
            if not part:
                raise ConnectionResetError(f"closed without an answer after {data[:100]!r}")
            data += part
            found = split_reply(data, without_body=without_body)
            if found is not None:
                break
        reply, rest = found
        if rest:
            raise NotAnAnswer(f"bytes behind the answer: {rest[:200]!r}")
        if reply.closes:
            self.close()
        return reply


def everything_after(port: int, data: bytes) -> bytes:
    """Send ``data`` on a new connection, and return everything received until the daemon closes it.

    Raises TimeoutError if nothing is received and the connection stays open.
    """
    with socket.create_connection(("127.0.0.1", port), timeout=HANG_S) as connection:
        parts = []
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(data)
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(65536):
                parts.append(part)
        return b"".join(parts)
