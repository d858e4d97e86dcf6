"""What a mailbox does with each message, and a client with each reply, without a socket or a loop."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import structlog

from signet_actors.config.schema import Config
from signet_actors.errors import ErrorCode
from signet_actors.protocol.header import Header
from signet_actors.protocol.leases import AdvanceHighWaterMark, HighWaterMark
from signet_actors.protocol.message import Failure
from signet_actors.protocol.writer import WriterCommand, WriterReply
from signet_actors.runtime.logging.throttle import LogThrottle
from signet_actors.runtime.messaging.envelope import (
    PING,
    MessageFactory,
    MessageReader,
    decode_header,
    encode_frame,
    new_counters,
)
from signet_actors.runtime.messaging.mailbox import Incoming, MailboxRules
from signet_actors.runtime.processes.child_context import ChildContext

BODY = encode_frame(AdvanceHighWaterMark(now="x"))
DECODE = msgspec.msgpack.Decoder(WriterReply).decode


class Clock:
    now_ns = 1000

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ms(self) -> int:
        return 0


def factory(name: str) -> MessageFactory:
    return MessageFactory(ChildContext(name, name, 1, "boot", 1, "", "", Config()))


class Scene:
    """A mailbox for two messages; ``answers`` are what it sent, a gateway is its only client."""

    def __init__(self) -> None:
        self.answers: list[list[bytes]] = []
        self.reachable = True
        self.counters = new_counters()
        self.gateway = factory("gateway")
        self.rules: MailboxRules[Any] = MailboxRules(
            msgspec.msgpack.Decoder(WriterCommand),
            factory("writer"),
            Clock(),
            structlog.get_logger(),
            self.counters,
            self._send,
            max_items=2,
            max_bytes=10 * len(BODY),
        )

    def _send(self, parts: list[bytes]) -> bool:
        if self.reachable:
            self.answers.append(parts)
        return self.reachable

    def receive(
        self, *frames: bytes, body: bytes = BODY, deadline_ns: int = 0, attempt: int = 1
    ) -> Incoming[Any] | None:
        header = self.gateway.header(self.gateway.next_id(), "trace", deadline_ns, attempt)
        return self.rules.accept(b"gateway", [header, body, *frames])

    def last_answer(self) -> tuple[Header, Any]:
        identity, header, body = self.answers[-1]
        assert identity == b"gateway"
        return decode_header(header), DECODE(body)

    def code(self) -> ErrorCode:
        answer = self.last_answer()[1]
        assert isinstance(answer, Failure)
        return answer.code


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_message_is_accepted_until_the_bound_and_again_after_a_release(scene: Scene) -> None:
    first, second = scene.receive(), scene.receive()
    assert first is not None
    assert second is not None
    assert scene.receive() is None
    assert scene.code() is ErrorCode.BUSY
    scene.rules.release(first)
    assert scene.receive() is not None
    assert scene.counters["shed"] == 1


def test_messages_that_are_too_long_together_are_refused_but_never_the_only_one(scene: Scene) -> None:
    alone = scene.receive(b"x" * 100 * len(BODY))
    assert alone is not None
    assert scene.receive() is None
    assert scene.code() is ErrorCode.BUSY
    scene.rules.release(alone)
    assert scene.receive() is not None


def test_what_is_past_its_deadline_is_not_begun(scene: Scene) -> None:
    assert scene.receive(deadline_ns=Clock.now_ns) is None
    assert scene.code() is ErrorCode.NOT_APPLIED
    assert scene.counters["expired"] == 1


def test_a_refusal_of_a_message_that_was_sent_before_promises_nothing(scene: Scene) -> None:
    assert scene.receive(deadline_ns=1, attempt=2) is None
    assert scene.code() is ErrorCode.OUTCOME_UNKNOWN


def test_a_message_is_answered_once_under_its_id(scene: Scene) -> None:
    incoming = scene.receive()
    assert incoming is not None
    incoming.reply(HighWaterMark(previous="a", suspected_jump_since=None))
    incoming.reply(HighWaterMark(previous="b", suspected_jump_since=None))
    header, answer = scene.last_answer()
    assert (header.message_id, answer.previous) == (incoming.header.message_id, "a")
    assert (len(scene.answers), scene.counters["duplicate"]) == (1, 1)


def test_a_probe_is_answered_by_the_mailbox_itself(scene: Scene) -> None:
    assert scene.receive(body=PING) is None
    assert scene.answers[-1][2] == PING


def test_an_answer_to_a_sender_that_is_gone_is_counted(scene: Scene) -> None:
    incoming = scene.receive()
    assert incoming is not None
    scene.reachable = False
    incoming.reply(HighWaterMark(previous="a", suspected_jump_since=None))
    assert scene.counters["unroutable"] == 1


@pytest.mark.parametrize("parts", [[], [b"\xff"], [b"", b""]])
def test_garbage_is_counted_answered_and_takes_no_slot(scene: Scene, parts: list[bytes]) -> None:
    assert scene.rules.accept(b"gateway", list(parts)) is None
    assert scene.counters["decode_error"] == 1
    assert scene.receive() is not None
    assert scene.receive() is not None


def reader(counters: dict[str, int]) -> MessageReader:
    return MessageReader(factory("gateway"), counters, LogThrottle(structlog.get_logger(), Clock()))


def test_a_reply_whose_body_is_garbage_leaves_open_whether_the_request_was_applied() -> None:
    counters = new_counters()
    header = factory("writer").header("id", "trace", 0)
    opened = reader(counters).read([header, b"\xc1"], DECODE, "writer")
    assert opened is not None
    assert isinstance(opened[1], Failure)
    assert opened[1].code is ErrorCode.OUTCOME_UNKNOWN
    assert counters["decode_error"] == 1


def test_a_reply_of_another_boot_is_no_reply() -> None:
    counters = new_counters()
    stranger = MessageFactory(ChildContext("writer", "writer", 1, "another boot", 1, "", "", Config()))
    assert reader(counters).read([stranger.header("id", "trace", 0), b"\xc0"], DECODE, "writer") is None
    assert counters["foreign"] == 1
