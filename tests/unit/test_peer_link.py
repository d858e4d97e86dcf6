"""Health by outcomes: a running peer that does not answer, and consecutive failures."""

from __future__ import annotations

from typing import Any, cast

import pytest

from signet_actors.config.schema import Config
from signet_actors.gateway.status.readiness import readiness
from signet_actors.protocol.control import UP, ChildState
from signet_actors.runtime.messaging.async_client import PeerLink
from signet_actors.runtime.messaging.bus_client import Outcomes
from signet_actors.runtime.messaging.envelope import PING, MessageFactory
from signet_actors.runtime.processes.child_context import ChildContext

S = 1_000_000_000
BEAT = S // 2


class Clock:
    now_ns = 100 * S

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ms(self) -> int:
        return 0


class Connection:
    """A socket that accepts messages, or has no peer."""

    def __init__(self, *, there: bool) -> None:
        self.there = there
        self.sent: list[list[bytes]] = []
        self.discarded = False

    def send(self, parts: list[bytes]) -> bool:
        if self.there:
            self.sent.append(parts)
        return self.there

    def discard(self) -> None:
        self.discarded = True


class Room:
    def __init__(self) -> None:
        self.clock = Clock()
        self.there = True
        self.connections: list[Connection] = []
        message_factory = MessageFactory(ChildContext("gateway", "gateway", 1, "b", 1, "/w", "/s", Config()))
        self.link = PeerLink(self.clock, message_factory, cast("Any", self.connect), probe=True)

    def connect(self) -> Connection:
        self.connections.append(Connection(there=self.there))
        return self.connections[-1]

    def beats(self, seconds: float, *, answers: bool = False, is_up: bool = True) -> None:
        for _ in range(int(seconds * S / BEAT)):
            self.clock.now_ns += BEAT
            asked = len(self.connections[-1].sent)
            self.link.check(is_up=is_up)
            if answers and len(self.connections[-1].sent) > asked:
                self.link.on_message()


def test_a_peer_that_answers_its_probes_is_healthy_without_requests() -> None:
    room = Room()
    room.beats(60, answers=True)
    assert room.link.problem() is None
    (only,) = room.connections
    assert [parts[1] for parts in only.sent] == [PING] * 60


def test_a_peer_that_answers_nothing_is_reported_and_reconnected() -> None:
    room = Room()
    room.beats(5)
    assert room.link.problem() is None, "a long batch is no news"
    room.beats(3)
    assert "has not responded" in str(room.link.problem())
    assert len(room.connections[0].sent) == 1, "one probe at a time"
    room.beats(10)
    assert room.connections[0].discarded
    room.link.on_message()
    assert room.link.problem() is None


def test_a_message_without_a_reply_does_not_change_the_state_of_a_peer() -> None:
    room = Room()
    room.beats(2, answers=True)
    assert room.link.send([b"a message that is never answered"])
    room.beats(60, answers=True)
    assert room.link.problem() is None
    assert len(room.connections) == 1


def test_a_probe_is_sent_on_a_new_connection_and_its_reply_clears_the_error() -> None:
    room = Room()
    room.beats(13)
    assert "has not responded" in str(room.link.problem())
    room.beats(2)
    assert len(room.connections) == 2
    assert [parts[1] for parts in room.connections[1].sent] == [PING]
    assert "has not responded" in str(room.link.problem()), "the new connection has answered nothing either"
    room.link.on_message()
    room.beats(20, answers=True)
    assert room.link.problem() is None
    assert len(room.connections) == 2


def test_an_unreachable_peer_is_reported_within_seconds_and_reconnected() -> None:
    room = Room()
    room.there = room.connections[0].there = False
    room.beats(4)
    assert "cannot be reached" in str(room.link.problem())
    assert room.connections[0].discarded
    room.there = True
    room.beats(3, answers=True)
    assert room.link.problem() is None


def test_a_restarting_peer_is_not_reported() -> None:
    room = Room()
    room.beats(5)
    room.beats(60, is_up=False)
    assert room.link.problem() is None


