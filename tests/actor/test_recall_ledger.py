"""The record of what sessions received: when it is read, when it is stored, and what happens when that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, cast

import pytest
import structlog

from signet_actors.errors import Busy, Unavailable
from signet_actors.gateway.sessions import ledger as ledger_module
from signet_actors.gateway.sessions.ledger import MAX_REQUESTS, Context, RecallLedger
from signet_actors.protocol.sessions import (
    MAX_RECEIVED,
    GetSession,
    RecordSessions,
    ReturnedRow,
    SessionContext,
    SessionFound,
)
from tests.support.memory_api import RecordingBus, SetClock

AT = "2026-02-21T10:00:00.000Z"


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> RecordingBus:
    monkeypatch.setattr(ledger_module, "FLUSH_MS", 0)
    monkeypatch.setattr(ledger_module, "RETRY_MS", 0)
    return RecordingBus(script={GetSession: SessionFound(), RecordSessions: lambda command: command})


def run(bus: RecordingBus, work: Callable[[RecallLedger], Coroutine[Any, Any, None]], **limits: int) -> None:
    async def go() -> None:
        await work(RecallLedger(cast("Any", bus), SetClock(), structlog.get_logger(), **limits))

    asyncio.run(go())


async def opened(ledger: RecallLedger, key: str = "s") -> Context:
    return await ledger.context(key, "default", trace_id="t")


async def idle(ledger: RecallLedger) -> None:
    """Wait until everything is stored."""
    assert ledger._flusher is not None
    await ledger._flusher


def stored(bus: RecordingBus) -> list[RecordSessions]:
    return [sent.body for sent in bus.asked if isinstance(sent.body, RecordSessions)]


def reads(bus: RecordingBus) -> int:
    return sum(isinstance(sent.body, GetSession) for sent in bus.asked)


def test_a_session_is_read_once_however_many_requests_wait_for_it(bus: RecordingBus) -> None:
    async def work(ledger: RecallLedger) -> None:
        found = await asyncio.gather(*(opened(ledger) for _ in range(5)))
        assert len(set(map(id, found))) == 1
        assert await opened(ledger) is found[0]

    run(bus, work)
    assert len(bus.asked) == 1


def test_what_an_earlier_process_stored_is_left_out(bus: RecordingBus) -> None:
    state = SessionContext("s", "default", AT, AT, 2)
    bus.script[GetSession] = SessionFound(state, [ReturnedRow("a", 1), ReturnedRow("b", 2, "k", 3)], bypassed=True)

    async def work(ledger: RecallLedger) -> None:
        context = await opened(ledger)
        assert (context.epoch, context.started) == (2, False)
        assert context.left_out(None) == ((1, 1), (2, 3))
        assert context.left_out("k") == ((1, 1),)
        assert ledger.is_bypassed("s")

    run(bus, work)


@pytest.mark.parametrize(
    ("stored", "started"),
    [
        (SessionContext("s", "default", AT, AT, 2, "codex"), False),
        (SessionContext("s", "default", AT, AT, 2, "codex", started_epoch=1, start_key="k"), False),
        (SessionContext("s", "default", AT, AT, 2, "codex", started_epoch=2, start_key="k"), True),
    ],
)
def test_a_start_that_an_earlier_process_answered_counts_in_its_epoch_only(
    bus: RecordingBus, stored: SessionContext, started: bool
) -> None:
    bus.script[GetSession] = SessionFound(stored)

    async def work(ledger: RecallLedger) -> None:
        context = await opened(ledger)
        assert context.started is started
        assert context.is_answered("k") is started

    run(bus, work)


def test_a_session_that_cannot_be_read_is_read_again_at_the_next_request(bus: RecordingBus) -> None:
    bus.script[GetSession] = Unavailable("away")

    async def work(ledger: RecallLedger) -> None:
        with pytest.raises(Unavailable):
            await opened(ledger)
        bus.script[GetSession] = SessionFound()
        assert (await opened(ledger)).epoch == 0

    run(bus, work)


def test_received_rows_are_stored_with_their_epoch_and_request(bus: RecordingBus) -> None:
    async def work(ledger: RecallLedger) -> None:
        context = await opened(ledger)
        ledger.record(context, [("a", (1, 1)), ("b", (2, 1))], None)
        ledger.record(context, [("a", (1, 1)), ("c", (3, 1))], "k")
        ledger.record(context, [("a", (1, 4))], None)
        assert not context.has_received("a", (1, 1), None)
        assert context.has_received("a", (1, 4), None)
        ledger.begin_epoch(context)
        ledger.record(context, [("a", (1, 4))], None)
        await idle(ledger)

    run(bus, work)
    (command,) = stored(bus)
    rows = [(row.context_epoch, row.memory_id, row.content_version, row.request_key) for row in command.returned]
    assert rows == [(0, "a", 1, None), (0, "b", 1, None), (0, "c", 1, "k"), (0, "a", 4, None), (1, "a", 4, None)]
    assert [state.context_epoch for state in command.contexts] == [1]


def test_an_epoch_begins_for_each_loss_that_a_transcript_shows_and_none_was_begun_for(bus: RecordingBus) -> None:
    async def work(ledger: RecallLedger) -> None:
        context = await opened(ledger)
        epochs = []
        for losses in (0, 1, 1, 3):
            ledger.note_losses(context, losses)
            epochs.append(context.epoch)
        assert epochs == [0, 1, 1, 2]
        ledger.expect_loss(context)
        assert context.epoch == 3
        ledger.note_losses(context, 4)
        assert context.epoch == 3, "this one was expected"
        ledger.expect_loss(context)
        ledger.note_losses(context, 4)  # it did not take place
        ledger.note_losses(context, 5)
        assert context.epoch == 5

    run(bus, work)


def test_a_writer_that_is_away_delays_the_record_and_loses_nothing(bus: RecordingBus) -> None:
    failures = [Unavailable("away")] * 3
    bus.script[RecordSessions] = lambda command: failures.pop() if failures else command

    async def work(ledger: RecallLedger) -> None:
        context = await opened(ledger)
        ledger.record(context, [("a", (1, 1))], None)
        await idle(ledger)
        assert ledger.pending == 0

    run(bus, work)
    assert len(stored(bus)) == 4
    assert len({command.returned for command in stored(bus)}) == 1


def test_a_drain_stores_what_is_pending(bus: RecordingBus, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "FLUSH_MS", 3_600_000)

    async def work(ledger: RecallLedger) -> None:
        ledger.record(await opened(ledger), [("a", (1, 1))], None)
        await ledger.stop()

    run(bus, work)
    assert len(stored(bus)) == 1


def test_the_record_of_a_session_and_the_number_of_sessions_are_bounded(bus: RecordingBus) -> None:
    async def work(ledger: RecallLedger) -> None:
        context = await opened(ledger)
        for number in range(MAX_RECEIVED + 10):
            ledger.record(context, [(str(number), (number, 1))], f"k{number}")
        assert len(context.received) == MAX_RECEIVED
        assert len(context.requests) == MAX_REQUESTS
        assert context.has_received(str(MAX_RECEIVED), (MAX_RECEIVED, 1), None)
        assert not context.has_received("3", (3, 1), None)
        await idle(ledger)
        del context
        before = reads(bus)
        for key in ("t", "u", "s"):
            await opened(ledger, key)
        assert reads(bus) == before + 3

    run(bus, work, max_contexts=2)


def test_a_session_in_use_is_the_same_for_all_however_many_others_there_are(bus: RecordingBus) -> None:
    async def work(ledger: RecallLedger) -> None:
        context = await opened(ledger)
        for number in range(5):
            await opened(ledger, f"other {number}")
        assert await opened(ledger) is context

    run(bus, work, max_contexts=2)


def test_a_session_that_is_not_stored_yet_is_not_read_again(bus: RecordingBus) -> None:
    bus.script[RecordSessions] = Unavailable("away")

    async def work(ledger: RecallLedger) -> None:
        ledger.record(await opened(ledger), [("a", (1, 1))], None)
        for number in range(5):
            await opened(ledger, f"other {number}")
        assert (await opened(ledger)).left_out(None) == ((1, 1),)

    run(bus, work, max_contexts=2)


def test_no_further_session_is_read_while_too_many_wait_to_be_stored(
    bus: RecordingBus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "MAX_UNSTORED", 3)
    bus.script[RecordSessions] = Unavailable("away")

    async def work(ledger: RecallLedger) -> None:
        for number in range(3):
            ledger.begin_epoch(await opened(ledger, f"s{number}"))
        with pytest.raises(Busy):
            await opened(ledger, "one more")
        assert (await opened(ledger, "s0")).epoch == 1
        bus.script[RecordSessions] = lambda command: command
        await ledger.flush()
        assert (await opened(ledger, "one more")).epoch == 0

    run(bus, work)


class SlowWriter(RecordingBus):
    """A bus whose writer replies when it is told to."""

    def __init__(self) -> None:
        super().__init__(script={GetSession: SessionFound(), RecordSessions: lambda command: command})
        self.asked_first, self.may_reply = asyncio.Event(), asyncio.Event()

    async def ask_writer(self, request: Any, **options: Any) -> Any:
        self.asked_first.set()
        await self.may_reply.wait()
        return await super().ask_writer(request, **options)


def test_a_reader_waits_for_what_is_being_stored(bus: RecordingBus) -> None:
    async def work(ledger: RecallLedger) -> None:
        slow = cast("SlowWriter", ledger._bus)
        ledger.record(await opened(ledger), [("a", (1, 1))], None)
        await slow.asked_first.wait()  # the background task took everything that was pending
        reader = asyncio.ensure_future(ledger.flush())
        await asyncio.wait([reader], timeout=0)
        assert not reader.done()
        slow.may_reply.set()
        await reader
        assert [row.memory_id for command in stored(slow) for row in command.returned] == ["a"]

    run(SlowWriter(), work)
