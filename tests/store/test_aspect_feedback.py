"""The weights of aspects follow what sessions search for and how agents rate it.

Source: knowledge-graph.txt "Behavioral Feedback Loop"; memory-pipeline.txt "Aspect Feedback".
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from signet_actors.config.pipeline_schema import FeedbackConfig
from signet_actors.domain.transcripts.turns import Turn, stored_turns
from signet_actors.features.session_memories.api import FEEDBACK, FeedbackReply, FeedbackRequest
from signet_actors.operations.structured import read_structured
from signet_actors.protocol.message import Caller, Principal, message_of
from signet_actors.protocol.session_summaries import EndIdleSessions
from signet_actors.protocol.sessions import OfferedMemory, RecordSessions
from signet_actors.protocol.transcripts import CapturedTurn, StoreTurns
from signet_actors.protocol.writer import ForgetMemory
from tests.support.pipeline_harness import PipelineHarness, configured
from tests.support.store_room import kept_sound

DAY_MS = 86_400_000


class FeedbackRoom(PipelineHarness):
    def know(self, fact: str, aspect: str = "usage") -> str:
        """Store a memory that says something about an aspect of Vim; return its id."""
        stated = {"entity": "Vim", "aspect": aspect, "attributes": [fact]}
        return self.remember(fact, vector=[1.0], structured=read_structured({"aspects": [stated]})).id

    def offer(self, session: str, *memories: str, hits: int = 1) -> None:
        offered = tuple(
            OfferedMemory(session, "default", memory, "session_start", 1, was_injected=True, hits=hits)
            for memory in memories
        )
        self.ask(RecordSessions((), (), offered))

    def say(self, session: str, text: str = "Hello", **then: Any) -> None:
        self.clock.advance(5_000)
        turns = stored_turns([Turn("user", f"{text} {self.runs}")], str)
        self.runs += 1
        rows = tuple(CapturedTurn(row.basis, row.number, row.role, row.text) for row in turns)
        self.ask(StoreTurns(session, "default", "json", rows, **then))

    def end(self, session: str) -> None:
        self.say(session, ended=True)

    def weight(self, aspect: str = "usage") -> float:
        return self.value("SELECT weight FROM entity_aspects WHERE canonical_name = ?", aspect)

    def counter(self, name: str) -> int:
        return self.value("SELECT sum(count) FROM pipeline_counters WHERE name = ?", f"feedback.{name}") or 0

    def configure(self, **settings: Any) -> None:
        base = configured()
        pipeline = msgspec.structs.replace(base.memory.pipeline_v2, feedback=FeedbackConfig(**settings))
        self.reconfigure(
            msgspec.structs.replace(base, memory=msgspec.structs.replace(base.memory, pipeline_v2=pipeline))
        )


@pytest.fixture
def room(tmp_path: Path) -> Iterator[FeedbackRoom]:
    with kept_sound(FeedbackRoom(tmp_path)) as opened:
        yield opened


def test_each_memory_that_the_session_searched_for_raises_its_aspect_once(room: FeedbackRoom) -> None:
    first, second, other = room.know("Vim has modes"), room.know("Vim has macros"), room.know("Vim is free", "licence")
    room.offer("s", first, second, hits=3)
    room.offer("s", other, hits=0)
    room.end("s")
    assert room.weight() == pytest.approx(0.5 + 2 * 0.02)
    assert room.weight("licence") == 0.5
    assert (room.counter("aspects"), room.counter("confirmations")) == (1, 2)


def test_an_end_that_is_reported_again_or_comes_after_the_session_went_on_counts_no_memory_twice(
    room: FeedbackRoom,
) -> None:
    first, second = room.know("Vim has modes"), room.know("Vim has macros")
    room.offer("s", first)
    room.end("s")
    room.end("s")
    assert room.weight() == pytest.approx(0.52)
    room.say("s", then="goes_on")
    room.offer("s", first, second)
    room.end("s")
    assert room.weight() == pytest.approx(0.54)


def test_a_session_that_fell_silent_counts_as_ended(room: FeedbackRoom) -> None:
    memory = room.know("Vim has modes")
    room.offer("s", memory)
    room.say("s", then="goes_on")
    room.clock.advance(DAY_MS)
    for _ in range(2):
        room.ask(EndIdleSessions("2026-01-01T12:00:00.000Z"))
    assert room.weight() == pytest.approx(0.52)


def test_a_forgotten_memory_and_one_without_an_aspect_count_for_nothing(room: FeedbackRoom) -> None:
    gone, bare = room.know("Vim has modes"), room.remember("Nothing about anything", vector=[1.0]).id
    room.know("Vim has macros")
    room.offer("s", gone, bare)
    room.ask(ForgetMemory(gone, "it is wrong", Principal()))
    room.end("s")
    assert (room.weight(), room.counter("confirmations")) == (0.5, 0)


def test_weights_stay_within_their_bounds(room: FeedbackRoom) -> None:
    memories = [room.know(f"Vim has feature {number}") for number in range(4)]
    room.configure(delta=0.2)
    room.offer("s", *memories)
    room.end("s")
    assert room.weight() == 1.0
    room.configure(delta=1.0, min_weight=0.3)
    for memory in memories:
        rate(room, "s", {memory: -1.0})
    assert room.weight() == 0.3


def test_after_every_few_ends_of_the_agents_sessions_stale_aspects_lose_weight(room: FeedbackRoom) -> None:
    room.configure(interval=3, decay_rate=0.05, stale_days=14)
    room.know("Vim has modes")
    room.clock.advance(15 * DAY_MS)
    fresh = room.know("Vim is free", "licence")
    for number in range(2):
        room.end(f"s{number}")
    assert room.weight() == 0.5
    room.end("s1")
    assert room.weight() == 0.5, "the same end again is no other one"
    room.end("s2")
    assert (room.weight(), room.weight("licence")) == (pytest.approx(0.45), 0.5)
    assert room.counter("decayed") == 1
    for number in range(30):
        room.offer(f"t{number}", fresh)
        room.end(f"t{number}")
    assert room.weight() == pytest.approx(0.1), "ten times, and not below the lowest weight"


def rate(room: FeedbackRoom, session: str, ratings: dict[str, float]) -> FeedbackReply:
    request = FeedbackRequest(session_key=session, ratings=ratings)
    return room.ask(message_of(FEEDBACK)(caller=Caller(), request=request)).read(FeedbackReply)


def test_a_rating_moves_the_weight_of_the_memorys_aspect_and_says_so(room: FeedbackRoom) -> None:
    memory, bare = room.know("Vim has modes"), room.remember("Nothing about anything", vector=[1.0]).id
    room.offer("s", memory, bare)
    assert rate(room, "s", {memory: 0.5, bare: 1.0, "unknown": 1.0}).propagated == 1
    assert room.weight() == pytest.approx(0.51)
    rate(room, "s", {memory: -1.0})
    assert room.weight() == pytest.approx(0.49)
    assert room.counter("propagated") == 2
