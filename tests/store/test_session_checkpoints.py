"""What is kept of the checkpoints of sessions, who may read them, and when they go."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signet_actors.config.pipeline_schema import ContinuityConfig, MemoryConfig, PipelineV2Config
from signet_actors.config.schema import Config
from signet_actors.features.checkpoints import reads as stored
from signet_actors.features.checkpoints.api import (
    LIST,
    LIST_SESSION,
    Checkpoint,
    CheckpointRecorded,
    FindRecovery,
    ProjectCheckpointsRequest,
    RecordCheckpoint,
    RecoveryFound,
    SessionCheckpointsRequest,
)
from signet_actors.protocol.message import Caller, Principal, message_of
from signet_actors.protocol.session_summaries import EndIdleSessions
from signet_actors.protocol.sessions import RecordSessions, SessionContext
from signet_actors.protocol.transcripts import CapturedTurn, ForgetTranscript, StoreTurns
from signet_actors.protocol.writer import PurgeStep
from signet_actors.searcher.queries import sessions
from tests.support.store_room import StoreRoom, kept_sound, plan_of, recording

LATER = "2026-03-01T00:00:00.000Z"


def record(room: StoreRoom, number: int, *, session: str = "s", **fields: Any) -> bool:
    trigger = fields.pop("trigger", "periodic")
    command = recording(session, f"c{number}", trigger, f"- Prompts: {number}", number, **fields)
    return bool(room.ask(command).read(CheckpointRecorded).stored)


def listed(
    room: StoreRoom, agent: str = "default", limit: int = 50, *, session_key: str | None = None, project: str = ""
) -> list[Checkpoint]:
    caller = Caller(agent, session_key=session_key)
    with room.reader.open_snapshot() as view:
        if session_key is None:
            of_project = ProjectCheckpointsRequest(project=project, limit=limit)
            return stored.of_project(view, message_of(LIST)(caller=caller, request=of_project)).checkpoints
        request = SessionCheckpointsRequest(limit=limit)
        return stored.of_session(view, message_of(LIST_SESSION)(caller=caller, request=request)).checkpoints


def ids(room: StoreRoom, agent: str = "default", **where: Any) -> list[str]:
    return [each.id for each in listed(room, agent, **where)]


def recovery(room: StoreRoom, agent: str = "default", **where: Any) -> RecoveryFound:
    with room.reader.open_snapshot() as view:
        return sessions.recovery(room.reader, view, FindRecovery(agent, **where)).read(RecoveryFound)


def recovered(room: StoreRoom, agent: str = "default", **where: Any) -> str | None:
    found = recovery(room, agent, **where).checkpoint
    return None if found is None else f"{found.id} ended" if found.ended else found.id


def test_a_checkpoint_is_read_as_it_was_recorded(room: StoreRoom) -> None:
    fields = {
        "queries": ("ferry", "pier"),
        "remembers": ("m1",),
        "harness": "codex",
        "project": "/p/../q/",
    }
    record(room, 7, trigger="pre_compaction", **fields)
    (one,) = listed(room, session_key="s")
    assert (one.id, one.session_key, one.agent_id, one.trigger) == ("c7", "s", "default", "pre_compaction")
    assert (one.harness, one.project, one.project_normalized) == ("codex", "/p/../q/", "/q")
    assert (one.digest, one.prompt_count, one.created_at) == ("- Prompts: 7", 7, "2026-01-01T00:00:00.000Z")
    assert (json.loads(one.memory_queries), json.loads(one.recent_remembers)) == (["ferry", "pier"], ["m1"])


def test_a_checkpoint_that_is_recorded_again_replaces_its_former_state(room: StoreRoom) -> None:
    record(room, 1)
    record(room, 2)
    room.ask(recording("s", "c1", "explicit", "- Prompts: 9", 9))
    assert [(one.id, one.prompt_count, one.trigger) for one in listed(room, session_key="s")] == [
        ("c2", 2, "periodic"),
        ("c1", 9, "explicit"),
    ]


def test_the_newest_come_first_and_no_more_than_asked_for(room: StoreRoom) -> None:
    for number in range(4):
        record(room, number, project="/p")
    assert ids(room, project="/p", limit=2) == ["c3", "c2"]
    assert ids(room, project="/other") == []


def test_the_checkpoints_of_an_agent_are_read_by_it_alone(room: StoreRoom) -> None:
    record(room, 1, agent="cleo", project="/p")
    record(room, 2, project="/p")
    assert (ids(room, project="/p"), ids(room, "cleo", project="/p")) == (["c2"], ["c1"])
    assert (ids(room, session_key="s"), ids(room, "cleo", session_key="s")) == (["c2"], ["c1"])
    assert (recovered(room, project="/p"), recovered(room, "cleo", project="/p")) == ("c2", "c1")


def test_the_oldest_checkpoints_of_a_session_go_beyond_its_configured_number(tmp_path: Path) -> None:
    continuity = ContinuityConfig(max_checkpoints_per_session=3)
    config = Config(memory=MemoryConfig(pipeline_v2=PipelineV2Config(continuity=continuity)))
    with kept_sound(StoreRoom(tmp_path, config=config)) as room:
        record(room, 0, session="other")
        record(room, 9, agent="cleo")
        for number in range(1, 6):
            record(room, number)
        assert ids(room, session_key="s") == ["c5", "c4", "c3"]
        assert (ids(room, session_key="other"), ids(room, "cleo", session_key="s")) == (["c0"], ["c9"])


def test_old_checkpoints_are_purged_by_index_and_a_step_at_a_time(room: StoreRoom) -> None:
    record(room, 1)
    record(room, 2)
    room.clock.advance(90 * 86_400_000)
    record(room, 3)
    asked: list[str] = []
    room.connection.exec_trace = lambda _cursor, sql, _bindings: asked.append(sql) or True
    first, second = (room.ask(PurgeStep("session_checkpoints", LATER, 1)) for _ in range(2))
    room.connection.exec_trace = None
    assert (first.count, first.more, second.count) == (1, True, 1)
    assert ids(room, session_key="s") == ["c3"]
    for sql in (sql for sql in asked if sql.startswith("DELETE FROM session_checkpoints")):
        assert not [line for line in plan_of(room.connection, sql) if line.startswith("SCAN") and "INDEX" not in line]


@pytest.mark.parametrize("column", ["session_key", "project_normalized"])
def test_checkpoints_are_found_by_index(room: StoreRoom, column: str) -> None:
    plan = plan_of(room.connection, stored._NEWEST.format(f"m.{column} = :value"))
    assert [line for line in plan if "USING INDEX idx_session_checkpoints_" in line], plan
    assert not [line for line in plan if "TEMP B-TREE" in line], plan


def test_the_last_session_is_found_by_its_project_and_it_is_told_whether_it_ended(room: StoreRoom) -> None:
    assert recovered(room, project="/p") is None
    record(room, 1, session="crashed", project="/p/")
    assert recovered(room, project="/p") == "c1"
    assert recovered(room, project="/q") is None
    record(room, 2, session="next", project="/p", trigger="session_end", ended=True)
    assert recovered(room, project="/p") == "c2 ended"


def test_an_end_without_a_checkpoint_ends_the_earlier_ones(room: StoreRoom) -> None:
    record(room, 1, project="/p")
    room.ask(RecordCheckpoint("s", "default", ended=True))
    assert ids(room, session_key="s") == ["c1"]
    assert recovered(room, project="/p") == "c1 ended"
    record(room, 2, project="/p")  # the session goes on
    assert recovered(room, project="/p") == "c2"


def active(room: StoreRoom, key: str, at: str, project: str = "/p") -> None:
    room.ask(RecordSessions((SessionContext(key, "default", at, at, project=project),)))


def spoke(room: StoreRoom, key: str, text: str, **fields: Any) -> None:
    turn = CapturedTurn(text.encode(), 0, "user", text)
    room.ask(StoreTurns(key, "default", "json", (turn,), **{"then": "goes_on", **fields}))


def last_turns(room: StoreRoom, since: str = "", key: str | None = "new") -> list[tuple[str, str]] | None:
    found = recovery(room, session_key=key, project="/p", since=since).transcript
    return None if found is None else found.turns


FIRST, SECOND, THIRD = (f"2026-01-01T0{hour}:00:00.000Z" for hour in (1, 2, 3))


def test_of_several_sessions_of_a_project_the_one_that_was_active_last_counts(room: StoreRoom) -> None:
    for number, session in enumerate(("a", "b", "c")):
        record(room, number, session=session, project="/p")
    for session, at in (("a", THIRD), ("b", FIRST), ("c", SECOND)):
        active(room, session, at)
    record(room, 4, session="a")
    assert recovered(room, project="/p") == "c4"
    active(room, "c", "2026-01-01T04:00:00.000Z")
    assert recovered(room, project="/p") == "c2"
    active(room, "elsewhere", "2026-01-01T05:00:00.000Z", project="/q")
    active(room, "silent", "2026-01-01T06:00:00.000Z")
    assert recovered(room, project="/p") == "c2", "a session that says nothing does not count"
    room.ask(RecordCheckpoint("c", "default", ended=True))
    assert recovered(room, project="/p") == "c2 ended"


def test_a_session_has_the_end_of_its_transcript_and_its_last_checkpoint(room: StoreRoom) -> None:
    active(room, "s", FIRST)
    spoke(room, "s", "paint the shed")
    assert last_turns(room) == [("user", "paint the shed")]
    assert last_turns(room, key="s") is None, "the session itself has what was said in it"
    assert last_turns(room, since=SECOND) is None
    room.ask(EndIdleSessions(LATER))
    assert last_turns(room) == [("user", "paint the shed")], "it fell silent, and reported no end"
    spoke(room, "s", "and the door")
    assert last_turns(room) == [("user", "paint the shed"), ("user", "and the door")]
    record(room, 1, session="s")
    assert (last_turns(room), recovered(room, project="/p")) == (
        [("user", "paint the shed"), ("user", "and the door")],
        "c1",
    )


@pytest.mark.parametrize("fields", [{"ended": True, "then": None}, {"then": "dropped"}, {"then": None}])
def test_the_end_of_a_session_that_ended_is_found_and_said_to_be_one(room: StoreRoom, fields: dict[str, Any]) -> None:
    active(room, "earlier", FIRST)
    spoke(room, "earlier", "paint the gate")
    active(room, "s", SECOND)
    spoke(room, "s", "paint the shed", **fields)
    found = recovery(room, session_key="new", project="/p").transcript
    assert found is not None
    assert (found.turns, bool(found.ended)) == ([("user", "paint the shed")], True)


def test_the_last_prompt_is_found_however_much_was_answered_since(room: StoreRoom) -> None:
    active(room, "s", FIRST)
    spoke(room, "s", "paint the shed")
    for number in range(30):
        turn = CapturedTurn(str(number).encode(), 0, "assistant", f"step {number}")
        room.ask(StoreTurns("s", "default", "json", (turn,), then="goes_on"))
    turns = last_turns(room)
    assert turns is not None
    assert (turns[0], turns[-1]) == (("user", "paint the shed"), ("assistant", "step 29"))


def test_the_sessions_of_a_project_are_found_by_index(room: StoreRoom) -> None:
    plan = plan_of(room.connection, stored._ACTIVE)
    assert any("USING INDEX idx_session_contexts_project" in line for line in plan), plan
    assert not [line for line in plan if "TEMP B-TREE" in line or line.startswith("SCAN s")], plan


ENDED_AT = "2025-12-31T23:59:00.000Z"
"""Before the checkpoints of the store room are made."""


def end(room: StoreRoom, number: int, ended_at: str | None = ENDED_AT, **fields: Any) -> str | None:
    """Report the end of the session; return the id of the checkpoint that this end has already."""
    command = recording("s", f"c{number}", "session_end", "- Prompts", ended=True, ended_at=ended_at, **fields)
    done: CheckpointRecorded = room.ask(command).read(CheckpointRecorded)
    assert done.stored
    return done.same_end


@pytest.mark.parametrize("ended_at", [ENDED_AT, None])
def test_an_end_that_is_reported_again_has_the_checkpoint_of_the_first_report(
    room: StoreRoom, ended_at: str | None
) -> None:
    assert end(room, 1, ended_at, prompt_count=3) is None
    assert end(room, 2, ended_at) == "c1"
    assert [(one.id, one.prompt_count) for one in listed(room, session_key="s")] == [("c1", 3)]


def test_what_a_session_does_before_its_earlier_end_is_reported_again_is_a_periodic_checkpoint(
    room: StoreRoom,
) -> None:
    end(room, 1, prompt_count=3)
    assert end(room, 2, queries=("ferry",)) == "c1"
    ended = "SELECT ended FROM session_checkpoints WHERE id = ?"
    assert [(one.id, one.trigger, room.value(ended, one.id)) for one in listed(room, session_key="s")] == [
        ("c2", "periodic", 0),
        ("c1", "session_end", 1),
    ]
    assert end(room, 3) == "c1"
    assert recovered(room, session_key="s", same_session=True) == "c2"


def test_each_end_of_a_session_that_went_on_has_a_checkpoint(room: StoreRoom) -> None:
    end(room, 1, prompt_count=3)
    assert end(room, 2, LATER, prompt_count=1) is None
    record(room, 3)
    assert end(room, 4, LATER) is None
    assert ids(room, session_key="s") == ["c4", "c3", "c2", "c1"]


def test_the_end_of_a_session_of_another_agent_or_key_is_another_end(room: StoreRoom) -> None:
    record(room, 1, session="s", agent="cleo", trigger="session_end", ended=True)
    record(room, 2, session="t", trigger="session_end", ended=True)
    assert end(room, 3) is None


def test_a_session_goes_on_with_its_own_checkpoint_even_if_it_ended(room: StoreRoom) -> None:
    record(room, 1, trigger="session_end", ended=True, project="/p")
    record(room, 2, session="other", project="/p")
    assert recovered(room, session_key="s", same_session=True, project="/p") == "c1 ended"
    assert recovered(room, session_key="s", project="/p") == "c2"
    assert recovered(room, session_key="unknown", same_session=True, project="/p") is None


def test_forgetting_a_transcript_erases_the_checkpoints_and_later_ones_are_not_stored(room: StoreRoom) -> None:
    room.ask(StoreTurns("s", "default", "text", (CapturedTurn(b"1", 0, "user", "the zeppelin"),)))
    record(room, 1)
    record(room, 2, agent="cleo")
    room.ask(ForgetTranscript("s", "default", Principal()))
    assert ids(room, session_key="s") == []
    assert ids(room, "cleo", session_key="s") == ["c2"]
    assert record(room, 3) is False
    assert ids(room, session_key="s") == []
