"""Size and time limits of a connection: the real server class on a loopback socket."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_actors.errors import Busy
from signet_actors.gateway.http.route import Call, HttpResponse, Route
from signet_actors.gateway.server.connection_limits import ConnectionLimits
from signet_actors.runtime.messaging.requests import mark_sent
from tests.support.edge import CLIENT_WAIT_S, RunningEdge, echo, gateway_config, parse_answer, read_to_end
from tests.support.routes import plain_route

BODY_LIMIT = 10_000
SHORT_MS = 150


class Gate:
    """Handlers that wait until the test lets them go."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.release: Any = None

    async def handler(self, call: Call[Any]) -> HttpResponse:
        if self.release is None:
            self.release = asyncio.Event()
        self.entered.release()
        await self.release.wait()
        return await echo(call)

    async def handler_of_a_sent_change(self, call: Call[Any]) -> HttpResponse:
        mark_sent()
        return await self.handler(call)

    def open(self, edge: RunningEdge) -> None:
        edge.call_soon(self.release.set)

    def wait_entered(self) -> None:
        assert self.entered.acquire(timeout=CLIENT_WAIT_S)

    def hold(self, edge: RunningEdge, *connections: socket.socket) -> None:
        """Send a whole request on each of the connections, whose handler waits."""
        for connection in connections:
            connection.sendall(head(edge, "Content-Type: application/json", "Content-Length: 2", target="POST /wait"))
            connection.sendall(b"{}")
            self.wait_entered()


async def large(call: Call[Any]) -> HttpResponse:
    return HttpResponse({"text": "x" * 40_000_000})


def routes(the_gate: Gate) -> tuple[Route, ...]:
    return (
        plain_route("POST", "/echo", echo),
        plain_route("GET", "/echo", echo),
        plain_route("GET", "/wait", the_gate.handler),
        plain_route("POST", "/wait", the_gate.handler, mutates=True),
        plain_route("POST", "/sent", the_gate.handler_of_a_sent_change, mutates=True),
        plain_route("GET", "/large", large),
    )


LIMITS = ConnectionLimits(
    header_bytes=4096, header_ms=5000, body_bytes=BODY_LIMIT, body_ms=5000, keep_alive_ms=5000, connections=64
)


@pytest.fixture
def edge(tmp_path: Path) -> Iterator[RunningEdge]:
    with RunningEdge(
        routes(Gate()), tmp_path, limits=LIMITS, config=gateway_config(max_body_bytes=BODY_LIMIT)
    ) as running:
        yield running


def head(edge: RunningEdge, *lines: str, target: str = "POST /echo") -> bytes:
    """A request head for this edge."""
    return "\r\n".join([f"{target} HTTP/1.1", f"Host: 127.0.0.1:{edge.port}", *lines, "", ""]).encode()


def assert_refused(raw: bytes, status: int, code: str) -> None:
    answer = parse_answer(raw)
    assert answer.status == status, raw[:400]
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["connection"] == "close"
    assert answer.headers["x-signet-trace-id"]
    assert answer.body["code"] == code
    assert answer.body["error"]


def assert_serves(edge: RunningEdge) -> None:
    assert edge.request("GET", "/echo").status == 200


def test_headers_beyond_the_limit_are_refused(edge: RunningEdge) -> None:
    assert_refused(edge.raw(head(edge, "X-Long: " + "a" * 5000)), 431, "payload_too_large")
    assert_serves(edge)


def test_a_header_that_never_ends_is_refused_at_the_limit(edge: RunningEdge) -> None:
    endless = head(edge)[:-2] + b"X-Long: " + b"a" * 9000
    assert_refused(edge.raw(endless), 431, "payload_too_large")


def test_a_request_line_beyond_the_limit_is_refused(edge: RunningEdge) -> None:
    assert_refused(edge.raw(head(edge, target="GET /" + "a" * 5000)), 431, "payload_too_large")


def test_two_thousand_headers_are_refused(edge: RunningEdge) -> None:
    assert_refused(edge.raw(head(edge, *(f"a{n}: " for n in range(300)))), 431, "payload_too_large")


def test_headers_just_below_the_limit_are_answered(edge: RunningEdge) -> None:
    answer = edge.request("POST", "/echo", b"{}", {"X-Long": "a" * 3500})
    assert answer.status == 200


def test_a_declared_gigabyte_is_refused_before_it_is_sent(edge: RunningEdge) -> None:
    assert_refused(edge.raw(head(edge, "Content-Length: 1073741824")), 413, "payload_too_large")


