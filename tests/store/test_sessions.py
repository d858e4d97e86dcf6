"""What is kept of a session, and the memories that it should not receive twice."""

from __future__ import annotations

from typing import Any

import pytest

from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.sessions import (
    FindSessionStart,
    GetSession,
    OfferedMemory,
    RecordSessions,
    ReturnedMemory,
    ReturnedRow,
    SessionContext,
    SessionFound,
    SessionStartFound,
    SetBypass,
)
from signet_actors.protocol.transcripts import CapturedTurn, StoreTurns
from signet_actors.protocol.writer import PurgeStep
from signet_actors.searcher.queries import sessions
from signet_actors.store.reads import sessions as stored
from tests.support.store_room import StoreRoom, plan_of

BEGAN = "2026-01-01T00:00:00.000Z"
LATER = "2026-03-01T00:00:00.000Z"


def context(key: str = "s", epoch: int = 0, **fields: Any) -> SessionContext:
    return SessionContext(key, "default", BEGAN, fields.pop("last_active_at", BEGAN), epoch, **fields)


def found(room: StoreRoom, key: str = "s", agent: str = "default") -> SessionFound:
    with room.reader.open_snapshot() as snapshot:
        return sessions.get_session(snapshot, GetSession(key, agent))


def start(room: StoreRoom, **fields: Any) -> SessionStartFound:
    query = FindSessionStart(ReadScope(), room.clock.wall_ms(), **fields)
    with room.reader.open_snapshot() as snapshot:
        return sessions.session_start(room.reader, snapshot, query)


def contents(memories: list[Any]) -> list[str]:
    return [memory.content for memory in memories]


def test_a_session_and_what_it_received_are_read_as_they_were_recorded(room: StoreRoom) -> None:
    one, two = room.remember("one"), room.remember("two")
    state = context(harness="codex", project="/p")
    returned = (ReturnedMemory("s", "default", 0, two.id, "key"), ReturnedMemory("s", "default", 0, one.id))
    room.ask(RecordSessions((state,), returned))
    returned_rows = [ReturnedRow(one.id, 1), ReturnedRow(two.id, 2, "key")]
    assert found(room) == SessionFound(state, returned_rows, of_agent="default")
    assert found(room, "other") == SessionFound()
    assert found(room, agent="other") == SessionFound(agent_known=False, of_agent="default")


def test_recording_twice_changes_nothing_and_an_epoch_never_goes_back(room: StoreRoom) -> None:
    one = room.remember("one")
    command = RecordSessions((context(epoch=1),), (ReturnedMemory("s", "default", 1, one.id, "first"),))
    room.ask(command)
    room.ask(command)
    room.ask(RecordSessions((context(epoch=0),), (ReturnedMemory("s", "default", 1, one.id, "second"),)))
    state = found(room)
    assert state.context is not None
    assert state.context.context_epoch == 1
    assert state.returned == [ReturnedRow(one.id, 1, "first")]
    for version in (3, 2):
        room.ask(RecordSessions((), (ReturnedMemory("s", "default", 1, one.id, "third", version),)))
    assert found(room).returned == [ReturnedRow(one.id, 1, "third", 3)]


def test_the_last_start_of_a_session_is_kept_beside_later_changes(room: StoreRoom) -> None:
    room.ask(RecordSessions((context(started_epoch=0, start_key="first"),)))
    room.ask(RecordSessions((context(epoch=1),)))
    state = found(room).context
    assert state is not None
    assert (state.context_epoch, state.started_epoch, state.start_key) == (1, 0, "first")
    room.ask(RecordSessions((context(epoch=1, started_epoch=1),)))
    state = found(room).context
    assert state is not None
    assert (state.started_epoch, state.start_key) == (1, None)


def test_a_new_epoch_has_received_nothing(room: StoreRoom) -> None:
    one = room.remember("one")
    room.ask(RecordSessions((context(),), (ReturnedMemory("s", "default", 0, one.id),)))
    room.ask(RecordSessions((context(epoch=1),)))
    assert found(room).returned == []


def test_old_records_are_purged_and_an_active_session_stays(room: StoreRoom) -> None:
    one = room.remember("one")
    room.ask(RecordSessions((context("old"), context("new", last_active_at=LATER)), ()))
    room.ask(RecordSessions((), (ReturnedMemory("old", "default", 0, one.id),)))
    assert room.ask(PurgeStep("sessions", LATER, 1)).more
    assert room.ask(PurgeStep("sessions", LATER, 100)).count == 1
    assert found(room, "old") == SessionFound()
    assert found(room, "new").context is not None


