"""Store what sessions were offered, and the mean of the ratings that agents gave each of these memories."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from signet_actors.features.session_memories.api import FEEDBACK, FeedbackReply, FeedbackRequest
from signet_actors.protocol.message import Asked
from signet_actors.protocol.sessions import OfferedMemory
from signet_actors.store.command_context import CommandContext
from signet_actors.store.engine import WriteTransaction

_MORE: Final = "excluded.was_injected > session_memories.was_injected"
_OFFER: Final = (
    "INSERT INTO session_memories"
    " (session_key, agent_id, memory_id, source, rank, was_injected, fts_hit_count, created_at)"
    " VALUES (:session_key, :agent_id, :memory_id, :source, :rank, :was_injected, :hits, :now)"
    " ON CONFLICT (session_key, agent_id, memory_id) DO UPDATE SET"
    f" source = CASE WHEN {_MORE} THEN excluded.source ELSE session_memories.source END,"
    f" rank = CASE WHEN {_MORE} THEN excluded.rank ELSE session_memories.rank END,"
    f" was_injected = CASE WHEN {_MORE} THEN 1 ELSE session_memories.was_injected END,"
    " fts_hit_count = session_memories.fts_hit_count + excluded.fts_hit_count"
)
_OF_SESSION: Final = "session_key = :session_key AND agent_id = :agent_id AND memory_id = :memory_id"
_OFFERED: Final = (
    "SELECT 1 FROM session_memories o JOIN memories m ON m.id = o.memory_id"
    " WHERE o.session_key = :session_key AND o.agent_id = :agent_id AND o.memory_id = :memory_id AND m.is_deleted = 0"
)
_MEAN: Final = f"SELECT score, rating_count FROM agent_feedback WHERE {_OF_SESSION}"
_RATE: Final = (
    "INSERT INTO agent_feedback (session_key, agent_id, memory_id, feedback_type, score, rating_count, actor,"
    " created_at, updated_at)"
    " VALUES (:session_key, :agent_id, :memory_id, :feedback_type, :score, :rating_count, :actor, :now, :now)"
    " ON CONFLICT (session_key, agent_id, memory_id) DO UPDATE SET feedback_type = excluded.feedback_type,"
    " score = excluded.score, rating_count = excluded.rating_count, actor = excluded.actor,"
    " updated_at = excluded.updated_at"
)
_PURGE: Final = {
    "session_memories": (
        "DELETE FROM session_memories WHERE (session_key, agent_id, memory_id) IN"
        " (SELECT o.session_key, o.agent_id, o.memory_id FROM session_memories o"
        " WHERE o.created_at < :cutoff ORDER BY o.created_at LIMIT :limit)"
    ),
    "agent_feedback": (
        "DELETE FROM agent_feedback WHERE (session_key, agent_id, memory_id) IN"
        " (SELECT f.session_key, f.agent_id, f.memory_id FROM agent_feedback f"
        " WHERE f.updated_at < :cutoff ORDER BY f.updated_at LIMIT :limit)"
    ),
}
_FORGET: Final = tuple(f"DELETE FROM {table} WHERE memory_id = :memory_id" for table in _PURGE)


def offer(context: CommandContext, memories: Iterable[OfferedMemory]) -> None:
    """Record that sessions were offered memories. The source and rank by which one was shown first are kept."""
    for one in memories:
        values = msgspec.structs.asdict(one) | {"was_injected": int(one.was_injected), "now": context.now}
        context.tx.execute(_OFFER, values)


def rate(context: CommandContext, asked: Asked[FeedbackRequest]) -> FeedbackReply:
    """Add each rating to the mean of its memory, if the session was offered that memory and it still exists."""
    tx, accepted = context.tx, 0
    session = {"session_key": asked.request.session_key, "agent_id": asked.caller.agent_id}
    for memory_id, rating in asked.request.ratings.items():
        of_session = {**session, "memory_id": memory_id}
        if tx.one(_OFFERED, of_session) is None:
            continue
        mean, count = tx.one(_MEAN, of_session) or (0.0, 0)
        score = running_mean(mean, count, rating)
        values = {
            "feedback_type": feedback_type(score),
            "score": score,
            "rating_count": count + 1,
            "actor": asked.caller.principal.changed_by,
            "now": context.now,
        }
        tx.execute(_RATE, of_session | values)
        accepted += 1
    return FeedbackReply(recorded=accepted, accepted=accepted, rejected=len(asked.request.ratings) - accepted)


def running_mean(mean: float, count: int, score: float) -> float:
    """Return the mean of ``count`` scores with the mean ``mean`` and a further one, from -1 to 1."""
    return max(-1.0, min(1.0, (mean * count + score) / (count + 1)))


def feedback_type(score: float) -> str:
    """Return the documented word for a mean score."""
    return "positive" if score > 0 else "negative" if score < 0 else "neutral"


def delete_before(tx: WriteTransaction, cutoff: str, limit: int) -> int:
    """Delete at most ``limit`` rows from before the cutoff; return their number."""
    deleted = 0
    for sql in _PURGE.values():
        tx.execute(sql, {"cutoff": cutoff, "limit": limit - deleted})
        deleted += tx.changes()
    return deleted


def forget(tx: WriteTransaction, memory_id: str) -> None:
    """Delete all rows about the memory."""
    for sql in _FORGET:
        tx.execute(sql, {"memory_id": memory_id})


WRITES: Final = {FEEDBACK: rate}