def test_consecutive_failures_are_reported_until_a_success_or_a_timeout() -> None:
    clock = Clock()
    reads = Outcomes(clock, "reads")
    reads.failed("too late")
    reads.failed("too late")
    assert reads.problem() is None
    reads.failed("too late")
    assert reads.problem() == "the last 3 reads failed (too late)"
    reads.succeeded()
    assert reads.problem() is None
    for _ in range(3):
        reads.failed("too late")
    clock.now_ns += 11 * S
    assert reads.problem() is None


CHILDREN = [ChildState(name, role, UP, 1, 0, 1) for name, role in (("writer", "writer"), ("searcher-1", "searcher"))]


@pytest.mark.parametrize(
    ("found", "status", "ready"),
    [
        ({}, "healthy", True),
        ({"unanswered": {"writer": "the writer cannot be reached"}}, "unhealthy", False),
        ({"unanswered": {"searcher": "no searcher can be reached"}}, "unhealthy", False),
        ({"storage_full": True}, "degraded", False),
        ({"notes": ("the last 3 reads failed",)}, "degraded", True),
    ],
)
def test_health_depends_on_replies_and_not_on_running_processes(
    found: dict[str, Any], status: str, *, ready: bool
) -> None:
    state = readiness(CHILDREN, draining=False, **found)
    assert (state.status, state.ready) == (status, ready)
    assert bool(state.detail) == (status != "healthy")


def test_a_log_that_another_program_lets_grow_is_degraded_and_nothing_is_refused() -> None:
    writer = ChildState("writer", "writer", UP, 1, 0, 1, counters={"wal_blocked": 1.0})
    state = readiness([writer, *CHILDREN[1:]], draining=False)
    assert (state.status, state.ready) == ("degraded", True)
    assert "end that program" in state.detail


@pytest.mark.parametrize(
    ("counters", "told"),
    [
        ({"reports_waiting": 1.0}, ["1 report of a hook is waiting, because sending failed"]),
        ({"reports_rejected": 1.0}, ["1 report of a hook is set aside"]),
        (
            {"reports_waiting": 3.0, "reports_rejected": 2.0},
            ["3 reports of hooks are waiting, because sending failed", "2 reports of hooks are set aside"],
        ),
        ({"reports_waiting": 0.0, "reports_rejected": 0.0, "reports_unusable": 0.0, "embedding_away": 0.0}, []),
    ],
)
def test_reports_of_hooks_that_do_not_arrive_are_told(counters: dict[str, float], told: list[str]) -> None:
    retention = ChildState("retention", "retention", UP, 1, 0, 3, counters=counters)
    state = readiness([*CHILDREN, retention], draining=False)
    assert (state.status, state.ready) == ("degraded" if told else "healthy", True)
    assert state.detail.split("; ") == ([f"{text} (`signet doctor` says more)" for text in told] or [""])


def test_what_does_not_work_although_all_processes_run_is_told_and_the_daemon_is_ready() -> None:
    for counter, told in (
        ("embedding_away", "embedding does not work, so new memories are found by their words only"),
        ("reports_unusable", "memory/spool cannot be used: while the daemon is away, reports of hooks are lost"),
    ):
        child = ChildState("x", "extractor", UP, 1, 0, 3, counters={counter: 1.0})
        state = readiness([*CHILDREN, child], draining=False)
        assert (state.status, state.ready) == ("degraded", True)
        assert state.detail.startswith(told)


def test_a_backup_that_cannot_be_made_is_told() -> None:
    retention = ChildState("retention", "retention", UP, 1, 0, 3, counters={"backup_problem": 1.0})
    state = readiness([*CHILDREN, retention], draining=False)
    assert (state.status, state.ready) == ("degraded", True)
    assert state.detail == "the last backup could not be made (`signet status` says why)"


def test_the_daemon_is_not_ready_while_the_writer_reports_a_displaced_file() -> None:
    writer = ChildState("writer", "writer", UP, 1, 0, 1, counters={"displaced": 1.0})
    state = readiness([writer, *CHILDREN[1:]], draining=False)
    assert (state.status, state.ready) == ("unhealthy", False)
    assert "writes are refused" in state.detail
