"""The gateway collects events for the audit log in bounded memory, and sends each until it is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

import pytest
import structlog

from signet_actors.errors import StorageFull, Unavailable
from signet_actors.features.audit.api import MAX_EVENTS, AuditEvent, RecordEvents
from signet_actors.gateway import audit_events
from signet_actors.gateway.audit_events import MOST, MOST_WAITING, AuditEvents
from signet_actors.protocol.message import Answered
from signet_actors.runtime.messaging.bus_client import BusClient
from tests.support.memory_api import RecordingBus
from tests.support.store_room import SetClock

RECORDED = Answered(b'{"seq":1}')


class Room:
    def __init__(self, reply: Any = RECORDED) -> None:
        self.bus = RecordingBus({RecordEvents: reply})
        self.clock = SetClock()
        self.ids = 0
        self.events = AuditEvents(cast("BusClient", self.bus), self.clock, structlog.get_logger(), self.new_id)

    def new_id(self) -> str:
        self.ids += 1
        return f"batch-{self.ids}"

    def deny(self, actor: str = "mallory", operation: str = "memories.export", times: int = 1) -> None:
        for _ in range(times):
            self.events.add(self.events.event("denied", actor, "refused", operation=operation))

    def change(self, name: str = "alice") -> AuditEvent:
        return self.events.event("change", name, "done", operation="config.write", uid=None)

    @property
    def batches(self) -> list[RecordEvents]:
        return [sent.body for sent in self.bus.asked if isinstance(sent.body, RecordEvents)]

    @property
    def rows(self) -> list[tuple[str, str, int]]:
        return [(event.kind, event.actor, event.count) for batch in self.batches for event in batch.events]


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


def test_a_million_equal_denials_are_one_row_and_take_no_more_memory_than_one() -> None:
    async def scenario() -> None:
        room.deny()
        held = len(room.events._windows)
        room.deny(times=999_999)
        assert (len(room.events._windows), len(room.events._waiting), held) == (1, 0, 1)
        await room.events.flush()
        assert room.rows == [("denied", "mallory", 1_000_000)]

    room = Room()
    run(scenario())


def test_equal_denials_of_a_minute_are_counted_in_a_second_row_at_its_end() -> None:
    async def scenario() -> None:
        for _ in range(59):
            room.deny(times=1000)
            await room.events.flush()
            room.clock.advance(1000)
        assert room.rows == [("denied", "mallory", 1000)]
        room.clock.advance(1000)
        await room.events.flush()
        assert room.rows[1:] == [("denied", "mallory", 58_000)]
        assert room.batches[1].events[0].created_at == "2026-01-01T00:00:01.000Z", "the first of those it counts"
        room.deny()
        await room.events.flush()
        assert room.rows[2:] == [("denied", "mallory", 1)], "a new minute begins with a row"
        room.clock.advance(60_000)
        await room.events.flush()
        assert (len(room.rows), room.events._windows) == (3, {})

    room = Room()
    run(scenario())


def test_what_is_beyond_a_number_of_different_denials_is_one_row() -> None:
    async def scenario() -> None:
        for number in range(10_000):
            room.deny(f"mallory-{number}")
        assert len(room.events._windows) == MOST + 1
        await room.events.flush()
        assert room.rows[-1] == ("more", "daemon", 10_000 - MOST)
        assert room.rows[:-1] == [("denied", f"mallory-{number}", 1) for number in range(MOST)]

    room = Room()
    run(scenario())


def test_an_event_is_sent_within_a_second_without_another_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        room.deny()
        await sent.wait()
        assert room.rows == [("denied", "mallory", 1)]

    def answer(_: RecordEvents) -> Answered:
        sent.set()
        return RECORDED

    monkeypatch.setattr(audit_events, "INTERVAL_S", 0.001)
    sent, room = asyncio.Event(), Room(answer)
    run(scenario())


def test_a_change_is_recorded_before_its_answer() -> None:
    async def scenario() -> None:
        await room.events.record(room.change())
        assert room.rows == [("change", "alice", 1)]
        assert room.batches[0].events[0].detail == {"operation": "config.write"}

    room = Room()
    run(scenario())


def test_changes_of_the_configuration_are_rows_of_their_own() -> None:
    async def scenario() -> None:
        for keys in (["search.alpha"], ["gateway.port"]):
            room.events.add_apart(room.events.event("configuration", "daemon", "done", keys=keys))
        await room.events.flush()
        assert [event.detail for event in room.batches[0].events] == [
            {"keys": ["search.alpha"]},
            {"keys": ["gateway.port"]},
        ]

    room = Room()
    run(scenario())


def test_events_wait_for_a_writer_that_is_away_and_are_sent_again_under_the_same_key() -> None:
    async def scenario() -> None:
        replies.extend([Unavailable("away"), StorageFull(), RECORDED])
        await room.events.record(room.change())
        room.deny()
        with pytest.raises(StorageFull):
            await room.events.flush()
        await room.events.flush()
        assert room.rows[-1] == ("denied", "mallory", 1)
        keys = [batch.idempotency and batch.idempotency.key for batch in room.batches]
        assert keys == ["batch-1", "batch-1", "batch-1", "batch-2"]
        assert [batch.events for batch in room.batches[:3]] == [room.batches[0].events] * 3

    replies: list[Any] = []

    def answer(_: RecordEvents) -> Any:
        reply = replies.pop(0) if replies else RECORDED
        if isinstance(reply, Exception):
            raise reply
        return reply

    room = Room(answer)
    run(scenario())


def test_changes_that_wait_for_a_writer_that_is_away_are_bounded_and_counted() -> None:
    async def scenario() -> None:
        for number in range(MOST_WAITING + 500):
            await room.events.record(room.change(f"agent-{number}"))
        assert len(room.events._waiting) == MOST_WAITING
        assert len(room.events._windows) == MOST + 1
        room.bus.script[RecordEvents] = RECORDED
        before = len(room.batches)
        await room.events.stop()
        sent = [event for batch in room.batches[before:] for event in batch.events]
        assert sum(event.count for event in sent) == MOST_WAITING + 500, "none is lost"
        assert max(len(batch.events) for batch in room.batches) == MAX_EVENTS

    room = Room(Unavailable("away"))
    run(scenario())


def test_a_change_does_not_wait_for_long_for_a_writer_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        async def ask_writer(request: Any, *, trace_id: str) -> Any:
            await never

        monkeypatch.setattr(room.bus, "ask_writer", ask_writer)
        never = asyncio.get_running_loop().create_future()
        await room.events.record(room.change())
        assert room.events._batch is not None

    monkeypatch.setattr(audit_events, "WAIT_S", 0.01)
    room = Room()
    run(scenario())


def test_a_stop_sends_what_was_counted() -> None:
    async def scenario() -> None:
        room.deny()
        await room.events.flush()
        room.deny(times=7)
        await room.events.stop()
        assert room.rows == [("denied", "mallory", 1), ("denied", "mallory", 7)]

    room = Room()
    run(scenario())
