"""The open loop keeps its rate whatever the responses, and counts every request."""

from __future__ import annotations

import itertools
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from bench.client import encode_request
from bench.open_loop import OpenLoop

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"
BUSY = b"HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n"
SENT_S = 0.3


@contextmanager
def server(serve: Callable[[socket.socket], None]) -> Iterator[tuple[str, int]]:
    """Serve each connection in a thread, until ``serve`` returns or the client has disconnected."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def one(connection: socket.socket) -> None:
        with connection:
            try:
                serve(connection)
            except OSError:
                return

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=one, args=(connection,)))
            threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield listener.getsockname()
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in (accepting, *threads):
            thread.join(10)
            assert not thread.is_alive()


def requests_of(connection: socket.socket) -> Iterator[bytes]:
    """The requests on one connection, one at a time."""
    with connection.makefile("rb") as incoming:
        while line := incoming.readline():
            length = 0
            while (header := incoming.readline()) != b"\r\n":
                if header.startswith(b"content-length:"):
                    length = int(header.split(b":")[1])
            yield line + incoming.read(length)


class Books:
    def __init__(self, *, keeps: bool = True) -> None:
        self._keeps = keeps
        self.statuses: Counter[int] = Counter()
        self.failures: list[str] = []

    def run(self, address: tuple[str, int], *, most_open: int = 8, per_s: float = 200, body: bytes = b"{}") -> OpenLoop:
        request = encode_request("POST", "/x", host="h", body=body)
        loop = OpenLoop(address, most_open, self._answered, self.failures.append)
        loop.run(itertools.repeat(request), per_s, SENT_S)
        return loop

    def _answered(self, request: bytes, status: int, body: bytes, took_ms: float) -> bool:
        assert took_ms >= 0
        assert body == (b"{}" if status == 200 else b"")
        self.statuses[status] += 1
        return self._keeps or status == 200


@pytest.mark.parametrize("size", [2, 900_000])
def test_every_answer_is_counted_by_its_status_and_connections_are_kept(size: int) -> None:
    turns = itertools.cycle([OK, BUSY])
    connections = Counter[int]()

    def serve(connection: socket.socket) -> None:
        for _ in requests_of(connection):
            connections[connection.fileno()] += 1
            connection.sendall(next(turns))

    books = Books()
    with server(serve) as address:
        loop = books.run(address, per_s=30, body=b"x" * size)
    assert books.failures == []
    assert sum(books.statuses.values()) == loop.offered - loop.unsent > 0
    assert abs(books.statuses[200] - books.statuses[503]) <= 1
    assert len(connections) <= 8


def test_the_request_rate_is_kept_without_responses_and_unsent_requests_are_counted() -> None:
    asked = threading.Semaphore(0)
    go_on = threading.Event()

    def serve(connection: socket.socket) -> None:
        for _ in requests_of(connection):
            asked.release()
            go_on.wait(10)
            connection.sendall(OK)

    def let_go() -> None:
        for _ in range(3):
            assert asked.acquire(timeout=10)
        ended.wait(SENT_S)
        go_on.set()

    ended = threading.Event()
    books = Books()
    letting_go = threading.Thread(target=let_go)
    letting_go.start()
    with server(serve) as address:
        loop = books.run(address, most_open=3, per_s=1000)
    letting_go.join(10)
    assert loop.offered > 3
    assert loop.unsent > 0
    assert books.statuses[200] == loop.offered - loop.unsent


def test_an_early_response_counts_as_an_answer_and_a_lost_connection_as_a_failure() -> None:
    serials = itertools.count()

    def serve(connection: socket.socket) -> None:
        connection.recv(1000)
        if next(serials) % 2:
            connection.sendall(BUSY)
            while connection.recv(1 << 20):  # so that the refusal is not overtaken by a reset
                pass

    books = Books(keeps=False)
    with server(serve) as address:
        loop = books.run(address, per_s=30, body=b"x" * 900_000)
    assert books.statuses[503] > 0
    assert books.statuses[503] + len(books.failures) == loop.offered - loop.unsent
    assert all(why.startswith("the connection was lost") for why in books.failures)