def test_of_a_long_epoch_the_last_received_rows_are_read(room: StoreRoom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "MAX_RECEIVED", 2)
    ids = [room.remember(f"memory {number}").id for number in range(4)]
    for number in (3, 0, 2, 1):
        room.clock.advance(1000)
        room.ask(RecordSessions((context(),), (ReturnedMemory("s", "default", 0, ids[number]),)))
    assert found(room).returned == [ReturnedRow(ids[2], 3), ReturnedRow(ids[1], 2)]


def test_a_bypass_holds_for_all_agents_of_the_session_until_it_is_switched_off(room: StoreRoom) -> None:
    room.ask(RecordSessions((context(), SessionContext("s", "bob", BEGAN, BEGAN))))
    room.ask(SetBypass("s", "bob", BEGAN, bypassed=True))
    room.ask(RecordSessions((context(epoch=1),)))
    assert [found(room, agent=agent).bypassed for agent in ("default", "bob", "a third one")] == [True] * 3
    assert not found(room, "other").bypassed
    room.ask(SetBypass("s", "default", BEGAN, bypassed=False))
    assert [found(room, agent=agent).bypassed for agent in ("default", "bob", "a third one")] == [False] * 3


def test_the_bypass_of_a_session_is_not_purged_however_old_it_is(room: StoreRoom) -> None:
    room.ask(SetBypass("s", "default", BEGAN, bypassed=True))
    room.ask(RecordSessions((context("s"), context("old"))))
    room.ask(PurgeStep("sessions", LATER, 100))
    assert found(room).bypassed
    assert found(room, "old").context is None
    room.ask(SetBypass("s", "default", BEGAN, bypassed=False))
    room.ask(PurgeStep("sessions", LATER, 100))
    assert found(room) == SessionFound(paused=True), "what was said then is never stored"


def test_received_rows_make_room_for_the_next_best(room: StoreRoom) -> None:
    ids = [room.remember(f"the harbour crane number {index} lifts crates").id for index in range(8)]
    everything = room.recall("harbour crane", limit=8)
    assert {row.id for row in everything.rows} == set(ids)
    first = everything.rows[:3]
    rest = room.recall("harbour crane", limit=4, received=tuple(row.wording for row in first))
    assert [row.id for row in rest.rows] == [row.id for row in everything.rows[3:7]]
    assert rest.suppressed == 3
    last = room.recall("harbour crane", limit=8, received=tuple(row.wording for row in everything.rows[:7]))
    assert ([row.id for row in last.rows], last.suppressed) == ([everything.rows[7].id], 7)


def test_received_rows_that_match_words_of_the_query_are_named(room: StoreRoom) -> None:
    room.remember("the harbour crane lifts crates", vector=[1.0, 0.0])
    room.remember("the ferry leaves at noon", vector=[1.0, 0.0])
    found = room.recall("harbour crane", vector=[1.0, 0.0], received=((1, 1), (2, 1)))
    assert (found.rows, found.suppressed, found.received_hits) == ([], 2, (1,))


def test_results_beside_received_rows_are_explained(room: StoreRoom) -> None:
    ids = [room.remember(f"the harbour crane number {index} lifts crates").id for index in range(4)]
    received = (room.recall("harbour crane").rows[0].wording,)
    found = room.recall("harbour crane", limit=3, received=received, explain=True, explain_id=ids[received[0][0] - 1])
    assert len(found.rows) == 3
    assert all(row.explanation is not None for row in found.rows)
    assert found.explained is not None
    assert found.explained.outcome == "already_recalled"


def test_a_row_that_another_query_finds_does_not_count_as_suppressed(room: StoreRoom) -> None:
    room.remember("the harbour crane lifts crates")
    other = room.remember("the bakery opens at six")
    found = room.recall("harbour crane", limit=5, received=((2, 1),))
    assert other.id not in [row.id for row in found.rows]
    assert found.suppressed == 0


def test_more_received_rows_than_a_leg_has_candidates_still_leave_the_others(room: StoreRoom) -> None:
    for index in range(40):
        room.remember(f"the harbour crane number {index} lifts crates")
    everything = room.recall("harbour crane", limit=40, pool=10).rows
    received = tuple(row.wording for row in everything[:30])
    assert len(room.recall("harbour crane", limit=10, pool=10, received=received).rows) == 10