def test_a_refused_body_that_is_sent_anyway_does_not_hide_the_answer(edge: RunningEdge) -> None:
    body = b"x" * 3_000_000
    raw = edge.raw(head(edge, f"Content-Length: {len(body)}") + body)
    assert_refused(raw, 413, "payload_too_large")


def test_a_chunked_body_is_counted_while_it_streams(edge: RunningEdge) -> None:
    chunk = b"400\r\n" + b"x" * 1024 + b"\r\n"
    raw = edge.raw(head(edge, "Transfer-Encoding: chunked") + chunk * 40)
    assert_refused(raw, 413, "payload_too_large")
    assert_serves(edge)


def test_a_chunked_body_within_the_limit_is_read_whole(edge: RunningEdge) -> None:
    request = head(edge, "Transfer-Encoding: chunked", "Connection: close") + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    assert parse_answer(edge.raw(request)).body["body"] == "abcde"


def test_a_body_of_exactly_the_limit_is_read_whole(edge: RunningEdge) -> None:
    answer = edge.request("POST", "/echo", b"x" * BODY_LIMIT)
    assert answer.status == 200
    assert len(answer.body["body"]) == BODY_LIMIT


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 3", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked", "Content-Length: 3"),
        ("Content-Length: 3", "Content-Length: 4"),
        ("Content-Length: 3", "Content-Length: 3"),
        ("Content-Length: -1",),
        ("Content-Length: 3abc",),
        ("Content-Length: 99999999999999999999999999",),
        ("Transfer-Encoding: gzip, chunked",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: identity",),
        ("X-Folded: a", " b"),
        ("Bad Header: x",),
        ("X-Nul: a\x00b",),
    ],
)
def test_ambiguous_or_broken_framing_is_not_valid(edge: RunningEdge, lines: tuple[str, ...]) -> None:
    assert_refused(edge.raw(head(edge, *lines) + b"abc"), 400, "invalid_request")
    assert_serves(edge)


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/2.0\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"CONNECT example.org:443 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_unsupported_request_forms_are_not_valid(edge: RunningEdge, data: bytes) -> None:
    assert_refused(edge.raw(data), 400, "invalid_request")


def test_a_bad_chunk_is_not_valid(edge: RunningEdge) -> None:
    raw = edge.raw(head(edge, "Transfer-Encoding: chunked") + b"zz\r\nabc\r\n")
    assert_refused(raw, 400, "invalid_request")


def test_an_unknown_expectation_fails_and_a_known_one_is_answered(edge: RunningEdge) -> None:
    assert_refused(edge.raw(head(edge, "Expect: 200-ok", "Content-Length: 2")), 417, "invalid_request")
    with edge.connect() as connection:
        connection.sendall(head(edge, "Expect: 100-continue", "Content-Length: 2", "Connection: close"))
        assert connection.recv(100).startswith(b"HTTP/1.1 100 Continue\r\n")
        connection.sendall(b"{}")
        assert parse_answer(read_to_end(connection)).body["body"] == "{}"


def test_a_refused_upload_gets_no_100_continue(edge: RunningEdge) -> None:
    raw = edge.raw(head(edge, "Expect: 100-continue", "Content-Length: 99999999"))
    assert_refused(raw, 413, "payload_too_large")


def test_an_upgrade_is_answered_as_a_plain_request(edge: RunningEdge) -> None:
    lines = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: x", "Sec-WebSocket-Version: 13")
    answer = parse_answer(edge.raw(head(edge, *lines, target="GET /echo") + b"\x81\x85garbage"))
    assert answer.status == 200
    assert answer.headers["connection"] == "close"


def test_pipelined_requests_are_answered_in_order(edge: RunningEdge) -> None:
    requests = b"".join(head(edge, target=f"GET /echo?n={n}") for n in range(5))
    raw = edge.raw(requests + head(edge, "Connection: close", target="GET /echo?n=5"))
    assert [json.loads(body)["query"]["n"] for body in bodies_of(raw)] == ["0", "1", "2", "3", "4", "5"]


def test_too_many_pipelined_requests_are_refused_after_the_first_answer(edge: RunningEdge) -> None:
    raw = edge.raw(head(edge, target="GET /echo") * 200)
    assert 1 <= raw.count(b"HTTP/1.1 200") <= 9
    assert_serves(edge)


