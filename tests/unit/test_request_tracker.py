"""Requests to a peer that is down, in virtual time: how long they wait, and their outcomes."""

from __future__ import annotations

from typing import Any

import pytest

from signet_actors.config.schema import Config
from signet_actors.errors import Busy, ErrorCode, OutcomeUnknown, Unavailable
from signet_actors.protocol.control import FAILED, RESTARTING, STOPPING, UP
from signet_actors.protocol.header import Header
from signet_actors.protocol.message import Failure
from signet_actors.runtime.messaging.async_client import RequestTracker
from signet_actors.runtime.messaging.envelope import MessageFactory, decode_header, new_counters
from signet_actors.runtime.messaging.requests import PEER_WAIT_MS, track_dispatch
from signet_actors.runtime.processes.child_context import ChildContext
from tests.sim.world import NS, Promise, World

CLIENT_WAIT_S = PEER_WAIT_MS / 1000
PROMPTLY_S = 0.1
LONG_MS = 60_000
CREDITS = 4


class Peer:
    """There or not; ``got`` are the headers and bodies of what arrived."""

    def __init__(self) -> None:
        self.world = World(1)
        self.there = True
        self.got: list[tuple[Header, bytes]] = []
        self._message_factory = MessageFactory(ChildContext("gateway", "gateway", 1, "boot", 1, "", "", Config()))
        self.asks = RequestTracker(
            self.world,  # type: ignore[arg-type]
            self.world,
            self._message_factory,
            self._take,
            new_counters(),
            peer="writer",
            max_items=CREDITS,
            max_bytes=1 << 20,
            resend=True,
        )
        self.life = 0
        self.lives()

    def lives(self) -> None:
        """Its next life serves, and the tree says so."""
        self.there = True
        self.life += 1
        self.asks.on_peer_state(UP, self.life)

    def dies(self) -> None:
        self.there = False
        self.asks.on_peer_state(RESTARTING, self.life)

    def ask(self, body: bytes = b"ask", timeout_ms: int = LONG_MS) -> Promise:
        promise: Promise = self.asks.submit("trace", timeout_ms, body, [])  # type: ignore[assignment]
        return promise

    def answer(self, number: int, answer: Any = "done") -> None:
        header = self.got[number][0]
        self.asks.on_reply(header.message_id, answer, header.attempt)

    def wait(self, seconds: float) -> None:
        self.world.run_until(self.world.now_ns + int(seconds * NS))

    def _take(self, parts: list[bytes]) -> bool:
        if self.there:
            self.got.append((decode_header(parts[0]), parts[1]))
        return self.there


@pytest.fixture
def peer() -> Peer:
    return Peer()


def refused(promise: Promise) -> bool:
    """Certainly not applied, and said so."""
    if not promise.done():
        return False
    with pytest.raises(Unavailable):
        promise.result()
    return True


def test_a_request_while_the_peer_restarts_is_answered_by_its_next_incarnation(peer: Peer) -> None:
    peer.dies()
    asked = [peer.ask(b"first"), peer.ask(b"second")]
    peer.wait(CLIENT_WAIT_S - 0.1)
    peer.lives()
    peer.wait(0.1)
    assert [(header.attempt, body) for header, body in peer.got] == [(1, b"first"), (1, b"second")]
    peer.answer(0)
    peer.answer(1)
    assert [promise.result() for promise in asked] == ["done", "done"]


def test_the_wait_for_a_peer_is_counted_from_its_exit(peer: Peer) -> None:
    peer.dies()
    early = peer.ask()
    peer.wait(CLIENT_WAIT_S - 0.5)
    late = peer.ask()
    peer.wait(0.4)
    assert not early.done()
    assert not late.done()
    peer.wait(0.2)
    assert refused(early)
    assert refused(late)
    assert peer.got == []


def test_a_request_to_a_peer_that_stays_down_is_refused_at_once(peer: Peer) -> None:
    peer.dies()
    peer.ask()
    peer.wait(10 * CLIENT_WAIT_S)
    hopeless = peer.ask()
    peer.wait(PROMPTLY_S)
    assert refused(hopeless)


def test_an_incarnation_without_requests_ends_the_wait(peer: Peer) -> None:
    peer.dies()
    peer.ask()
    peer.wait(10 * CLIENT_WAIT_S)
    peer.lives()
    peer.dies()
    asked = peer.ask()
    peer.wait(CLIENT_WAIT_S - 0.1)
    peer.lives()
    peer.wait(0.1)
    peer.answer(0)
    assert asked.result() == "done"


@pytest.mark.parametrize("state", [FAILED, STOPPING])
def test_no_request_waits_for_a_failed_peer(peer: Peer, state: str) -> None:
    peer.dies()
    before = peer.ask()
    peer.asks.on_peer_state(state, peer.life)
    after = peer.ask()
    peer.wait(PROMPTLY_S)
    assert refused(before)
    assert refused(after)
    peer.lives()
    peer.dies()
    hopeful = peer.ask()
    peer.wait(PROMPTLY_S)
    assert not hopeful.done()


def test_a_stopping_peer_gets_requests_while_it_runs(peer: Peer) -> None:
    peer.asks.on_peer_state(STOPPING, peer.life)
    asked = peer.ask()
    peer.wait(CLIENT_WAIT_S)
    peer.answer(0)
    assert asked.result() == "done"


def test_waiting_requests_keep_their_credits_and_others_are_refused(peer: Peer) -> None:
    peer.dies()
    waiting = [peer.ask() for _ in range(CREDITS)]
    with pytest.raises(Busy):
        peer.ask()
    peer.wait(2 * CLIENT_WAIT_S)
    assert all(refused(promise) for promise in waiting)
    assert len(peer.asks) == 0


def test_requests_in_flight_are_resent_to_the_next_incarnation_with_their_ids(peer: Peer) -> None:
    asked = peer.ask()
    peer.dies()
    peer.wait(5 * CLIENT_WAIT_S)
    peer.lives()
    peer.wait(0.1)
    first, second = (header for header, _ in peer.got)
    assert (first.message_id, first.attempt) == (second.message_id, second.attempt - 1)
    peer.answer(1)
    peer.answer(0)
    assert asked.result() == "done"


def test_a_request_in_flight_is_never_reported_as_not_applied(peer: Peer) -> None:
    asked = peer.ask(timeout_ms=3000)
    peer.dies()
    peer.asks.on_peer_state(FAILED, peer.life)
    peer.wait(2.9)
    assert not asked.done()
    peer.wait(0.2)
    with pytest.raises(OutcomeUnknown):
        asked.result()


def test_a_request_counts_as_sent_when_the_socket_has_accepted_it(peer: Peer) -> None:
    peer.dies()
    dispatch = track_dispatch()
    peer.ask()
    peer.wait(0.1)
    assert not dispatch.sent
    peer.lives()
    peer.wait(0.1)
    assert dispatch.sent


def test_a_request_waits_for_a_peer_until_its_deadline_at_most(peer: Peer) -> None:
    peer.dies()
    asked = peer.ask(timeout_ms=300)
    peer.wait(0.4)
    assert refused(asked)


def test_a_refusal_of_the_first_attempt_does_not_decide_the_outcome_of_the_second(peer: Peer) -> None:
    promise = peer.ask()
    peer.dies()
    peer.lives()
    assert [header.attempt for header, _ in peer.got] == [1, 2]
    peer.answer(0, Failure(ErrorCode.NOT_APPLIED, "too late"))
    assert not promise.done()
    peer.answer(1)
    assert promise.result() == "done"
