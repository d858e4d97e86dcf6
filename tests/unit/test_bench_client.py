"""The load generator's HTTP client: exactly one response to each request, and strict parsing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bench.client import MAX_HEAD_BYTES, Connection, ProtocolError, parse_head

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
        b"SSH-2.0-x\r\n\r\n",
        b"x" * (MAX_HEAD_BYTES + 1),
    ],
)
def test_a_malformed_response_is_an_error(answer: bytes) -> None:
    with pytest.raises(ProtocolError):
        parse_head(answer)


def exchange_with(serve: Serve, requests: int) -> list[tuple[int, bytes]]:
    """The answers to so many requests on one connection to a server that behaves like ``serve``."""

    async def run() -> list[tuple[int, bytes]]:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            connection = await Connection.open("127.0.0.1", server.sockets[0].getsockname()[1])
            try:
                return [await connection.exchange(b"GET / HTTP/1.1\r\n\r\n") for _ in range(requests)]
            finally:
                connection.close()

    return asyncio.run(run())


def test_split_responses_are_joined_and_the_connection_is_kept() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for body in (b"first", b"", b"third"):
            await reader.readuntil(b"\r\n\r\n")
            answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
            for at in range(0, len(answer), 7):
                writer.write(answer[at : at + 7])
                await writer.drain()
        writer.close()
        await writer.wait_closed()

    assert exchange_with(serve, 3) == [(200, b"first"), (200, b""), (200, b"third")]


def test_a_connection_that_is_closed_before_the_answer_is_an_error() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        writer.close()
        await writer.wait_closed()

    with pytest.raises(ProtocolError, match="connection was lost"):
        exchange_with(serve, 1)
