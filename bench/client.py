"""Cheap HTTP/1.1 clients, because the load generator shares its cores with the daemon that it measures.

``Connection`` keeps one connection alive and sends one request at a time; it writes bytes that were encoded before the
measurement, and reads the status and exactly ``Content-Length`` bytes. Other responses, such as chunked ones, are
errors.
"""

from __future__ import annotations

import asyncio
import http.client
from typing import Final, Self, cast

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length:"
MAX_HEAD_BYTES: Final = 32 * 1024
EXCHANGE_TIMEOUT_S: Final = 30.0


class ProtocolError(Exception):
    """The response was not HTTP/1.1 with a length, or the connection was closed before its end."""


def encode_request(method: str, path: str, *, host: str, body: bytes = b"") -> bytes:
    """Return the bytes of one request; a body is sent as JSON."""
    head = f"{method} {path} HTTP/1.1\r\nhost: {host}\r\n"
    if body or method != "GET":
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body


def parse_head(buffer: bytes | bytearray) -> tuple[int, int, int] | None:
    """Return status, start and length of the body; None while the head is incomplete. Raises ProtocolError."""
    end = buffer.find(_HEAD_END)
    if end < 0:
        if len(buffer) > MAX_HEAD_BYTES:
            raise ProtocolError("the head of the answer does not end")
        return None
    head = bytes(buffer[:end]).lower() + b"\r\n"
    if not head.startswith(b"http/1.1 ") or not head[9:12].isdigit():
        raise ProtocolError(f"not an HTTP/1.1 answer: {head[:40]!r}")
    at = head.find(b"\r\n" + _LENGTH)
    if at < 0:
        raise ProtocolError("the answer has no Content-Length")
    value = head[at + 2 + len(_LENGTH) : head.index(b"\r\n", at + 2)].strip()
    if not value.isdigit():
        raise ProtocolError(f"Content-Length {value!r}")
    return int(head[9:12]), end + len(_HEAD_END), int(value)


class Connection(asyncio.Protocol):
    """One kept-alive connection; ``exchange`` is called again only after it has returned."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._expected: tuple[int, int, int] | None = None
        self._waiter: asyncio.Future[tuple[int, bytes]] | None = None
        self._loop = asyncio.get_running_loop()

    @classmethod
    async def open(cls, host: str, port: int) -> Self:
        """Return an established connection."""
        _, connection = await asyncio.get_running_loop().create_connection(cls, host, port)
        return connection

    async def exchange(self, request: bytes) -> tuple[int, bytes]:
        """Return status and body of the response to ``request`` (see ``encode_request``).

        Raises ProtocolError, also when the connection is lost, and TimeoutError after ``EXCHANGE_TIMEOUT_S``.
        """
        if self._transport is None or self._transport.is_closing():
            raise ProtocolError("the connection is closed")
        waiter: asyncio.Future[tuple[int, bytes]] = self._loop.create_future()
        self._waiter = waiter
        timer = self._loop.call_later(EXCHANGE_TIMEOUT_S, self._late)
        self._transport.write(request)
        try:
            return await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # not a subclass of it where the loop is uvloop's

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._fail(ProtocolError(f"the connection was lost: {exc or 'closed by the daemon'}"))

    def data_received(self, data: bytes) -> None:
        buffer = self._buffer
        buffer += data
        try:
            if self._expected is None:
                self._expected = parse_head(buffer)
                if self._expected is None:
                    return
        except ProtocolError as error:
            self._fail(error)
            self.close()
            return
        status, begin, length = self._expected
        if len(buffer) < begin + length:
            return
        body = bytes(buffer[begin : begin + length])
        del buffer[: begin + length]
        self._expected = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result((status, body))

    def _late(self) -> None:
        self._fail(TimeoutError(f"no answer within {EXCHANGE_TIMEOUT_S:.0f} s"))
        self.close()

    def _fail(self, error: Exception) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(error)


class BlockingClient:
    """A client with a new connection for each request, for requests that are not measured."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port

    def exchange(self, method: str, path: str, body: bytes | None = None) -> tuple[int, bytes]:
        """Return status and body; raises OSError if the server is unreachable."""
        connection = http.client.HTTPConnection(self._host, self._port, timeout=EXCHANGE_TIMEOUT_S)
        try:
            headers = {"content-type": "application/json"} if body is not None else {}
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except http.client.HTTPException as error:
            raise OSError(f"{method} {path}: {error!r}") from error
        finally:
            connection.close()