@pytest.mark.parametrize(("project", "seen"), [("/a", {"of a", "of none"}), ("/c", {"of none"}), (None, {"of none"})])
@pytest.mark.parametrize("kind", ["preference", "decision"])
def test_a_session_starts_with_the_preferences_and_decisions_of_its_project_and_of_none(
    room: StoreRoom, project: str | None, seen: set[str], kind: str
) -> None:
    room.remember("of a", project="/a", type=kind)
    room.remember("of b", project="/b", type=kind)
    room.remember("of none", type=kind)
    room.remember("a fact of a", project="/a")
    room.remember("a note of a", project="/a", type=kind, source_type="markdown")
    assert set(contents(start(room, project=project).memories)) == seen


def offered(room: StoreRoom, session: str, content: str, **fields: Any) -> None:
    (memory_id,) = room.connection.execute("SELECT id FROM memories WHERE content = ?", (content,)).fetchone()
    given = {"source": "prompt", "rank": 1, "was_injected": True, **fields}
    room.ask(RecordSessions(offered=(OfferedMemory(session, "default", memory_id, **given),)))


def test_a_session_starts_with_what_was_asked_for_in_its_project(room: StoreRoom) -> None:
    for content, project in (
        ("recalled here", "/a"),
        ("recalled elsewhere", "/b"),
        ("recalled, of none", None),
        ("never asked for", "/a"),
        ("answered a prompt here", None),
        ("answered a prompt elsewhere", None),
        ("only offered here", None),
        ("matched a search here", None),
    ):
        room.remember(content, project=project)
    room.remember("an imported note that was recalled", project="/a", source_type="markdown")
    room.remember("recalled and preferred", project="/a", type="preference")
    room.remember("recalled and pinned", project="/a", pinned=True)
    room.connection.execute("UPDATE memories SET last_accessed = ? WHERE content LIKE '%recalled%'", (LATER,))
    room.connection.execute("UPDATE memories SET last_accessed = ? WHERE content LIKE 'matched%'", (LATER,))
    room.ask(RecordSessions((context("here", project="/a"), context("there", project="/b"))))
    offered(room, "here", "answered a prompt here")
    offered(room, "there", "answered a prompt elsewhere")
    offered(room, "here", "only offered here", was_injected=False)
    offered(room, "here", "matched a search here", source="recall", was_injected=False, hits=1)
    began = start(room, project="/a")
    assert set(contents(began.used)) == {
        "recalled here",
        "answered a prompt here",
        "matched a search here",
        "an imported note that was recalled",
    }
    assert contents(began.memories) == ["recalled and preferred"]
    assert set(contents(start(room, project=None).used)) == {"recalled, of none", "matched a search here"}


def test_preferences_come_before_decisions_however_old_they_are(room: StoreRoom) -> None:
    room.remember("answers in German", type="preference", importance=0.5)
    room.clock.advance(90 * 86_400_000)
    for number in range(3):
        room.remember(f"decided {number}", type="decision", importance=0.9, project="/a")
    assert contents(start(room, project="/a").memories)[0] == "answers in German"


def test_a_recall_of_a_project_and_of_none_leaves_out_other_projects(room: StoreRoom) -> None:
    for project in ("/a", "/b", None):
        room.remember(f"the harbour crane of {project}", project=project)
    rows = room.recall("harbour crane", filters=Filters(project="/a", or_no_project=True)).rows
    assert {row.project for row in rows} == {"/a", None}


def test_constraints_are_separate_the_pinned_ones_first_and_then_the_projects_own(room: StoreRoom) -> None:
    room.remember("an ordinary fact")
    room.remember("a rule of all", type="rule", importance=0.9)
    room.remember("a rule of the project", type="rule", importance=0.3, project="/a")
    room.remember("pinned", pinned=True, importance=1.0)
    began = start(room, project="/a")
    assert contents(began.constraints) == ["pinned", "a rule of the project", "a rule of all"]
    assert contents(start(room, project="/a", of_all_types=True).memories) == ["an ordinary fact"]


