"""Requests in flight without a socket or a loop: what is sent, how often, and which outcome each request gets."""

from __future__ import annotations

from typing import Any

import pytest

from signet_actors.config.schema import Config
from signet_actors.errors import Busy, ErrorCode, OutcomeUnknown, Unavailable
from signet_actors.protocol.header import PROTOCOL_VERSION, Header
from signet_actors.protocol.message import Failure
from signet_actors.runtime.messaging.envelope import MessageFactory, decode_header, new_counters
from signet_actors.runtime.messaging.requests import MAX_ATTEMPTS, PEER_WAIT_MS, PendingRequest, PendingRequests
from signet_actors.runtime.processes.child_context import ChildContext

MS = 1_000_000
FACTORY = MessageFactory(ChildContext("retention", "retention", 1, "boot", 1, "", "", Config()))


class Abandoned(PendingRequest):
    """A request whose caller was cancelled."""

    @property
    def abandoned(self) -> bool:
        return True


class Scene:
    """The requests to a writer that takes at most two of ten bytes; time stands still unless a test says otherwise."""

    def __init__(self) -> None:
        self.counters = new_counters()
        self.requests: PendingRequests[PendingRequest] = PendingRequests(
            self.counters, peer="writer", max_items=2, max_bytes=10, resend=True
        )
        self.requests.on_peer_up(1)

    def add(self, body: bytes = b"x", kind: type[PendingRequest] = PendingRequest, **wait: Any) -> PendingRequest:
        request = kind(FACTORY.next_id(), "trace", 5000 * MS, [body])
        self.requests.add(request, 0, **wait)
        return request

    def sent(self) -> list[tuple[str, int]]:
        """Send everything, and return each message id with the number of its attempt."""
        sent = []
        while (request := self.requests.next_unsent()) is not None:
            header = decode_header(request.header(FACTORY))
            self.requests.on_sent(request)
            sent.append((header.message_id, header.attempt))
        return sent


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_request_beyond_the_credits_is_refused_and_a_reply_returns_a_credit(scene: Scene) -> None:
    first, _ = scene.add(), scene.add()
    with pytest.raises(Busy):
        scene.add()
    assert scene.counters["shed"] == 1
    scene.sent()
    assert scene.requests.complete(first.message_id, "done", 1) is first
    scene.add()


def test_a_request_that_exceeds_the_bytes_is_refused_unless_it_is_alone(scene: Scene) -> None:
    large = scene.add(b"x" * 100)
    with pytest.raises(Busy):
        scene.add()
    scene.requests.expire(large)
    scene.add(b"x" * 9)
    with pytest.raises(Busy):
        scene.add(b"xx")


def test_every_attempt_has_the_same_id_and_there_are_three_at_most(scene: Scene) -> None:
    request = scene.add()
    attempts = scene.sent()
    for incarnation in range(2, 10):
        scene.requests.on_peer_up(incarnation)
        attempts += scene.sent()
    assert attempts == [(request.message_id, number) for number in range(1, MAX_ATTEMPTS + 1)]
    assert scene.counters["resent"] == MAX_ATTEMPTS - 1


def test_a_peer_that_is_up_again_as_the_same_incarnation_receives_nothing_twice(scene: Scene) -> None:
    scene.add()
    assert len(scene.sent()) == 1
    scene.requests.on_peer_up(1)
    assert scene.sent() == []


def test_requests_are_sent_in_their_order_also_after_a_restart(scene: Scene) -> None:
    first, second = scene.add(), scene.add()
    assert [sent[0] for sent in scene.sent()] == [first.message_id, second.message_id]
    scene.requests.on_peer_up(2)
    assert [sent[0] for sent in scene.sent()] == [first.message_id, second.message_id]


def test_without_resend_a_restarted_peer_receives_nothing_again(scene: Scene) -> None:
    scene.requests = PendingRequests(scene.counters, peer="retention", max_items=2, max_bytes=10, resend=False)
    scene.add()
    assert len(scene.sent()) == 1
    scene.requests.on_peer_up(2)
    assert scene.sent() == []


def test_a_request_that_was_never_sent_was_not_applied_and_one_that_was_may_have_been(scene: Scene) -> None:
    sent = scene.add()
    scene.sent()
    unsent = scene.add()
    assert isinstance(scene.requests.expire(unsent), Unavailable)
    assert isinstance(scene.requests.expire(sent), OutcomeUnknown)
    assert len(scene.requests) == 0
    assert scene.counters["expired"] == 2


def test_a_request_waits_for_an_absent_peer_and_after_it_was_sent_until_its_deadline(scene: Scene) -> None:
    request = scene.add()
    scene.requests.on_unreachable(0)
    assert request.expires_ns == PEER_WAIT_MS * MS
    scene.sent()
    assert request.expires_ns == request.deadline_ns == 5000 * MS


def test_of_a_peer_that_is_given_up_an_unsent_request_expires_soon_and_a_sent_one_keeps_its_time(scene: Scene) -> None:
    sent = scene.add()
    scene.sent()
    unsent = scene.add()
    assert scene.requests.on_peer_given_up(0) == [unsent]
    assert unsent.expires_ns <= 100 * MS
    assert sent.expires_ns == 5000 * MS


def test_a_caller_that_went_before_the_request_was_sent_frees_its_credit(scene: Scene) -> None:
    scene.add(kind=Abandoned)
    assert scene.sent() == []
    assert len(scene.requests) == 0


def test_a_second_reply_and_a_reply_to_no_request_are_counted_as_late(scene: Scene) -> None:
    request = scene.add()
    scene.sent()
    assert scene.requests.complete(request.message_id, "done", 1) is request
    assert scene.requests.complete(request.message_id, "done", 1) is None
    assert scene.requests.complete("unknown", "done", 1) is None
    assert scene.counters["late"] == 2


@pytest.mark.parametrize("code", [ErrorCode.BUSY, ErrorCode.UNAVAILABLE, ErrorCode.NOT_APPLIED])
def test_a_refusal_of_an_earlier_attempt_does_not_end_a_request_that_was_sent_again(
    scene: Scene, code: ErrorCode
) -> None:
    request = scene.add()
    scene.sent()
    scene.requests.on_peer_up(2)
    scene.sent()
    assert scene.requests.complete(request.message_id, Failure(code, "refused"), 1) is None
    assert scene.requests.complete(request.message_id, Failure(code, "refused"), 2) is request


def test_the_header_of_a_request_names_its_deadline(scene: Scene) -> None:
    request = scene.add()
    header: Header = decode_header(request.header(FACTORY))
    assert (header.deadline_ns, header.trace_id, header.proto) == (5000 * MS, "trace", PROTOCOL_VERSION)
