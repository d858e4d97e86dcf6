"""Reads and status probes are answered while writes wait for the writer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from signet_actors.gateway.http.route import Call, HttpResponse, Route
from signet_actors.gateway.server.connection_limits import ConnectionLimits
from signet_actors.gateway.server.load_shedding import MAX_STATUS_PROBES, Admission, Ticket
from tests.actor.test_gateway_admission import Held, assert_nothing_held, post_head, routes
from tests.actor.test_gateway_edge_limits import Gate, poll_until
from tests.support.edge import RunningEdge, parse_answer
from tests.support.routes import plain_route


class SimulatedTraffic:
    """Requests of two kinds on a clock that the test sets: changes are answered by a writer, if it is there."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.now = 0.0
        self.limits = limits
        self.admission = Admission(lambda: self.now)
        self.writer_is_there = True
        self._changes: list[Ticket] = []

    def change(self) -> bool:
        admitted = self.admission.admit(10, self.limits, is_write=True)
        if admitted is None:
            return False
        assert admitted.complete_body(self.limits)
        self._changes.append(admitted)
        return True

    def read(self) -> bool:
        """Whether it was let in; it is answered at once."""
        admitted = self.admission.admit(10, self.limits)
        if admitted is None:
            return False
        assert admitted.complete_body(self.limits)
        admitted.release()
        return True

    def pass_time(self, seconds: float, *, changes_per_s: int, reads_per_s: int) -> tuple[int, int]:
        """Changes let in, and reads that were not."""
        let_in = refused = 0
        for step in range(int(seconds * 1000)):
            self.now += 0.001
            if self.writer_is_there:
                for admitted in self._changes:
                    admitted.release()
                self._changes.clear()
            let_in += sum(self.change() for _ in range(changes_per_s // 1000))
            if step % (1000 // reads_per_s) == 0:
                refused += not self.read()
        return let_in, refused


def test_writes_that_wait_for_a_crashed_writer_do_not_block_readers() -> None:
    traffic = SimulatedTraffic(ConnectionLimits())
    traffic.pass_time(2, changes_per_s=5000, reads_per_s=20)
    traffic.writer_is_there = False
    traffic.pass_time(0.4, changes_per_s=5000, reads_per_s=20)
    let_in, refused = traffic.pass_time(1.6, changes_per_s=5000, reads_per_s=20)
    assert refused == 0
    assert let_in == 0
    assert traffic.admission.in_flight <= 2 * traffic.limits.max_in_flight
    traffic.writer_is_there = True
    let_in, refused = traffic.pass_time(1, changes_per_s=5000, reads_per_s=20)
    assert let_in > 4000
    assert refused == 0


def test_about_half_of_the_slots_may_wait_for_the_writer() -> None:
    traffic = SimulatedTraffic(ConnectionLimits(max_in_flight=128))
    traffic.writer_is_there = False
    let_in, refused = traffic.pass_time(10, changes_per_s=1000, reads_per_s=10)
    assert 64 <= let_in <= 192
    assert traffic.admission.in_flight == let_in
    assert refused <= 10 * 0.4


def test_one_slow_write_blocks_nothing_and_takes_no_slot() -> None:
    traffic = SimulatedTraffic(ConnectionLimits(max_in_flight=8))
    long = traffic.admission.admit(10, traffic.limits, is_write=True)
    assert long is not None
    assert long.complete_body(traffic.limits)
    for _ in range(1000):
        traffic.now += 0.01
        assert [traffic.change() for _ in range(7)] == [True] * 7
        traffic.pass_time(0.001, changes_per_s=0, reads_per_s=10)
    long.release()
    long.release()
    assert traffic.admission.in_flight == 0


def test_a_request_with_a_slow_body_takes_no_slot_of_the_writer() -> None:
    traffic = SimulatedTraffic(ConnectionLimits(max_in_flight=8))
    slow_bodies_sent = [traffic.admission.admit(10, traffic.limits, is_write=True) for _ in range(6)]
    traffic.now += 60
    assert traffic.change(), "the writer is there, and the lane is not closed"
    for admitted in slow_bodies_sent:
        assert admitted is not None
        admitted.release()


def test_slow_short_bodies_do_not_block_others() -> None:
    traffic = SimulatedTraffic(ConnectionLimits())
    slow_bodies_sent = [traffic.admission.admit(10, traffic.limits) for _ in range(traffic.limits.max_in_flight)]
    traffic.pass_time(0.4, changes_per_s=1000, reads_per_s=100)
    let_in, refused = traffic.pass_time(2, changes_per_s=1000, reads_per_s=100)
    assert (let_in, refused) == (2000, 0)
    for admitted in slow_bodies_sent:
        assert admitted is not None
        assert admitted.complete_body(traffic.limits)
        admitted.release()
    assert traffic.admission.in_flight == 1, "the last change is not answered yet"


def test_a_slow_body_needs_a_slot_when_it_is_complete() -> None:
    traffic = SimulatedTraffic(ConnectionLimits(max_in_flight=4))
    slow_bodies_sent = [traffic.admission.admit(10, traffic.limits, is_write=True) for _ in range(4)]
    traffic.now += 0.3
    assert [traffic.change() for _ in range(5)] == [True] * 4 + [False]
    for admitted in slow_bodies_sent:
        assert admitted is not None
        assert not admitted.complete_body(traffic.limits)
        admitted.release()
    assert traffic.admission.in_flight == 4


def test_others_are_answered_while_slow_short_bodies_use_every_slot(tmp_path: Path) -> None:
    with RunningEdge(routes(Gate()), tmp_path, limits=ConnectionLimits(max_in_flight=2)) as edge:
        admission = edge.server.server_context.admission
        slow = [edge.connect() for _ in range(2)]
        for connection in slow:
            connection.sendall(post_head(edge, "Content-Length: 2", target="POST /echo") + b"{")
        poll_until(lambda: admission.body_bytes == 4)
        poll_until(lambda: edge.request("POST", "/echo", {}).status == 200)
        for _ in range(20):
            assert edge.request("POST", "/echo", {}).status == 200
        slow[0].sendall(b"}")
        assert parse_answer(slow[0].recv(65536)).status == 200
        for connection in slow:
            connection.close()
        assert_nothing_held(edge)


def test_reads_are_answered_while_writes_wait_for_the_writer(tmp_path: Path) -> None:
    gate = Gate()
    with RunningEdge(routes(gate), tmp_path, limits=ConnectionLimits(max_in_flight=4)) as edge:
        held = Held(edge, gate, 4, b"{}")
        poll_until(lambda: edge.request("POST", "/echo", {}).status == 200)
        for _ in range(20):
            assert edge.request("POST", "/wait", {}).status == 503
            assert edge.request("POST", "/echo", {}).status == 200
        gate.open(edge)
        assert [answer.status for answer in held.answers()] == [200] * 4
        assert_nothing_held(edge)
        assert edge.request("POST", "/wait", {}).status == 200


class Glanced:
    """Routes of operators: each answer says how many there were, and waits if the test says so."""

    def __init__(self) -> None:
        self.count = 0
        self.gate: Gate | None = None

    async def handler(self, call: Call[Any]) -> HttpResponse:
        self.count += 1
        count = self.count
        if self.gate is not None:
            await self.gate.handler(call)
        return HttpResponse({"count": count})


def with_glances(gate: Gate, glanced: Glanced) -> tuple[Route, ...]:
    return (
        *routes(gate),
        *(plain_route("GET", path, glanced.handler) for path in ("/metrics", "/api/status")),
    )


class StoppedClock:
    """Time for everything that the application times."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self.now_ns = clock.monotonic_ns()

    def monotonic_ns(self) -> int:
        return int(self.now_ns)

    def wall_ms(self) -> int:
        return int(self._clock.wall_ms())


@pytest.mark.parametrize("path", ["/metrics", "/api/status"])
def test_status_probes_are_answered_under_overload_at_little_cost(tmp_path: Path, path: str) -> None:
    gate, glanced = Gate(), Glanced()
    limits = ConnectionLimits(max_in_flight=1)
    with RunningEdge(with_glances(gate, glanced), tmp_path, limits=limits) as edge:
        clock: Any = StoppedClock(edge.state.clock)
        edge.state.clock = clock
        assert [edge.request("GET", path).body["count"] for _ in range(3)] == [1, 2, 3], "nothing is old in calm"
        held = Held(edge, gate, 1, b"{}")
        assert edge.request("POST", "/wait").status == 503
        assert [edge.request("GET", path).body["count"] for _ in range(5)] == [4] * 5
        clock.now_ns += 250_000_000
        assert [edge.request("GET", path).body["count"] for _ in range(5)] == [5] * 5
        gate.open(edge)
        assert [answer.status for answer in held.answers()] == [200]
        assert edge.request("GET", path).body["count"] == 6
        assert_nothing_held(edge)


def test_only_a_few_status_probes_are_admitted_at_once(tmp_path: Path) -> None:
    gate, glanced = Gate(), Glanced()
    limits = ConnectionLimits(max_in_flight=1)
    with RunningEdge(with_glances(gate, glanced), tmp_path, limits=limits) as edge:
        held, reading = Held(edge, gate, 1, b"{}"), Held(edge, gate, 1, b"{}", "/ask")
        glanced.gate = gate
        asking = [edge.connect() for _ in range(MAX_STATUS_PROBES)]
        for connection in asking:
            connection.sendall(post_head(edge, target="GET /metrics"))
            gate.wait_entered()
        for _ in range(5):
            assert edge.request("GET", "/metrics").status == 503
            assert edge.request("GET", "/health").status == 200
        gate.open(edge)
        for connection in asking:
            assert parse_answer(connection.recv(65536)).status == 200
            connection.close()
        assert [answer.status for answer in held.answers() + reading.answers()] == [200] * 2
        poll_until(lambda: not +edge.server.server_context.admission.status_probes)
        assert_nothing_held(edge)


def test_a_status_probe_beyond_the_connection_limit_is_answered_and_its_connection_closed(tmp_path: Path) -> None:
    limits, gate = ConnectionLimits(connections=1), Gate()
    with RunningEdge(with_glances(gate, Glanced()), tmp_path, limits=limits) as edge, edge.connect() as first:
        gate.hold(edge, first)
        answer = parse_answer(edge.raw(post_head(edge, target="GET /metrics")))
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert edge.request("GET", "/echo").status == 503
