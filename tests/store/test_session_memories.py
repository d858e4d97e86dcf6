"""What a session was offered is kept apart for each session and agent, with its ratings, until it is too old."""

from __future__ import annotations

import pytest

from signet_actors.errors import NotFound
from signet_actors.features.session_memories.api import (
    FEEDBACK,
    SESSION_MEMORIES,
    FeedbackReply,
    FeedbackRequest,
    ListSessionMemoriesRequest,
    SessionMemoriesReply,
    SessionMetrics,
)
from signet_actors.features.session_memories.reads import listed as read_listed
from signet_actors.features.session_memories.writes import feedback_type, running_mean
from signet_actors.operations.request_fields import clamped_score
from signet_actors.protocol.message import Asked, Caller, Idempotency, Principal, message_of
from signet_actors.protocol.sessions import OfferedMemory, RecordSessions
from signet_actors.protocol.writer import ForgetMany, ForgetMemory, ForgetTarget, PurgeStep
from tests.support.store_room import StoreRoom

ME = Principal(changed_by="codex", actor_type="agent")


def offered(memory_id: str, source: str = "session_start", rank: int = 1, **fields: object) -> OfferedMemory:
    return OfferedMemory("s", "default", memory_id, source, rank, **fields)  # type: ignore[arg-type]


def offer(room: StoreRoom, *memories: OfferedMemory) -> None:
    room.ask(RecordSessions(offered=memories))


def rating(
    scores: dict[str, float], agent: str = "default", idempotency: Idempotency | None = None
) -> Asked[FeedbackRequest]:
    request = FeedbackRequest(session_key="s", ratings=scores)
    return message_of(FEEDBACK)(caller=Caller(agent, ME), request=request, idempotency=idempotency)


def rate(room: StoreRoom, agent: str = "default", **scores: float) -> FeedbackReply:
    done: FeedbackReply = room.ask(rating(scores, agent)).read(FeedbackReply)
    assert done.recorded == done.accepted
    return done


def listed(room: StoreRoom, agent: str = "default", limit: int = 10, offset: int = 0) -> SessionMemoriesReply:
    page = ListSessionMemoriesRequest(limit=limit, offset=offset)
    with room.reader.open_snapshot() as snapshot:
        return read_listed(snapshot, message_of(SESSION_MEMORIES)(caller=Caller(agent, session_key="s"), request=page))


def test_what_a_session_was_offered_is_listed_in_order_with_metrics(room: StoreRoom) -> None:
    one, two, three = (room.remember(text).id for text in ("one", "two", "three"))
    offer(room, offered(two, rank=2), offered(one, was_injected=True))
    room.clock.advance(1000)
    offer(room, offered(three, "prompt", was_injected=True, hits=1), offered(one, "recall", rank=7, hits=1))
    found = listed(room)
    assert [(row.content, row.source, row.rank, row.was_injected, row.fts_hit_count) for row in found.memories] == [
        ("one", "session_start", 1, True, 1),
        ("two", "session_start", 2, False, 0),
        ("three", "prompt", 1, True, 1),
    ]
    assert found.metrics == SessionMetrics(
        offered=3, injected=2, hit=2, injected_and_hit=2, rated=0, mean_relevance=None, mean_feedback=None
    )
    assert [row.id for row in listed(room, limit=1, offset=1).memories] == [two]


def test_a_memory_that_is_shown_later_counts_as_injected_by_that_hook(room: StoreRoom) -> None:
    one = room.remember("one").id
    offer(room, offered(one, rank=40))
    offer(room, offered(one, "prompt", rank=1, was_injected=True))
    offer(room, offered(one, "recall", rank=3))
    (row,) = listed(room).memories
    assert (row.source, row.rank, row.was_injected) == ("prompt", 1, True)


def test_an_agent_sees_only_its_own_sessions_and_readable_memories(room: StoreRoom) -> None:
    mine = room.remember("mine", visibility="private").id
    offer(room, offered(mine), OfferedMemory("s", "cleo", mine, "recall", 1))
    assert listed(room).metrics.offered == 1
    for agent in ("cleo", "dora"):
        with pytest.raises(NotFound):
            listed(room, agent)
    room.ask(ForgetMemory(id=mine, reason="outdated", principal=ME))
    with pytest.raises(NotFound):
        listed(room)


def test_ratings_are_averaged(room: StoreRoom) -> None:
    memory = room.remember("one").id
    offer(room, offered(memory))
    for score in (0.8, 0.4):
        assert rate(room, **{memory: score}).accepted == 1
    (row,) = listed(room).memories
    assert (row.feedback, row.feedback_count) == (pytest.approx(0.6), 2)
    assert listed(room).metrics.mean_feedback == pytest.approx(0.6)
    assert room.value("SELECT feedback_type || actor FROM agent_feedback") == "positivecodex"


def test_a_rating_counts_only_for_what_the_session_was_offered(room: StoreRoom) -> None:
    known, other = room.remember("one").id, room.remember("two").id
    offer(room, offered(known))
    done = rate(room, **{known: 1.0, other: 1.0, "missing": 1.0})
    assert (done.accepted, done.rejected) == (1, 2)
    assert rate(room, "cleo", **{known: -1.0}).accepted == 0
    assert listed(room).metrics.rated == 1


def test_a_rating_with_a_key_counts_once(room: StoreRoom) -> None:
    memory = room.remember("one").id
    offer(room, offered(memory))
    command = rating({memory: -1.0}, idempotency=Idempotency("key", "body"))
    assert room.ask(command) == room.ask(command)
    (row,) = listed(room).memories
    assert (row.feedback, row.feedback_count) == (-1.0, 1)


def test_erasing_a_memory_erases_what_sessions_know_of_it(room: StoreRoom) -> None:
    memory = room.remember("one").id
    offer(room, offered(memory))
    rate(room, **{memory: 1.0})
    room.ask(ForgetMany(targets=(ForgetTarget(memory),), reason="for good", principal=Principal(), hard=True))
    for table in ("session_memories", "agent_feedback"):
        assert room.value(f"SELECT count(*) FROM {table}") == 0


def test_old_rows_are_purged_in_steps(room: StoreRoom) -> None:
    old, new = room.remember("old").id, room.remember("new").id
    offer(room, offered(old))
    rate(room, **{old: 1.0})
    room.clock.advance(86_400_000)
    offer(room, offered(new))
    cutoff = room.value("SELECT created_at FROM session_memories WHERE memory_id = ?", new)
    assert room.ask(PurgeStep("session_memories", cutoff, 1)).more
    assert room.ask(PurgeStep("session_memories", cutoff, 10)).count == 1
    assert [row.id for row in listed(room).memories] == [new]
    assert room.value("SELECT count(*) FROM agent_feedback") == 0


@pytest.mark.parametrize(
    ("value", "score"),
    [(2, 1.0), (-7.5, -1.0), (0, 0.0), (10**400, 1.0), (True, None), ("1", None), (None, None), (float("nan"), None)],
)
def test_scores_are_clamped_and_others_are_none(value: object, score: float | None) -> None:
    assert clamped_score(value) == score


def test_the_running_mean_of_the_documents() -> None:
    mean = 0.0
    for count, score in enumerate((0.9, 0.7, 0.5, 0.3, 0.1)):
        mean = running_mean(mean, count, score)
    assert mean == pytest.approx(0.5)
    assert [feedback_type(score) for score in (0.1, -0.1, 0.0)] == ["positive", "negative", "neutral"]