def test_a_pipelined_request_with_a_broken_second_one_still_gets_the_first_answer(edge: RunningEdge) -> None:
    raw = edge.raw(head(edge, target="GET /echo") + b"nonsense\r\n\r\n")
    assert parse_answer(raw).status == 200


def bodies_of(raw: bytes) -> Iterator[bytes]:
    """The bodies of consecutive answers."""
    while raw:
        answer = parse_answer(raw)
        yield answer.raw
        raw = raw[raw.index(b"\r\n\r\n") + 4 + len(answer.raw) :]


def test_a_slow_head_times_out_while_others_are_served(tmp_path: Path) -> None:
    limits = ConnectionLimits(header_ms=SHORT_MS, connections=64)
    with RunningEdge(routes(Gate()), tmp_path, limits=limits) as edge:
        slow = [edge.connect() for _ in range(8)]
        for connection in slow:
            connection.sendall(b"GET /echo HTTP/1.1\r\nHost: ")
        assert_serves(edge)
        for connection in slow:
            assert_refused(read_to_end(connection), 408, "request_timeout")
            connection.close()


def test_more_bytes_do_not_extend_the_deadline_of_a_head(tmp_path: Path) -> None:
    with (
        RunningEdge(routes(Gate()), tmp_path, limits=ConnectionLimits(header_ms=SHORT_MS)) as edge,
        edge.connect() as connection,
    ):
        connection.settimeout(0.02)
        connection.sendall(b"GET /echo HTTP/1.1\r\n")
        raw = b""
        for _ in range(500):
            try:
                raw = connection.recv(65536)
                break
            except TimeoutError:
                connection.sendall(b"a: b\r\n")
        assert_refused(raw, 408, "request_timeout")


def test_a_slow_body_times_out(tmp_path: Path) -> None:
    with RunningEdge(routes(Gate()), tmp_path, limits=ConnectionLimits(body_ms=SHORT_MS)) as edge:
        with edge.connect() as connection:
            connection.sendall(head(edge, "Content-Length: 100") + b"{")
            assert_refused(read_to_end(connection), 408, "request_timeout")
        assert_serves(edge)


@pytest.mark.parametrize("sent", [b"", b"\r\n"])
def test_an_idle_connection_is_closed(tmp_path: Path, sent: bytes) -> None:
    with (
        RunningEdge(routes(Gate()), tmp_path, limits=ConnectionLimits(header_ms=SHORT_MS)) as edge,
        edge.connect() as connection,
    ):
        connection.sendall(sent)
        assert read_to_end(connection)[:12] in {b"", b"HTTP/1.1 408"}


def test_a_kept_connection_is_closed_after_its_time(tmp_path: Path) -> None:
    with RunningEdge(routes(Gate()), tmp_path, limits=ConnectionLimits(keep_alive_ms=SHORT_MS)) as edge:
        raw = edge.raw(head(edge, target="GET /echo"))
        assert parse_answer(raw).status == 200


def test_a_kept_connection_serves_the_next_request_and_then_times_its_head(tmp_path: Path) -> None:
    with (
        RunningEdge(routes(Gate()), tmp_path, limits=ConnectionLimits(header_ms=SHORT_MS)) as edge,
        edge.connect() as connection,
    ):
        for _ in range(3):
            connection.sendall(head(edge, "Content-Length: 2") + b"{}")
            assert parse_answer(connection.recv(65536)).status == 200
        connection.sendall(b"GET /echo HT")
        assert_refused(read_to_end(connection), 408, "request_timeout")


def test_a_refusal_before_the_body_leaves_a_usable_connection(edge: RunningEdge) -> None:
    with edge.connect() as connection:
        connection.sendall(head(edge, "Origin: http://evil.example", "Content-Length: 5"))
        assert parse_answer(connection.recv(65536)).status == 403
        connection.sendall(b"12345" + head(edge, target="GET /echo"))
        assert parse_answer(connection.recv(65536)).status == 200


def test_connections_beyond_the_limit_are_told_to_retry(tmp_path: Path) -> None:
    the_gate = Gate()
    with RunningEdge(routes(the_gate), tmp_path, limits=ConnectionLimits(connections=4)) as edge:
        held = [edge.connect() for _ in range(4)]
        for connection in held:
            connection.sendall(head(edge, target="GET /echo"))
            assert parse_answer(connection.recv(65536)).status == 200
        the_gate.hold(edge, *held)
        raw = edge.raw(b"")
        assert_refused(raw, 503, "busy")
        assert parse_answer(raw).headers["retry-after"] == "1"
        the_gate.open(edge)
        assert parse_answer(held[0].recv(65536)).status == 200
        for connection in held:
            connection.close()


