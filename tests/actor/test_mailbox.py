"""The bounded mailbox: refused, dropped, answered and counted messages."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
import structlog
import zmq

from signet_actors.errors import ErrorCode
from signet_actors.protocol.header import PROTOCOL_VERSION, Header
from signet_actors.protocol.leases import AdvanceHighWaterMark, HighWaterMark
from signet_actors.protocol.message import Failure
from signet_actors.protocol.writer import TouchMemories, WriterCommand, WriterReply
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.messaging.envelope import MessageFactory, encode_frame, new_counters
from signet_actors.runtime.messaging.mailbox import Linger, Mailbox
from signet_actors.runtime.messaging.sockets import bind_router, connect_dealer, new_context
from tests.support.bus_harness import BOOT_ID, eventually

DECODE_REPLY = msgspec.msgpack.Decoder(WriterReply).decode
DECODE_HEADER = msgspec.msgpack.Decoder(Header).decode


class _Filled:
    """A socket from which ``waiting`` is received first."""

    def __init__(self, socket: Any, waiting: list[list[bytes]]) -> None:
        self._socket = socket
        self._waiting = waiting
        self.send_multipart, self.poll = socket.send_multipart, socket.poll

    def recv_multipart(self, flags: int) -> list[bytes]:
        return self._waiting.pop(0) if self._waiting else self._socket.recv_multipart(flags)


class Pair:
    """A mailbox and a client of it."""

    def __init__(self, directory: Path) -> None:
        self.context = new_context()
        self.counters = new_counters()
        message_factory = MessageFactory.__new__(MessageFactory)
        message_factory.boot_id, message_factory.name, message_factory.incarnation = BOOT_ID, "writer", 1
        self.box: Mailbox[Any] = Mailbox(
            bind_router(self.context, directory, "writer", ""),
            msgspec.msgpack.Decoder(WriterCommand),
            message_factory,
            SystemClock(),
            structlog.get_logger(),
            self.counters,
            max_items=4,
            max_bytes=10_000,
        )
        self.client = connect_dealer(self.context, directory, "writer", "gateway", "")
        assert self.client.poll(5000, zmq.POLLOUT)

    def say(self, text: str = "x", *frames: bytes, body: bytes | None = None, **header: Any) -> None:
        facts: dict[str, Any] = {
            "message_id": text,
            "trace_id": "t",
            "sender": "gateway",
            "incarnation": 1,
            "deadline_ns": 0,
            "attempt": 1,
            "boot_id": BOOT_ID,
            **header,
        }
        self.client.send_multipart(
            [
                msgspec.msgpack.encode(Header(**facts)),
                encode_frame(AdvanceHighWaterMark(now=text)) if body is None else body,
                *frames,
            ]
        )

    def take(self, count: int) -> list[Any]:
        batch: list[Any] = []
        expected = self.counters["received"] + count

        def more() -> bool:
            batch.extend(self.box.take())
            return self.counters["received"] >= expected

        eventually(more)
        return batch

    def all_there(self, count: int) -> None:
        """One look at the mailbox's socket will find ``count`` messages.

        A socket says that something waits, not how much; so they are read, and put before whatever comes after them.
        """
        socket: Any = self.box.socket
        waiting: list[list[bytes]] = []
        while len(waiting) < count:
            assert socket.poll(5000), f"only {len(waiting)} of {count} came"
            waiting.append(socket.recv_multipart(zmq.NOBLOCK))
        self.box.socket = cast("Any", _Filled(socket, waiting))

    def answer(self) -> tuple[Header, Any]:
        assert self.client.poll(5000)
        parts = self.client.recv_multipart()
        return DECODE_HEADER(parts[0]), DECODE_REPLY(parts[1])

    def silent(self) -> bool:
        return not self.client.poll(50)


@pytest.fixture
def pair() -> Iterator[Pair]:
    with tempfile.TemporaryDirectory(prefix="sgt-", dir="/tmp") as directory:
        made = Pair(Path(directory))
        yield made
        made.context.destroy(linger=0)


def test_a_reply_repeats_the_id_and_the_trace_of_the_request(pair: Pair) -> None:
    pair.say("m1", b"frame")
    (incoming,) = pair.take(1)
    assert incoming.frames == [b"frame"]
    incoming.reply(HighWaterMark(previous="p", suspected_jump_since=None), [b"back"])
    header, body = pair.answer()
    assert (header.message_id, header.trace_id, header.sender) == ("m1", "t", "writer")
    assert body.previous == "p"


def test_messages_beyond_the_limit_are_refused_as_busy_at_once(pair: Pair) -> None:
    for number in range(10):
        pair.say(f"m{number}")
    pair.all_there(10)
    batch = pair.box.take()
    assert [incoming.header.message_id for incoming in batch] == ["m0", "m1", "m2", "m3"]
    refusals = [pair.answer() for _ in range(6)]
    assert {header.message_id for header, _ in refusals} == {f"m{n}" for n in range(4, 10)}
    assert all(body.code == ErrorCode.BUSY and body.retry_after_ms > 0 for _, body in refusals)
    assert pair.counters["shed"] == 6


def test_messages_that_are_not_received_yet_wait_in_the_socket(pair: Pair) -> None:
    for number in range(6):
        pair.say(f"m{number}")
    pair.all_there(6)
    taken = [incoming.header.message_id for _ in range(6) for incoming in pair.box.take(1)]
    assert taken == [f"m{number}" for number in range(6)]
    assert pair.silent()
    assert pair.counters["shed"] == 0


def test_the_limit_counts_bytes_too_but_admits_one_large_message(pair: Pair) -> None:
    pair.say("big", b"x" * 20_000)
    pair.say("more", b"x")
    pair.all_there(2)
    assert [incoming.header.message_id for incoming in pair.box.take()] == ["big"]
    assert pair.answer()[1].code == ErrorCode.BUSY


def test_an_expired_request_is_answered_not_applied(pair: Pair) -> None:
    pair.say("late", deadline_ns=time.monotonic_ns() - 1)
    assert pair.take(1) == []
    assert pair.answer()[1].code == ErrorCode.NOT_APPLIED
    assert pair.counters["expired"] == 1


def test_the_outcome_of_a_request_sent_before_is_unknown_when_it_comes_too_late(pair: Pair) -> None:
    pair.say("again", deadline_ns=time.monotonic_ns() - 1, attempt=2)
    assert pair.take(1) == []
    assert pair.answer()[1].code == ErrorCode.OUTCOME_UNKNOWN


def test_the_outcome_of_a_request_sent_before_is_unknown_when_the_mailbox_is_full(pair: Pair) -> None:
    for number in range(4):
        pair.say(f"m{number}")
    pair.say("again", attempt=2)
    pair.say("new")
    pair.all_there(6)
    assert len(pair.box.take()) == 4
    codes = {header.message_id: body.code for header, body in (pair.answer(), pair.answer())}
    assert codes == {"again": ErrorCode.OUTCOME_UNKNOWN, "new": ErrorCode.BUSY}


def test_a_message_of_another_boot_is_refused(pair: Pair) -> None:
    pair.say("foreign", boot_id="another")
    assert pair.take(1) == []
    assert pair.answer()[1].code == ErrorCode.UNAVAILABLE
    assert pair.counters["foreign"] == 1


def test_a_message_of_another_protocol_version_is_refused(pair: Pair) -> None:
    pair.say("foreign", proto=PROTOCOL_VERSION + 1)
    assert pair.take(1) == []
    assert pair.answer()[1].code == ErrorCode.UNAVAILABLE


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xc1",
        b"\xff" * 100,
        encode_frame(HighWaterMark(previous=None, suspected_jump_since=None)),
        msgspec.msgpack.encode({"t": "writer.nobody_knows"}),
        msgspec.msgpack.encode({"t": "writer.advance_high_water_mark", "now": 7}),
        b"\x82\xa1t\xbewriter.advance_high_water_mark\xa3now\xa2\xff\xfe",
        b"\x82\xa1t\xbewriter.advance_high_water_mark\xa1x" + b"\x91" * 5000 + b"\x00",
    ],
    ids=["empty", "reserved", "noise", "a reply", "unknown tag", "wrong type", "not UTF-8", "too deep"],
)
def test_an_undecodable_body_is_answered_and_counted(pair: Pair, body: bytes) -> None:
    pair.say("garbage", body=body)
    pair.say("fine")
    (incoming,) = pair.take(2)
    assert incoming.header.message_id == "fine"
    header, failure = pair.answer()
    assert header.message_id == "garbage"
    assert failure.code == ErrorCode.INVALID_REQUEST
    assert pair.counters["decode_error"] == 1


@pytest.mark.parametrize("parts", [[b""], [b"\xc1", b"x"], [msgspec.msgpack.encode([1, 2]), b"x"]])
def test_an_undecodable_header_is_answered_and_counted(pair: Pair, parts: list[bytes]) -> None:
    pair.client.send_multipart(parts)
    assert pair.take(1) == []
    assert isinstance(pair.answer()[1], Failure)
    assert pair.counters["decode_error"] == 1


def test_a_tell_is_never_answered(pair: Pair) -> None:
    pair.say("~told", body=encode_frame(TouchMemories(ids=("a",))))
    (incoming,) = pair.take(1)
    incoming.reply(Failure(ErrorCode.INTERNAL, "nobody reads this"))
    pair.say("~foreign", boot_id="another")
    assert pair.take(1) == []
    assert pair.silent()


def test_only_the_first_reply_is_sent(pair: Pair) -> None:
    pair.say("once")
    (incoming,) = pair.take(1)
    incoming.reply(HighWaterMark(previous="first", suspected_jump_since=None))
    incoming.reply(HighWaterMark(previous="second", suspected_jump_since=None))
    assert pair.answer()[1].previous == "first"
    assert pair.silent()
    assert pair.counters["duplicate"] == 1


def test_a_reply_to_a_disconnected_peer_is_counted(pair: Pair) -> None:
    pair.say("leaving")
    (incoming,) = pair.take(1)
    pair.client.close(linger=0)

    def unroutable() -> bool:
        incoming.answered = False
        incoming.reply(Failure(ErrorCode.INTERNAL, "x"))
        return pair.counters["unroutable"] > 0

    eventually(unroutable)


def lingering(pair: Pair, while_asleep: list[Callable[[], None]]) -> list[float]:
    """The mailbox lets batches gather, and at each sleep the next of ``while_asleep`` happens; the sleeps."""
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if while_asleep:
            while_asleep.pop(0)()

    box: Any = pair.box
    box._linger, box._sleep = Linger(256), sleep
    return slept


def test_a_batch_gathers_while_recent_ones_had_several_requests(pair: Pair) -> None:
    slept = lingering(pair, [])
    pair.say("1")
    pair.say("2")
    pair.all_there(2)
    assert len(pair.box.take()) == 2
    assert slept == []

    def one_more() -> None:
        pair.say("4")
        pair.all_there(1)

    slept = lingering(pair, [one_more])
    for _ in range(2):
        cast("Any", pair.box)._linger.on_batch(2)
    pair.say("3")
    pair.all_there(1)
    assert [incoming.header.message_id for incoming in pair.box.take()] == ["3", "4"]
    assert len(slept) == 1


def test_tells_do_not_make_a_batch_gather(pair: Pair) -> None:
    slept = lingering(pair, [])
    for _ in range(3):
        pair.say("~told", body=encode_frame(TouchMemories(ids=("a",))))
        pair.say("~told again", body=encode_frame(TouchMemories(ids=("a",))))
        pair.say("asked")
        pair.all_there(3)
        assert len(pair.box.take()) == 3
    assert slept == []


def test_a_batch_that_gathers_is_bounded_like_any_other(pair: Pair) -> None:
    def six_more() -> None:
        for number in range(6):
            pair.say(f"more {number}")
        pair.all_there(6)

    lingering(pair, [six_more])
    for _ in range(2):
        cast("Any", pair.box)._linger.on_batch(200)
    pair.say("first")
    pair.all_there(1)
    assert len(pair.box.take()) == 4
    for _ in range(3):
        _, refusal = pair.answer()
        assert refusal.code is ErrorCode.BUSY
