"""The gateway keeps what was asked in bounded memory, without secrets, and sends each search until it is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, cast

import pytest
import structlog

from signet_actors.domain.redaction.scan import Redactor
from signet_actors.errors import Unavailable
from signet_actors.features.searches.api import MAX_SEARCHES, ConsideredMemory, RecordSearches
from signet_actors.features.searches.rules import HEAD_CHARS, LEFT_OUT
from signet_actors.gateway.sessions import search_log
from signet_actors.gateway.sessions.search_log import MOST_WAITING, SearchLog
from signet_actors.protocol.message import Answered
from signet_actors.runtime.messaging.bus_client import BusClient
from tests.support.memory_api import RecordingBus
from tests.support.store_room import SetClock

STORED = Answered(b"{}")


class Room:
    def __init__(self, reply: Any = STORED) -> None:
        self.bus = RecordingBus({RecordSearches: reply})
        self.clock = SetClock()
        self.ids = 0
        bus = cast("BusClient", self.bus)
        self.log = SearchLog(bus, self.clock, structlog.get_logger(), self.new_id, lambda: REDACTOR)

    def new_id(self) -> str:
        self.ids += 1
        return f"search-{self.ids}"

    @property
    def sent(self) -> list[Any]:
        return [search for asked in self.bus.asked for search in cast("RecordSearches", asked.body).searches]


REDACTOR = Redactor()


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 60))


def test_a_search_is_sent_within_a_second_without_another_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        room.log.add("recall", "default", text="which port?", began_ns=room.clock.monotonic_ns())
        assert room.sent == []
        await sent.wait()
        assert [(search.id, search.prompt) for search in room.sent] == [("search-1", "which port?")]

    def answer(_: RecordSearches) -> Answered:
        sent.set()
        return STORED

    monkeypatch.setattr(search_log, "INTERVAL_S", 0.01)
    sent = asyncio.Event()
    room = Room(answer)
    run(scenario())


def test_what_the_writer_does_not_take_is_sent_again_and_the_oldest_are_dropped_at_a_limit() -> None:
    async def scenario() -> None:
        for _ in range(MOST_WAITING + 5):
            room.log.add("recall", "default", text="which port?")
        with pytest.raises(Unavailable):
            await room.log.flush()
        assert (room.log.pending, room.log.dropped) == (MOST_WAITING, 5)
        room.bus.asked.clear()
        room.bus.script[RecordSearches] = STORED
        await room.log.stop()
        assert [search.id for search in room.sent] == [f"search-{number + 6}" for number in range(MOST_WAITING)]
        assert len(room.bus.asked) == MOST_WAITING // MAX_SEARCHES

    room = Room(Unavailable("the writer restarts"))
    run(scenario())


def test_only_the_beginning_of_what_a_person_wrote_is_kept_and_no_secret() -> None:
    async def scenario() -> None:
        secret, said = "ghp_" + "a1B2c3D4" * 4 + "e5F6", "Pa55-quince"
        room.log.add("prompt", "default", text=f"deploy with {secret} and {said}\nplease", known={said: "credential"})
        room.log.add("prompt", "default", text="word " * 5_000, harness=f"codex {secret}", project=f"/home/{secret}")
        room.log.add("prompt", "default", text=None)
        await room.log.flush()
        first, long, silent = room.sent
        assert first.prompt.startswith("deploy with ")
        assert first.prompt.endswith(" please")
        assert len(long.prompt) <= HEAD_CHARS
        assert silent.prompt is None
        assert not [text for text in (secret, said) if text in repr(room.sent)]

    room = Room()
    run(scenario())


def test_all_that_was_given_is_kept_and_the_best_of_what_was_left_out() -> None:
    async def scenario() -> None:
        given = [ConsideredMemory(seq, 1, 0.9, "given") for seq in range(30)]
        left = [ConsideredMemory(100 + seq, 1, 0.4, "below_relevance") for seq in range(30)]
        room.log.add("recall", "default", left[:15] + given + left[15:])
        await room.log.flush()
        (search,) = room.sent
        assert search.given == 30
        assert [each.seq for each in search.memories if each.outcome != "given"] == [
            100 + seq for seq in range(LEFT_OUT)
        ]

    room = Room()
    run(scenario())
