"""A transcript that takes long to read holds up no other, ends with its request, and is not tried for ever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from signet_actors.domain.transcripts.parse import parse_transcript
from signet_actors.domain.transcripts.turns import MAX_LINES, TranscriptTooLong
from signet_actors.errors import Busy, Unavailable
from signet_actors.gateway.transcript_files import TranscriptRefused
from signet_actors.gateway.transcript_readers import (
    MOST_LONG,
    MOST_TRIES,
    MOST_WAITING,
    NOTED_S,
    ReadingTooLong,
    TranscriptReaders,
)

WAIT_S = 60.0
Check = Callable[[], None]


def endless(check: Check) -> None:
    while True:
        check()


def test_a_reading_that_takes_long_gives_its_place_to_the_next() -> None:
    readers = TranscriptReaders(long_s=0)
    may_end = threading.Event()

    def long(check: Check) -> str:
        check()
        assert may_end.wait(WAIT_S)
        check()
        return "long"

    async def read() -> None:
        slow = asyncio.ensure_future(readers.run(long, "slow", WAIT_S))
        for number in range(2 * MOST_WAITING):
            assert await readers.run(lambda _, number=number: number, number, WAIT_S) == number  # type: ignore[misc]
        assert not slow.done()
        may_end.set()
        assert await slow == "long"
        assert readers.counts == {False: 0, True: 0}

    asyncio.run(read())


def test_readings_that_take_long_go_on_one_after_the_other() -> None:
    readers = TranscriptReaders(long_s=0)
    running: list[str] = []

    def long(name: str) -> Callable[[Check], None]:
        def work(check: Check) -> None:
            check()
            running.append(name)
            assert running == [name]
            check()
            running.remove(name)

        return work

    async def read() -> None:
        await asyncio.gather(*(readers.run(long(str(number)), number, WAIT_S) for number in range(MOST_LONG)))

    asyncio.run(read())


def test_a_reading_ends_with_its_request_and_is_refused_when_it_came_too_often() -> None:
    now = [0.0]
    readers = TranscriptReaders(clock=lambda: now[0])

    def slow(check: Check) -> None:
        now[0] += 11
        check()

    async def read(name: str = "slow", work: Callable[[Check], Any] = slow) -> Any:
        return await readers.run(work, name, 10)

    assert readers.note() is None
    for _ in range(MOST_TRIES - 1):
        with pytest.raises(Unavailable, match="again later"):
            asyncio.run(read())
        assert readers.was_given_up("slow")
    with pytest.raises(TranscriptRefused, match="3 times"):
        asyncio.run(read())
    assert "given up 0 min ago" in str(readers.note())
    assert asyncio.run(read("other", lambda _: 1)) == 1
    now[0] += NOTED_S + 1
    assert readers.note() is None
    assert asyncio.run(read("slow", lambda _: 2)) == 2, "it may be faster on another day"
    assert not readers.was_given_up("slow")


def test_what_was_given_up_once_begins_in_the_place_of_long_readings() -> None:
    readers = TranscriptReaders(long_s=WAIT_S)
    began, may_end = threading.Event(), threading.Event()

    def again(_: Check) -> None:
        began.set()
        assert may_end.wait(WAIT_S)

    async def read() -> None:
        with pytest.raises(Unavailable):
            await readers.run(endless, "slow", 0.01)
        slow = asyncio.ensure_future(readers.run(again, "slow", WAIT_S))
        await asyncio.to_thread(began.wait, WAIT_S)
        assert await readers.run(lambda _: "read", "other", WAIT_S) == "read"
        may_end.set()
        await slow

    asyncio.run(read())


def test_a_reading_of_a_client_that_left_ends() -> None:
    readers = TranscriptReaders()
    began, ended = threading.Event(), threading.Event()

    def work(check: Check) -> None:
        began.set()
        try:
            endless(check)
        except ReadingTooLong:
            ended.set()
            raise

    async def read() -> None:
        reading = asyncio.ensure_future(readers.run(work, "left", WAIT_S))
        await asyncio.to_thread(began.wait, WAIT_S)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert await asyncio.to_thread(ended.wait, WAIT_S)
        assert await readers.run(lambda _: 1, "other", WAIT_S) == 1

    asyncio.run(read())


def test_more_transcripts_than_may_wait_are_busy() -> None:
    readers = TranscriptReaders(long_s=WAIT_S)
    may_end = threading.Event()

    async def read() -> None:
        waiting = [asyncio.ensure_future(readers.run(lambda _: may_end.wait(WAIT_S), n, WAIT_S)) for n in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            await readers.run(lambda _: None, "one too many", WAIT_S)
        may_end.set()
        assert all(await asyncio.gather(*waiting))

    asyncio.run(read())


RECORD = b'{"type":"user","sessionId":"s","message":{"role":"user","content":"Which port?"}}\n'
FEW = 2 * MAX_LINES


@pytest.mark.parametrize("line", [b"\n", b" \n", b"\r\n"])
def test_blank_lines_are_no_lines_of_a_transcript(line: bytes) -> None:
    assert parse_transcript(line * FEW).turns == []
    around = parse_transcript(line * FEW + RECORD + line * FEW + RECORD + line * FEW)
    assert [turn.text for turn in around.turns] == ["Which port?"] * 2
    dialogue = b"User: Which port?\n" + line * FEW + b"Assistant: 5433\n" + line * FEW
    assert [turn.text for turn in parse_transcript(dialogue).turns] == ["Which port?", "5433"]


@pytest.mark.parametrize(
    "line", [b"{}\n", b'{"type":"progress"}\n', b'{"a": 1}\n', b'{"$set":{}}\n', RECORD[:-2] + b",\n"]
)
def test_a_transcript_of_too_many_lines_is_refused(line: bytes) -> None:
    with pytest.raises(TranscriptTooLong, match="more than 500000 lines"):
        parse_transcript(RECORD * 100 + line * (MAX_LINES - 99))


def test_a_dialogue_of_too_many_lines_that_name_nobody_is_refused() -> None:
    with pytest.raises(TranscriptTooLong, match="more than 500000 lines"):
        parse_transcript(b"User: a\nAssistant: b\n" + b"a: b\n" * (MAX_LINES + 1))
    assert len(parse_transcript(b"a: b\n" * (MAX_LINES + 1)).turns) == 1, "it is a text"
    assert len(parse_transcript(b"User: a\nAssistant: b\n" + b"words\n" * (MAX_LINES + 1)).turns) == 2
