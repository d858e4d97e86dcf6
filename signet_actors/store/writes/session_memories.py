"""Statements about ``session_memories`` and ``agent_feedback``.

Source: memory-pipeline.txt "Continuity Scoring"; architecture.txt "agent_feedback".
"""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.protocol.session_memories import OfferedMemory
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


def offer(tx: WriteTransaction, offered: OfferedMemory, now: str) -> None:
    """Record that the session was offered the memory. The source and rank by which it was shown first are kept."""
    values = msgspec.structs.asdict(offered)
    tx.execute(_OFFER, {**values, "was_injected": int(offered.was_injected), "now": now})


def was_offered(tx: WriteTransaction, session_key: str, agent_id: str, memory_id: str) -> bool:
    """Return whether the session was offered the memory, which still exists."""
    bindings = {"session_key": session_key, "agent_id": agent_id, "memory_id": memory_id}
    return tx.one(_OFFERED, bindings) is not None


def mean_rating(tx: WriteTransaction, session_key: str, agent_id: str, memory_id: str) -> tuple[float, int]:
    """Return the mean of the session's ratings of the memory, and their number; ``(0.0, 0)`` without any."""
    row = tx.one(_MEAN, {"session_key": session_key, "agent_id": agent_id, "memory_id": memory_id})
    return (0.0, 0) if row is None else (row[0], row[1])


def put_rating(
    tx: WriteTransaction,
    session_key: str,
    agent_id: str,
    memory_id: str,
    *,
    feedback_type: str,
    score: float,
    rating_count: int,
    actor: str,
    now: str,
) -> None:
    """Store the new mean of the session's ratings of the memory."""
    tx.execute(
        _RATE,
        {
            "session_key": session_key,
            "agent_id": agent_id,
            "memory_id": memory_id,
            "feedback_type": feedback_type,
            "score": score,
            "rating_count": rating_count,
            "actor": actor,
            "now": now,
        },
    )


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
