"""Admission of requests and connections by the HTTP server under overload."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest

from signet_actors.gateway.http.route import Call, HttpResponse, Route
from signet_actors.gateway.server.connection_limits import ConnectionLimits
from signet_actors.gateway.server.framing import plain_request
from signet_actors.gateway.server.load_shedding import (
    LARGE_BODY_BYTES,
    READS_PER_ITERATION,
    Admission,
    ReadScheduler,
    Ticket,
)
from signet_actors.gateway.server.uvicorn_server import ACCEPTS_PER_ITERATION
from tests.actor.test_gateway_edge_limits import Gate, poll_until
from tests.support.edge import CLIENT_WAIT_S, Answered, RunningEdge, echo, parse_answer, read_to_end
from tests.support.routes import plain_route

LARGE = LARGE_BODY_BYTES + 1000


async def healthy(call: Call[Any]) -> HttpResponse:
    return HttpResponse({"status": "healthy"})


def routes(gate: Gate) -> tuple[Route, ...]:
    return (
        plain_route("POST", "/wait", gate.handler, mutates=True),
        plain_route("POST", "/ask", gate.handler),
        plain_route("POST", "/echo", echo),
        plain_route("GET", "/echo", echo),
        plain_route("GET", "/health", healthy),
        plain_route("POST", "/health", healthy),
        plain_route("GET", "/health/live", healthy),
    )


def post_head(edge: RunningEdge, *headers: str, target: str = "POST /wait") -> bytes:
    lines = (f"{target} HTTP/1.1", f"Host: 127.0.0.1:{edge.port}", "Content-Type: application/json", *headers)
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def assert_busy(raw: bytes) -> None:
    answer = parse_answer(raw)
    assert (answer.status, answer.body["code"], answer.headers["retry-after"]) == (503, "busy", "1")
    assert answer.headers["connection"] == "close"


def assert_nothing_held(edge: RunningEdge) -> None:
    admission = edge.server.server_context.admission
    poll_until(lambda: (admission.in_flight, admission.body_bytes, admission.large_bodies) == (0, 0, 0))


class Held:
    """Requests that wait in the gate, each on a connection of its own."""

    def __init__(self, edge: RunningEdge, gate: Gate, count: int, body: bytes, target: str = "/wait") -> None:
        self._pool = ThreadPoolExecutor(count)
        self._answers = [self._pool.submit(edge.request, "POST", target, body) for _ in range(count)]
        for _ in range(count):
            gate.wait_entered()

    def answers(self) -> list[Answered]:
        found = [answer.result(CLIENT_WAIT_S) for answer in self._answers]
        self._pool.shutdown()
        return found


def test_large_bodies_beyond_the_limit_are_refused_before_they_are_sent(tmp_path: Path) -> None:
    gate = Gate()
    with RunningEdge(routes(gate), tmp_path, limits=ConnectionLimits(max_large_bodies=2)) as edge:
        held = Held(edge, gate, 2, b"x" * LARGE)
        for _ in range(40):
            assert_busy(edge.raw(post_head(edge, f"Content-Length: {LARGE}")))
            assert edge.request("GET", "/health").status == 200
        assert edge.request("POST", "/echo", {"small": True}).status == 200
        gate.open(edge)
        assert [answer.status for answer in held.answers()] == [200, 200]
        assert_nothing_held(edge)
        assert edge.request("POST", "/wait", b"x" * LARGE).status == 200
        assert edge.server.server_context.admission.shed == 40


def test_overload_is_shed_while_health_answers_and_ends_without_delay(tmp_path: Path) -> None:
    gate = Gate()
    body = b"x" * 900_000

    def one(edge: RunningEdge) -> int:
        with edge.connect() as connection:
            connection.sendall(post_head(edge, f"Content-Length: {len(body)}"))
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(body)
            return parse_answer(read_to_end(connection)).status

    with (
        RunningEdge(routes(gate), tmp_path, limits=ConnectionLimits(max_large_bodies=3)) as edge,
        ThreadPoolExecutor(16) as clients,
    ):
        held = Held(edge, gate, 3, body)
        burst_answers = [clients.submit(one, edge) for _ in range(60)]
        while not all(client.done() for client in burst_answers):
            assert edge.request("GET", "/health/live").status == 200
        assert {client.result() for client in burst_answers} == {503}
        gate.open(edge)
        assert [answer.status for answer in held.answers()] == [200] * 3
        for _ in range(5):
            assert edge.request("POST", "/wait", body).status == 200
        assert_nothing_held(edge)


def test_requests_in_flight_are_limited_except_health(tmp_path: Path) -> None:
    gate = Gate()
    with RunningEdge(routes(gate), tmp_path, limits=ConnectionLimits(max_in_flight=3)) as edge:
        changes = Held(edge, gate, 3, b"{}")
        assert edge.request("POST", "/wait").status == 503
        assert edge.request("GET", "/echo").status == 200, "what changes nothing has a bound of its own"
        reads = Held(edge, gate, 3, b"{}", "/ask")
        assert edge.request("GET", "/echo").status == 503
        for path in ("/health", "/health?full=1", "/health/live"):
            assert edge.request("GET", path).status == 200
        assert edge.request("POST", "/health", b"{}").status == 503
        gate.open(edge)
        assert [answer.status for answer in changes.answers() + reads.answers()] == [200] * 6
        assert_nothing_held(edge)
        assert edge.request("GET", "/echo").status == 200


def test_a_body_of_unknown_size_counts_as_it_arrives(tmp_path: Path) -> None:
    gate = Gate()
    with RunningEdge(routes(gate), tmp_path, limits=ConnectionLimits(max_total_body_bytes=50_000)) as edge:
        held = Held(edge, gate, 1, b"x" * 40_000)
        with edge.connect() as connection:
            connection.sendall(post_head(edge, "Transfer-Encoding: chunked"))
            connection.sendall(b"1f40\r\n" + b"x" * 8000 + b"\r\n")
            connection.sendall(b"1f40\r\n" + b"x" * 8000 + b"\r\n")
            assert_busy(read_to_end(connection))
        gate.open(edge)
        assert [answer.status for answer in held.answers()] == [200]
        assert_nothing_held(edge)


def test_pipelined_requests_are_released_with_their_connection(tmp_path: Path) -> None:
    gate = Gate()
    with RunningEdge(routes(gate), tmp_path) as edge:
        with edge.connect() as connection:
            connection.sendall((post_head(edge, "Content-Length: 2") + b"{}") * 4)
            gate.wait_entered()
            poll_until(lambda: edge.server.server_context.admission.in_flight == 4)
        poll_until(lambda: edge.server.server_context.admission.in_flight == 1)  # its handler has not ended
        gate.open(edge)
        assert_nothing_held(edge)


def test_pipelined_requests_are_each_counted_until_answered(tmp_path: Path) -> None:
    with RunningEdge(routes(Gate()), tmp_path) as edge, edge.connect() as connection:
        connection.sendall((post_head(edge, "Content-Length: 2", target="POST /echo") + b"{}") * 4)
        answered = b""
        while answered.count(b"HTTP/1.1 200") < 4:
            answered += connection.recv(65536)
        assert_nothing_held(edge)


def test_the_request_of_a_disconnected_client_is_not_executed(tmp_path: Path) -> None:
    gate = Gate()
    with RunningEdge(routes(gate), tmp_path) as edge:
        stopped, go_on = threading.Event(), threading.Event()

        def stop_the_loop() -> None:
            stopped.set()
            go_on.wait(CLIENT_WAIT_S)

        edge.call_soon(stop_the_loop)
        assert stopped.wait(CLIENT_WAIT_S)
        for _ in range(2):  # no more large ones are admitted at once
            with edge.connect() as connection:
                connection.sendall(post_head(edge, f"Content-Length: {LARGE}") + b"x" * LARGE)
        go_on.set()
        poll_until(lambda: edge.state.counters.requests == 2 and edge.state.counters.in_flight == 0)
        assert not gate.entered.acquire(blocking=False)
        assert_nothing_held(edge)


def test_at_the_connection_limit_only_health_is_answered(tmp_path: Path) -> None:
    gate = Gate()
    with (
        RunningEdge(routes(gate), tmp_path, limits=ConnectionLimits(connections=4)) as edge,
        contextlib.ExitStack() as connections,
    ):
        server_context = edge.server.server_context
        held = [connections.enter_context(edge.connect()) for _ in range(4)]
        gate.hold(edge, *held)
        for path in ("/health", "/health/live") * 3:
            raw = edge.raw(post_head(edge, target=f"GET {path}"))
            answer = parse_answer(raw)
            assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert_busy(edge.raw(post_head(edge, target="GET /echo")))
        assert_busy(edge.raw(post_head(edge, "Content-Length: 2") + b"{}"))
        assert_busy(edge.raw(post_head(edge, f"Content-Length: {LARGE}")))
        assert_busy(edge.raw(b"GET /health"))
        assert server_context.rejections.connections == 4
        waiting = connections.enter_context(edge.connect())
        held[0].close()
        poll_until(lambda: len(server_context.connections.served) == 3)
        waiting.sendall(post_head(edge, target="GET /echo"))
        assert parse_answer(waiting.recv(65536)).status == 200
        assert len(server_context.connections.served) == 4
        gate.open(edge)


def half_open(edge: RunningEdge, sent: bytes) -> socket.socket:
    """Return a connection whose request is never completed, or has not begun."""
    connection = edge.connect()
    connection.sendall(sent)
    return connection


HALF_OPEN = [
    *(b"", b"\r\n", b"G", b"GET /echo", b"GET /echo HTTP/1.1", b"GET /echo HTTP/1.1\r\n", b"GET /echo HTTP/1.1\r\nHo"),
    *(b"POST /echo HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"POST /health HTTP/1.1\r\nHost: %(host)s\r\nContent-Le"),
    b"POST /echo HTTP/1.1\r\nHost: %(host)s\r\nContent-Length: 9\r\n\r\n",
    b"POST /echo HTTP/1.1\r\nHost: %(host)s\r\nContent-Length: 9\r\n\r\n{",
    b"POST /echo HTTP/1.1\r\nHost: %(host)s\r\nContent-Length: 900000\r\n\r\n" + b"x" * 200_000,
    b"POST /echo HTTP/1.1\r\nHost: %(host)s\r\nTransfer-Encoding: chunked\r\n\r\n",
    b"POST /echo HTTP/1.1\r\nHost: %(host)s\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{",
    b"POST /health HTTP/1.1\r\nHost: %(host)s\r\nContent-Length: 2\r\n\r\n{",
    b"GET /echo HTTP/1.1\r\nHost: %(host)s\r\n\r\nGET /echo HTTP/1.1\r\n",
    b"GET /echo HTTP/1.1\r\nHost: %(host)s\r\n\r\nPOST /echo HTTP/1.1\r\nHost: %(host)s\r\nContent-Length: 9\r\n\r\n{",
]


@pytest.mark.parametrize("sent", HALF_OPEN)
def test_requests_that_never_arrive_whole_shut_out_no_other(sent: bytes, tmp_path: Path) -> None:
    gate = Gate()
    with (
        RunningEdge(routes(gate), tmp_path, limits=ConnectionLimits(connections=4)) as edge,
        contextlib.ExitStack() as connections,
    ):
        places = edge.server.server_context.connections
        sent = sent.replace(b"%(host)s", b"127.0.0.1:%d" % edge.port)
        working = connections.enter_context(edge.connect())
        gate.hold(edge, working)
        for _ in range(6):
            connections.enter_context(half_open(edge, sent))
            assert edge.request("GET", "/echo").status == 200
            assert edge.request("POST", "/echo", {"a": 1}).status == 200
        assert len(places.served) <= 4
        gate.open(edge)
        assert parse_answer(working.recv(65536)).status == 200
    assert [*places.served, *places.idle, *places.incomplete, *places.overflow] == []


def test_an_incomplete_request_that_makes_room_is_told_to_come_again(tmp_path: Path) -> None:
    with RunningEdge(routes(Gate()), tmp_path, limits=ConnectionLimits(connections=1)) as edge:
        with half_open(edge, b"GET /echo HTTP/1.1\r\n") as first:
            assert edge.request("GET", "/echo").status == 200
            assert_busy(read_to_end(first))
        with half_open(edge, post_head(edge, "Content-Length: 9", target="POST /echo") + b"{") as second:
            assert edge.request("GET", "/echo").status == 200
            assert_busy(read_to_end(second))


def test_connections_beyond_the_limit_do_not_block_others(tmp_path: Path) -> None:
    gate = Gate()
    with (
        RunningEdge(routes(gate), tmp_path, limits=ConnectionLimits(connections=2)) as edge,
        contextlib.ExitStack() as connections,
    ):
        places = edge.server.server_context.connections
        held = [connections.enter_context(edge.connect()) for _ in range(2)]
        gate.hold(edge, *held)
        silent = [connections.enter_context(edge.connect()) for _ in range(30)]
        assert edge.request("GET", "/health").status == 200
        assert read_to_end(silent[0]) == b"", "beyond as many again, the oldest are not even told why"
        assert len(places.overflow) <= 2
        held[0].close()
        poll_until(lambda: len(places.served) < 2)
        assert edge.request("GET", "/echo").status == 200
        connections.close()
        poll_until(lambda: (len(places.served), len(places.overflow)) == (0, 0))


def test_slow_large_bodies_do_not_block_others(tmp_path: Path) -> None:
    limits = ConnectionLimits(max_large_bodies=2, max_total_body_bytes=8 * LARGE)
    with RunningEdge(routes(Gate()), tmp_path, limits=limits) as edge, contextlib.ExitStack() as connections:
        admission = edge.server.server_context.admission
        slow = [connections.enter_context(edge.connect()) for _ in range(5)]
        for connection in slow:
            connection.sendall(post_head(edge, f"Content-Length: {LARGE}", target="POST /echo") + b"x" * 100)
        poll_until(lambda: admission.body_bytes == 500)
        assert edge.request("POST", "/echo", b"y" * LARGE).status == 200
        for nearly_whole, connection in enumerate(slow[:3], start=1):
            # One by one: were all of them half in, none might fit.
            connection.sendall(b"x" * (LARGE - 101))
            held = nearly_whole * (LARGE - 1) + (5 - nearly_whole) * 100
            poll_until(lambda held=held: admission.body_bytes == held)
        slow[3].sendall(b"x" * (LARGE - 101))
        assert_busy(read_to_end(slow[3]))  # beside what the fifth has sent there is no room for it
        slow[4].sendall(b"x" * (LARGE - 101))
        poll_until(lambda: admission.body_bytes == 4 * (LARGE - 1))
        assert edge.request("POST", "/echo", b"y" * 60_000).status == 200
        for connection in slow:
            connection.close()
        assert_nothing_held(edge)


def test_a_large_body_is_refused_while_all_slots_are_in_use(tmp_path: Path) -> None:
    gate = Gate()
    with (
        RunningEdge(routes(gate), tmp_path, limits=ConnectionLimits(max_large_bodies=1)) as edge,
        edge.connect() as late,
    ):
        late.sendall(post_head(edge, f"Content-Length: {LARGE}") + b"x" * (LARGE - 1))
        poll_until(lambda: edge.server.server_context.admission.body_bytes == LARGE - 1)
        held = Held(edge, gate, 1, b"x" * LARGE)
        late.sendall(b"x")
        assert_busy(read_to_end(late))
        gate.open(edge)
        assert [answer.status for answer in held.answers()] == [200]
        assert_nothing_held(edge)
        assert edge.state.counters.requests == 2
        assert not gate.entered.acquire(blocking=False), "the refused one was not begun"


def test_idle_connections_are_closed_for_new_ones_longest_idle_first(tmp_path: Path) -> None:
    with RunningEdge(routes(Gate()), tmp_path, limits=ConnectionLimits(connections=3)) as edge:
        places = edge.server.server_context.connections
        used, speaking, silent = (edge.connect() for _ in range(3))
        speaking.sendall(b"GET /echo")
        poll_until(lambda: len(places.served) == 3)
        used.sendall(post_head(edge, target="GET /echo"))
        assert parse_answer(used.recv(65536)).status == 200
        for _ in range(30):
            assert edge.request("GET", "/echo").status == 200
        assert silent.recv(1) == b""
        burst = [edge.connect() for _ in range(60)]
        assert edge.request("GET", "/echo").status == 200
        assert used.recv(1) == b""
        assert len(places.served) <= 3
        speaking.sendall(f" HTTP/1.1\r\nHost: 127.0.0.1:{edge.port}\r\n\r\n".encode())
        assert parse_answer(speaking.recv(65536)).status == 200
        for connection in (used, speaking, silent, *burst):
            connection.close()
        poll_until(lambda: len(places.served) == 0)


def test_a_shed_short_request_keeps_its_connection(tmp_path: Path) -> None:
    gate = Gate()
    with RunningEdge(routes(gate), tmp_path, limits=ConnectionLimits(max_in_flight=1)) as edge:
        held = Held(edge, gate, 1, b"{}")
        with edge.connect() as connection:
            for _ in range(3):
                connection.sendall(post_head(edge, "Content-Length: 1000") + b"x" * 1000)
                answer = parse_answer(connection.recv(65536))
                assert (answer.status, answer.body["code"], answer.headers["retry-after"]) == (503, "busy", "1")
                assert "connection" not in answer.headers
            gate.open(edge)
            assert [answer.status for answer in held.answers()] == [200]
            assert_nothing_held(edge)
            connection.sendall(post_head(edge, target="GET /echo"))
            assert parse_answer(connection.recv(65536)).status == 200
        assert edge.server.server_context.admission.shed == 3


def complete(admission: Admission, limits: ConnectionLimits, *, is_write: bool) -> Ticket | None:
    """A request that arrives at once, head and body."""
    ticket = admission.admit(10, limits, is_write=is_write)
    if ticket is not None:
        assert ticket.complete_body(limits)
    return ticket


@pytest.mark.parametrize("is_write", [True, False])
def test_a_class_takes_as_many_as_its_bound_and_one_more_for_each_that_is_answered(*, is_write: bool) -> None:
    admission, limits = Admission(), ConnectionLimits(max_in_flight=50)
    inside = [complete(admission, limits, is_write=is_write) for _ in range(60)]
    assert [ticket is not None for ticket in inside] == [True] * 50 + [False] * 10
    assert (admission.in_flight, admission.shed) == (50, 10)
    for ticket in inside[:20]:
        assert ticket is not None
        ticket.release()
    assert sum(complete(admission, limits, is_write=is_write) is not None for _ in range(30)) == 20


def test_a_full_class_takes_nothing_from_the_other() -> None:
    admission, limits = Admission(), ConnectionLimits(max_in_flight=5)
    assert all(complete(admission, limits, is_write=True) for _ in range(5))
    assert all(complete(admission, limits, is_write=False) for _ in range(5))
    assert complete(admission, limits, is_write=True) is None
    assert complete(admission, limits, is_write=False) is None


def test_overload_lasts_until_a_moment_after_slots_are_free() -> None:
    now = 0.0
    admission, limits = Admission(lambda: now), ConnectionLimits(max_in_flight=2)
    inside = [complete(admission, limits, is_write=True) for _ in range(2)]
    assert not admission.recently_overloaded, "all of them have a place"
    assert complete(admission, limits, is_write=True) is None
    assert admission.recently_overloaded
    for ticket in inside:
        assert ticket is not None
        ticket.release()
    now += 0.4
    assert admission.recently_overloaded
    now += 0.2
    assert not admission.recently_overloaded


def test_a_request_that_was_answered_before_its_body_ended_holds_nothing_more() -> None:
    admission, limits = Admission(), ConnectionLimits()
    ticket = admission.admit(LARGE, limits)
    assert ticket is not None
    ticket.release()
    assert ticket.complete_body(limits)
    assert (admission.in_flight, admission.body_bytes, admission.large_bodies) == (0, 0, 0)


@pytest.mark.parametrize("sizes", [(10,), (LARGE_BODY_BYTES, 1), (0, 0, LARGE)])
def test_an_admitted_request_releases_exactly_what_it_took(sizes: tuple[int, ...]) -> None:
    admission, limits = Admission(), ConnectionLimits()
    admitted = admission.admit(sizes[0], limits)
    assert admitted is not None
    assert all(admitted.add_bytes(size, limits) for size in sizes[1:])
    assert admission.large_bodies == 0, "nobody holds a place by sending slowly"
    assert admitted.complete_body(limits)
    assert (admission.in_flight, admission.body_bytes) == (1, sum(sizes))
    assert admission.large_bodies == (sum(sizes) > LARGE_BODY_BYTES)
    admitted.release()
    admitted.release()
    assert (admission.in_flight, admission.body_bytes, admission.large_bodies) == (0, 0, 0)


def test_a_single_body_is_admitted_even_above_the_limit() -> None:
    limits = ConnectionLimits(max_total_body_bytes=10)
    admission = Admission()
    assert admission.admit(1000, limits) is not None
    assert admission.admit(1, limits) is None
    assert admission.admit(0, limits) is not None


PLAIN = b"POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"


@pytest.mark.parametrize(
    "data",
    [
        PLAIN,
        PLAIN.replace(b"Content-Length", b"content-LENGTH").replace(b": 2", b":2\t "),
        PLAIN.replace(b"Host", b"Connection: Keep-Alive\r\nX-Word: \xe2\x82\xac\r\nHost"),
        b"GET /a?b=c HTTP/1.1\r\nHost: a\r\n\r\n",
        PLAIN.replace(b": 2", b": 9000") + b"x" * 8998,
    ],
)
def test_the_fast_path_recognises_an_ordinary_request(data: bytes) -> None:
    assert plain_request(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        PLAIN[:-1],
        PLAIN + b"{",
        PLAIN + PLAIN,
        PLAIN[:30],
        b"\r\n" + PLAIN,
        PLAIN.replace(b"1.1", b"1.0"),
        PLAIN.replace(b"POST", b"HEAD"),
        PLAIN.replace(b"POST", b"CONNECT"),
        PLAIN.replace(b"/wait", b"http://a/"),
        PLAIN.replace(b"/wait", b"/w\xff"),
        PLAIN.replace(b"\r\n", b"\n"),
        PLAIN.replace(b": 2", b": +2"),
        PLAIN.replace(b": 2", b": 0x2"),
        PLAIN.replace(b": 2", b": \xb2"),
        PLAIN.replace(b": 2", b": 00000002"),
        PLAIN.replace(b": 2", b": 2, 2"),
        PLAIN.replace(b": 2", b": 2\r\nContent-Length: 2"),
        PLAIN.replace(b"Length:", b"Length :"),
        PLAIN.replace(b"Host", b"Transfer-Encoding: chunked\r\nHost"),
        PLAIN.replace(b"Host", b"TRANSFER-encoding: identity\r\nHost"),
        PLAIN.replace(b"Host", b"Expect: 100-continue\r\nHost"),
        PLAIN.replace(b"Host", b"Connection: close\r\nHost"),
        PLAIN.replace(b"Host", b"Connection: keep-alive, close\r\nHost"),
        PLAIN.replace(b"Host", b"Upgrade: websocket\r\nHost"),
        PLAIN.replace(b"Host: a", b"Host: a\r\n folded"),
        PLAIN.replace(b"Host: a", b"Host: a\x00"),
        PLAIN.replace(b"Host: a", b": a"),
        PLAIN.replace(b"Host: a", b"Bad Header: a"),
        PLAIN.replace(b"Host: a\r\n", b"a:\r\n" * 200),
        PLAIN.replace(b": 2", b": 90000") + b"x" * 89998,
    ],
)
def test_the_fast_path_leaves_unusual_requests_to_the_parser(data: bytes) -> None:
    assert not plain_request(data)


class StoppedLoop:
    """The server does nothing while inside ``with``; what clients do meanwhile waits in the kernel."""

    def __init__(self, edge: RunningEdge) -> None:
        self._edge = edge
        self._go_on = threading.Event()

    def __enter__(self) -> None:
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            self._go_on.wait(CLIENT_WAIT_S)

        self._edge.call_soon(stop)
        assert stopped.wait(CLIENT_WAIT_S)

    def __exit__(self, *_: object) -> None:
        self._go_on.set()


def test_overload_is_read_in_slices_and_health_is_answered_between_them(tmp_path: Path) -> None:
    gate = Gate()
    burst = 4 * READS_PER_ITERATION
    limits = ConnectionLimits(max_in_flight=1, connections=burst + 8)
    still_waiting: list[int] = []

    async def health_under_overload(call: Call[Any]) -> HttpResponse:
        still_waiting.append(len(server_context.read_scheduler.waiting))
        return await healthy(call)

    health = plain_route("GET", "/health", health_under_overload)
    served = tuple(route for route in routes(gate) if route.path != "/health")
    with RunningEdge((*served, health), tmp_path, limits=limits) as edge, contextlib.ExitStack() as connections:
        server_context = edge.server.server_context
        held = Held(edge, gate, 1, b"{}")
        senders = [connections.enter_context(edge.connect()) for _ in range(burst)]
        asker = connections.enter_context(edge.connect())
        poll_until(lambda: len(server_context.connections.served) == burst + 2)
        with StoppedLoop(edge):
            for sender in senders:
                sender.sendall(post_head(edge, "Content-Length: 2") + b"{}")
            asker.sendall(post_head(edge, target="GET /health"))
        assert parse_answer(asker.recv(65536)).status == 200
        for sender in senders:
            answer = parse_answer(sender.recv(65536))
            assert (answer.status, answer.body["code"], answer.headers["retry-after"]) == (503, "busy", "1")
            assert len(answer.headers["x-signet-trace-id"]) > 20
        assert still_waiting[0] > 0
        assert server_context.admission.shed == server_context.rejections.total == burst
        gate.open(edge)
        assert [answer.status for answer in held.answers()] == [200]
        senders[0].sendall(post_head(edge, target="GET /echo"))
        assert parse_answer(senders[0].recv(65536)).status == 200
        assert_nothing_held(edge)


@pytest.mark.parametrize("then", ["more", "drain", "leave"])
def test_deferred_reads_are_neither_lost_nor_reordered(tmp_path: Path, then: str) -> None:
    gate = Gate()
    with RunningEdge(routes(gate), tmp_path, limits=ConnectionLimits(max_in_flight=1)) as edge:
        server_context = edge.server.server_context
        held = Held(edge, gate, 1, b"{}")
        with edge.connect() as connection:
            poll_until(lambda: len(server_context.connections.served) == 2)
            protocol: Any = next(iter(server_context.connections.idle))
            request = post_head(edge, "Content-Length: 2") + b"{}"

            def arrive() -> None:
                protocol.data_received(request)
                assert len(server_context.read_scheduler.waiting) == 1
                if then == "more":
                    protocol.data_received(request[:20])
                elif then == "drain":
                    protocol.shutdown()
                else:
                    protocol.transport.abort()

            edge.call_soon(arrive)
            if then == "leave":
                poll_until(lambda: len(server_context.connections.served) == 1)
                assert server_context.rejections.total == 0
            else:
                assert parse_answer(connection.recv(65536)).status == 503
            if then == "more":
                connection.sendall(request[20:])
                assert parse_answer(connection.recv(65536)).status == 503
            elif then == "drain":
                assert connection.recv(1) == b""
        gate.open(edge)
        assert [answer.status for answer in held.answers()] == [200]
        assert_nothing_held(edge)
        assert edge.request("POST", "/echo", {"small": True}).status == 200


def test_a_client_that_does_not_read_rejections_gets_no_more(tmp_path: Path) -> None:
    gate = Gate()
    with RunningEdge(routes(gate), tmp_path, limits=ConnectionLimits(max_in_flight=1)) as edge:
        server_context = edge.server.server_context
        held = Held(edge, gate, 1, b"{}")
        with edge.connect() as connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.settimeout(CLIENT_WAIT_S)
            for _ in range(1_000_000):
                connection.sendall(post_head(edge, "Content-Length: 2") + b"{}")
            raise AssertionError("the refusals are kept for a client that does not read them")
        poll_until(lambda: len(server_context.connections.served) == 1)
        gate.open(edge)
        assert [answer.status for answer in held.answers()] == [200]


def test_many_new_connections_are_accepted_in_a_few_loop_iterations(tmp_path: Path) -> None:
    with RunningEdge(routes(Gate()), tmp_path) as edge, contextlib.ExitStack() as burst:
        places = edge.server.server_context.connections
        turns = 0
        accepted = threading.Event()

        def count() -> None:
            nonlocal turns
            turns += 1
            if len(places.served) == 96:
                accepted.set()
            else:
                edge.call_soon(count)

        with StoppedLoop(edge):
            for _ in range(96):
                burst.enter_context(edge.connect())
            edge.call_soon(count)
        assert accepted.wait(CLIENT_WAIT_S)
        assert turns <= 96 // ACCEPTS_PER_ITERATION + 8


def test_a_connection_with_an_unread_request_is_not_evicted(tmp_path: Path) -> None:
    with RunningEdge(routes(Gate()), tmp_path, limits=ConnectionLimits(connections=2)) as edge:
        places = edge.server.server_context.connections
        with contextlib.ExitStack() as connections:
            waiting = [connections.enter_context(edge.connect()) for _ in range(2)]
            poll_until(lambda: len(places.idle) == 2)
            made_room = threading.Event()

            def burst() -> None:
                for connection in waiting:
                    connection.sendall(post_head(edge, target="GET /echo"))
                if places.acquire(cast("Any", object()), 2):  # as for a newcomer that is accepted now
                    made_room.set()

            edge.call_soon(burst)
            for connection in waiting:
                assert parse_answer(connection.recv(65536)).status == 200
            assert not made_room.is_set()
        poll_until(lambda: len(places.served) == 0)


@pytest.mark.parametrize("last", ["keep-alive", "close"])
def test_a_client_that_does_not_read_its_response_loses_its_connection(tmp_path: Path, last: str) -> None:
    async def long_answer(call: Call[Any]) -> HttpResponse:
        return HttpResponse(b"x" * 30_000)

    limits = ConnectionLimits(keep_alive_ms=300, write_ms=500)
    long_route = plain_route("GET", "/long", long_answer)
    with RunningEdge((long_route,), tmp_path, limits=limits) as edge:
        places = edge.server.server_context.connections
        with edge.connect() as connection:
            asked = 0

            def unsent(header: str) -> int:
                nonlocal asked
                asked += 1
                connection.sendall(post_head(edge, f"Connection: {header}", target="GET /long"))
                poll_until(lambda: edge.state.counters.requests == asked and edge.state.counters.in_flight == 0)
                (protocol,) = edge.server.server_state.connections
                return int(protocol.transport.get_write_buffer_size())

            while not unsent("keep-alive"):  # the kernel still takes whatever is written
                pass
            if last == "close":
                unsent("close")
            poll_until(lambda: not edge.server.server_state.connections)
            assert len(places.served) == 0


def test_two_sequential_clients_never_shed_each_other(tmp_path: Path) -> None:
    refused: list[int] = []
    with RunningEdge(routes(Gate()), tmp_path, limits=ConnectionLimits(max_large_bodies=2)) as edge:
        request = post_head(edge, f"Content-Length: {LARGE}", target="POST /echo") + b"x" * LARGE

        def ask() -> None:
            with edge.connect() as connection, connection.makefile("rb") as answers:
                for number in range(300):
                    connection.sendall(request)
                    if b" 503 " in answers.readline():
                        refused.append(number)
                        return
                    length = 0
                    while (line := answers.readline()) != b"\r\n":
                        if line.lower().startswith(b"content-length:"):
                            length = int(line.split(b":")[1])
                    answers.read(length)

        askers = [threading.Thread(target=ask) for _ in range(2)]
        for asker in askers:
            asker.start()
        for asker in askers:
            asker.join(60)
    assert refused == []


def test_an_unreadable_connection_does_not_delay_the_others() -> None:
    class Connection:
        def __init__(self, fault: Exception | None = None) -> None:
            self.read = False
            self._fault = fault

        def read_now(self) -> None:
            self.read = True
            if self._fault is not None:
                raise self._fault

    faulty = Connection(OSError("the kernel says no"))
    burst = [faulty, *(Connection() for _ in range(3 * READS_PER_ITERATION))]
    loop = asyncio.new_event_loop()
    faults: list[object] = []
    loop.set_exception_handler(lambda _, context: faults.append(context["exception"]))
    readings = ReadScheduler()
    for connection in burst:
        readings.enqueue(cast("Any", connection), loop)
    for _ in range(6):
        loop.call_soon(loop.stop)
        loop.run_forever()
    loop.close()
    assert [type(fault) for fault in faults] == [OSError]
    assert all(connection.read for connection in burst)
    assert not readings.waiting


@pytest.mark.parametrize("target", ["/echo", "/health"])
def test_the_oldest_overflow_connection_replaces_an_idle_one(target: str, tmp_path: Path) -> None:
    gate = Gate()
    with RunningEdge(routes(gate), tmp_path, limits=ConnectionLimits(connections=2)) as edge:
        places = edge.server.server_context.connections
        first, second = edge.connect(), edge.connect()
        gate.hold(edge, first, second)
        oldest = edge.connect()
        poll_until(lambda: len(places.overflow) == 1)
        newest = edge.connect()
        poll_until(lambda: len(places.overflow) == 2)
        gate.open(edge)
        assert first.recv(65536).startswith(b"HTTP/1.1 200")
        poll_until(lambda: len(places.idle) >= 1)
        oldest.sendall(post_head(edge, target=f"GET {target}"))
        assert oldest.recv(65536).startswith(b"HTTP/1.1 200")
        for client in (first, second, oldest, newest):
            client.close()
