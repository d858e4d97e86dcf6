"""What happened to a memory or an entity is told in order, and nothing of another agent or of what is gone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from signet_actors.errors import NotFound
from signet_actors.features.session_memories.api import FEEDBACK, FeedbackRequest
from signet_actors.features.timeline import reads
from signet_actors.features.timeline.api import EXPORT_TIMELINE, GET_TIMELINE, Event, TimelineReply, TimelineRequest
from signet_actors.operations.request_fields import AgentFields
from signet_actors.operations.structured import Structured, read_structured
from signet_actors.protocol.message import Caller, Principal, message_of
from signet_actors.protocol.sessions import OfferedMemory, RecordSessions
from signet_actors.protocol.writer import ForgetMany, ForgetMemory, ForgetTarget, MemoryPatch, ModifyMemory
from tests.support.pipeline_harness import PipelineHarness, add, change, configured
from tests.support.store_room import kept_sound

ME = Principal("tester")
SECRET = "quokka"


@pytest.fixture
def room(tmp_path: Path) -> Iterator[PipelineHarness]:
    with kept_sound(PipelineHarness(tmp_path)) as room:
        yield room


def told(room: PipelineHarness, named: str, agent: str = "default", **page: Any) -> TimelineReply:
    caller = Caller(agent, path={"id": named})
    with room.reader.open_snapshot() as view:
        return reads.timeline(view, message_of(GET_TIMELINE)(caller=caller, request=TimelineRequest(**page)))


def exported(room: PipelineHarness, named: str, agent: str = "default") -> TimelineReply:
    caller = Caller(agent, path={"id": named})
    with room.reader.open_snapshot() as view:
        return reads.exported(view, message_of(EXPORT_TIMELINE)(caller=caller, request=AgentFields()))


def names(reply: TimelineReply) -> list[tuple[str, str]]:
    return [(event.source, event.event) for event in reply.events]


def offer(room: PipelineHarness, memory_id: str, session: str, agent: str = "default", *, given: bool = True) -> None:
    room.ask(RecordSessions(offered=(OfferedMemory(session, agent, memory_id, "prompt", 1, was_injected=given),)))


def rate(room: PipelineHarness, memory_id: str, session: str, agent: str = "default") -> None:
    request = FeedbackRequest(session_key=session, ratings={memory_id: 0.8})
    room.ask(message_of(FEEDBACK)(caller=Caller(agent, ME), request=request))


def event_of(reply: TimelineReply, source: str) -> list[Event]:
    return [event for event in reply.events if event.source == source]


def test_the_events_of_a_memory_are_told_in_the_order_of_time(room: PipelineHarness) -> None:
    memory = room.remember(f"The {SECRET} sleeps", vector=[1.0]).id
    room.clock.advance(1000)
    room.extract(add("The animal sleeps"))
    room.clock.advance(1000)
    room.ask(ModifyMemory(MemoryPatch(memory, "a typo", content=f"The {SECRET} sleeps well"), ME))
    room.clock.advance(1000)
    offer(room, memory, "s1")
    offer(room, memory, "s2", given=False)
    room.clock.advance(1000)
    rate(room, memory, "s1")
    room.clock.advance(1000)
    room.ask(ForgetMemory(id=memory, reason="outdated", principal=ME))
    found = told(room, memory)
    assert (found.entity_type, found.entity_id, found.has_more) == ("memory", memory, False)
    assert [event.timestamp for event in found.events] == sorted(event.timestamp for event in found.events)
    assert set(names(found)) >= {
        ("history", "created"), ("job", "queued"), ("job", "completed"), ("decision", "created"),
        ("history", "updated"), ("session", "given"), ("session", "offered"), ("feedback", "rated"),
        ("history", "deleted"),
    }  # fmt: skip
    (changed,) = (event for event in found.events if event.event == "updated")
    assert (changed.details["changedBy"], changed.details["reason"]) == ("tester", "a typo")
    (rated,) = event_of(found, "feedback")
    assert (rated.details["sessionKey"], rated.details["score"]) == ("s1", 0.8)
    assert SECRET not in repr(found)
    assert exported(room, memory).events == found.events


def test_the_pages_are_the_whole_in_either_order(room: PipelineHarness) -> None:
    memory = room.remember("one", vector=[1.0]).id
    for number in range(7):
        room.clock.advance(500)
        room.ask(ModifyMemory(MemoryPatch(memory, f"change {number}", importance=number / 10), ME))
        offer(room, memory, f"s{number}")
    whole = told(room, memory).events
    assert told(room, memory, order="desc").events == whole[::-1]
    for order in ("asc", "desc"):
        pages: list[Event] = []
        while True:
            page = told(room, memory, limit=4, offset=len(pages), order=order)
            pages += page.events
            if not page.has_more:
                break
            assert len(page.events) == 4
        assert pages == (whole if order == "asc" else whole[::-1])


def test_sessions_and_memories_of_other_agents_are_not_told(room: PipelineHarness) -> None:
    shared = room.remember("shared", agent_id="cleo", vector=[1.0]).id
    private = room.remember("hers", agent_id="cleo", visibility="private").id
    offer(room, shared, "hers", "cleo")
    offer(room, shared, "mine")
    rate(room, shared, "hers", "cleo")
    assert [event.details["sessionKey"] for event in event_of(told(room, shared), "session")] == ["mine"]
    assert event_of(told(room, shared), "feedback") == []
    assert [event.details["sessionKey"] for event in event_of(told(room, shared, "cleo"), "session")] == ["hers"]
    with pytest.raises(NotFound):
        told(room, private)
    with pytest.raises(NotFound):
        exported(room, private)
    assert told(room, private, "cleo").events


def test_what_was_decided_because_of_another_agents_private_memory_is_not_told(tmp_path: Path) -> None:
    with kept_sound(PipelineHarness(tmp_path, config=configured(allow_update_delete=True))) as room:
        shared = room.remember("The deploy day is Monday", agent_id="cleo", vector=[1.0]).id
        room.extract(add("The build needs Java 21"))
        private = room.remember("Cleo moves the deploy day", agent_id="cleo", visibility="private", vector=[0.5]).id
        room.extract(change("update", "The deploy day is Tuesday", (shared, 1)))
        assert private in repr(told(room, shared, "cleo"))
        assert private not in repr(told(room, shared))
        assert told(room, shared).events != []


def test_nothing_is_told_of_a_memory_that_was_erased(room: PipelineHarness) -> None:
    memory = room.remember(f"The {SECRET} sleeps", vector=[1.0]).id
    offer(room, memory, "s1")
    room.ask(ForgetMany((ForgetTarget(memory),), "erase it", ME, hard=True))
    with pytest.raises(NotFound):
        told(room, memory)


def stating(number: int) -> Structured:
    attribute = {"content": f"port {number}", "groupKey": "g", "claimKey": "c"}
    return read_structured(
        {
            "entities": [{"source": "Shop", "relationship": "uses", "target": "PostgreSQL"}],
            "aspects": [{"entity": "Shop", "aspect": "database", "attributes": [attribute]}],
        }
    )


def test_the_events_of_an_entity_are_told_by_its_name(room: PipelineHarness) -> None:
    room.remember("first", structured=stating(1))
    room.clock.advance(1000)
    second = room.remember("second", structured=stating(2))
    found = told(room, "shop")
    assert found.entity_type == "entity"
    assert names(found).count(("mention", "mentioned")) == 2
    assert {("entity", "created"), ("attribute", "stated"), ("attribute", "superseded")} <= set(names(found))
    (depends,) = event_of(found, "dependency")
    assert (depends.event, depends.details["name"]) == ("depends on", "PostgreSQL")
    assert event_of(told(room, "postgresql"), "dependency")[0].event == "is depended on"
    assert told(room, found.entity_id).events == exported(room, "Shop").events == found.events
    room.ask(ForgetMemory(id=second.id, reason="r", principal=ME))
    left = told(room, "shop")
    assert "port 2" not in repr(left)
    assert names(left).count(("mention", "mentioned")) == 1
    with pytest.raises(NotFound):
        told(room, "shop", "cleo")


def test_the_timeline_of_an_entity_has_each_session_that_was_given_what_mentions_it(room: PipelineHarness) -> None:
    first = room.remember("first", structured=stating(1)).id
    second = room.remember("second", structured=stating(2)).id
    room.clock.advance(1000)
    offer(room, first, "found", given=False)
    room.clock.advance(1000)
    offer(room, first, "told", given=False)
    offer(room, second, "told")
    offer(room, first, "other", "cleo")
    sessions = [(event.event, event.details) for event in event_of(told(room, "shop"), "session")]
    assert sessions == [
        ("offered", {"sessionKey": "found", "memories": 1}),
        ("given", {"sessionKey": "told", "memories": 2}),
    ]
    assert exported(room, "shop").events == told(room, "shop").events
    room.ask(ForgetMemory(id=first, reason="r", principal=ME))
    assert [event.details for event in event_of(told(room, "shop"), "session")] == [
        {"sessionKey": "told", "memories": 1}
    ]