def test_a_client_that_does_not_read_its_answer_is_dropped(tmp_path: Path) -> None:
    with RunningEdge(routes(Gate()), tmp_path, limits=ConnectionLimits(write_ms=SHORT_MS)) as edge:
        with edge.connect() as connection:
            connection.sendall(head(edge, target="GET /large"))
            poll_until(lambda: edge.state.counters.requests == 1 and not edge.server.server_state.connections)
            assert len(read_to_end(connection)) < 40_000_000
        assert_serves(edge)


UNFINISHED = [
    ("GET", "/wait", 503, "unavailable"),
    ("POST", "/wait", 503, "unavailable"),  # nothing was sent: certainly not applied
    ("POST", "/sent", 504, "outcome_unknown"),
]


@pytest.mark.parametrize(("method", "path", "status", "code"), UNFINISHED)
def test_a_slow_handler_is_answered_by_the_deadline(
    tmp_path: Path, method: str, path: str, status: int, code: str
) -> None:
    config = gateway_config(request_timeout_ms=100)
    with RunningEdge(routes(Gate()), tmp_path, config=config) as edge:
        answer = edge.request(method, path)
        assert (answer.status, answer.body["code"]) == (status, code)
        assert answer.headers.get("retry-after") == ("1" if status == 503 else None)


def test_a_drain_finishes_what_is_in_flight_and_accepts_no_more(tmp_path: Path) -> None:
    the_gate = Gate()
    with RunningEdge(routes(the_gate), tmp_path) as edge:
        idle, busy = edge.connect(), edge.connect()
        busy.sendall(head(edge, target="GET /wait"))
        the_gate.wait_entered()
        edge.begin_drain(5000)
        assert read_to_end(idle) == b""
        the_gate.open(edge)
        answer = parse_answer(read_to_end(busy))
        assert answer.status == 200
        assert answer.headers["connection"] == "close"
        idle.close()
        busy.close()
        edge.stop(5000)
        with pytest.raises(ConnectionRefusedError):
            edge.connect()


@pytest.mark.parametrize(("method", "path", "status", "code"), UNFINISHED)
def test_a_request_that_outlasts_the_drain_is_answered_truthfully(
    tmp_path: Path, method: str, path: str, status: int, code: str
) -> None:
    the_gate = Gate()
    with RunningEdge(routes(the_gate), tmp_path) as edge, edge.connect() as connection:
        connection.sendall(head(edge, target=f"{method} {path}"))
        the_gate.wait_entered()
        edge.begin_drain(0)
        answer = parse_answer(read_to_end(connection))
    assert (answer.status, answer.body["code"]) == (status, code)


def test_a_client_that_disconnects_in_its_body_does_no_harm(edge: RunningEdge) -> None:
    with edge.connect() as connection:
        connection.sendall(head(edge, "Content-Length: 100") + b"{")
    assert_serves(edge)
    poll_until(lambda: edge.state.counters.in_flight == 0)
    assert not [line for line in edge.log_lines if line["level"] in {"warning", "error"}]


def test_busy_carries_retry_after(tmp_path: Path) -> None:
    async def busy(call: Call[Any]) -> HttpResponse:
        raise Busy(retry_after_ms=1200)

    with RunningEdge((plain_route("GET", "/busy", busy),), tmp_path) as edge:
        answer = edge.request("GET", "/busy")
        assert (answer.status, answer.headers["retry-after"]) == (503, "2")


def poll_until(condition: Any) -> None:
    """Wait until ``condition`` is true, within the test's time limit."""
    deadline = time.monotonic() + CLIENT_WAIT_S
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        threading.Event().wait(0.005)


@pytest.mark.parametrize(
    "head",
    [b"HEAD /\xff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"HEAD /echo HTTP/1.1\r\nX: " + b"x" * 5000 + b"\r\n\r\n"],
    ids=["not HTTP", "too long"],
)
def test_a_refusal_of_a_head_request_has_no_body(tmp_path: Path, head: bytes) -> None:
    with RunningEdge(routes(Gate()), tmp_path, limits=LIMITS) as edge:
        answer, _, rest = edge.raw(head).partition(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 4")
    assert b"content-length: " in answer
    assert rest == b""