def test_memories_follow_their_importance_times_decay_since_the_last_recall(room: StoreRoom) -> None:
    for content, importance in (("faded", 0.7), ("recalled lately", 0.6), ("strong", 0.95)):
        room.remember(content, importance=importance)
    room.clock.advance(20 * 86_400_000)
    room.connection.execute(
        "UPDATE memories SET last_accessed = ? WHERE content = 'recalled lately'", ("2026-01-20T00:00:00.000Z",)
    )
    room.remember("fresh", importance=0.4)
    assert contents(start(room, of_all_types=True).memories) == ["recalled lately", "fresh", "strong", "faded"]
    assert contents(start(room, of_all_types=True, min_score=0.3).memories) == ["recalled lately", "fresh", "strong"]
    assert contents(start(room, of_all_types=True, limit=1).memories) == ["recalled lately"]


@pytest.mark.parametrize("candidates", [200, 1])
def test_with_a_bias_to_recency_a_new_memory_comes_before_a_more_important_one(
    room: StoreRoom, candidates: int
) -> None:
    for content, importance in (("weighty", 0.9), ("light", 0.5)):
        room.remember(content, importance=importance)
        room.clock.advance(86_400_000)
    assert contents(start(room, of_all_types=True, limit=1, candidates=candidates).memories) == ["weighty"]
    for bias in (0.7, 1.0):
        biased = start(room, of_all_types=True, limit=1, candidates=candidates, recency_bias=bias)
        assert contents(biased.memories) == ["light"]


def test_with_recency_alone_the_importance_does_not_count(room: StoreRoom) -> None:
    for content, importance in (("oldest", 1.0), ("older", 0.5), ("new", 0.01)):
        room.remember(content, importance=importance)
        room.clock.advance(86_400_000)
    assert contents(start(room, of_all_types=True, recency_bias=1.0).memories) == ["new", "older", "oldest"]


def capture(room: StoreRoom, key: str, agent: str) -> None:
    room.ask(StoreTurns(key, agent, "text", (CapturedTurn(key.encode(), 0, "user", "hello"),)))


def test_what_is_new_counts_from_when_another_session_of_the_agent_was_active(room: StoreRoom) -> None:
    room.remember("before")
    capture(room, "long ago", "default")
    assert start(room, session_key="mine").last_active_at is None
    room.ask(RecordSessions((context("signet-check-1", last_active_at=LATER),)))
    assert start(room, session_key="mine").last_active_at is None, "a check of the connection is no session"
    moment = "2026-01-01T12:00:00.000Z"
    room.ask(RecordSessions((context("theirs", last_active_at=moment), context("mine", last_active_at=LATER))))
    room.clock.advance(86_400_000)
    room.remember("after")
    began = start(room, session_key="mine")
    assert (began.last_active_at, began.new_memories) == (moment, 1)


def test_all_constraints_are_counted_beyond_the_limit(room: StoreRoom) -> None:
    for number in range(3):
        room.remember(f"rule {number}", type="rule")
    room.remember("a fact")
    found = start(room, max_constraints=2)
    assert (len(found.constraints), found.all_constraints) == (2, 3)


def test_sessions_are_found_and_purged_by_index(room: StoreRoom) -> None:
    asked: list[str] = []
    room.connection.exec_trace = lambda _cursor, sql, _bindings: asked.append(sql) or True
    room.ask(PurgeStep("sessions", LATER, 10))
    room.connection.exec_trace = None
    deletions = [sql for sql in asked if sql.startswith("DELETE FROM session_")]
    assert len(deletions) == 2
    for sql in deletions:
        assert not [line for line in plan_of(room.connection, sql) if line.startswith("SCAN") and "INDEX" not in line]


def test_the_memories_that_were_recalled_last_are_found_by_index_for_all_agents(room: StoreRoom) -> None:
    for number in range(3):
        room.remember(f"memory {number}", project=f"/{number}")
    for number, moment in ((0, "2026-01-02T00:00:00.000Z"), (2, "2026-01-03T00:00:00.000Z")):
        room.connection.execute("UPDATE memories SET last_accessed = ? WHERE content = ?", (moment, f"memory {number}"))
    with room.reader.open_snapshot() as snapshot:
        assert stored.last_accessed(snapshot, 10) == [3, 1]
        assert stored.last_accessed(snapshot, 1) == [3]
    (step,) = plan_of(room.connection, stored._LAST_ACCESSED)
    assert "USING COVERING INDEX idx_memories_last_accessed" in step
