"""Statements about ``session_scores``, and the relevance of memories to a session.

Source: memory-pipeline.txt "Continuity Scoring".
"""

from __future__ import annotations

from typing import Final, NamedTuple

from signet_actors.store.engine import WriteTransaction


class ScoreRow(NamedTuple):
    """A new row of ``session_scores``."""

    id: str
    session_key: str
    agent_id: str
    project: str | None
    harness: str | None
    score: float
    confidence: float
    memories_recalled: int
    memories_used: int
    novel_context_count: int
    reasoning: str | None
    created_at: str


_ADD: Final = (
    f"INSERT INTO session_scores ({', '.join(ScoreRow._fields)})"
    f" VALUES ({', '.join(f':{name}' for name in ScoreRow._fields)})"
)
_SET_RELEVANCE: Final = (
    "UPDATE session_memories SET relevance_score = :relevance"
    " WHERE session_key = :session_key AND agent_id = :agent_id AND memory_id = :memory_id"
)
_FORGET_QUOTES: Final = (
    "UPDATE session_scores SET reasoning = NULL WHERE seq IN (SELECT s.seq FROM session_memories o"
    " JOIN session_scores s ON s.session_key = o.session_key AND s.agent_id = o.agent_id"
    " WHERE o.memory_id = :memory_id)"
)
_ERASE: Final = "DELETE FROM session_scores WHERE session_key = :session_key AND agent_id = :agent_id"
_DELETE_OLD: Final = (
    "DELETE FROM session_scores WHERE seq IN (SELECT s.seq FROM session_scores s"
    " WHERE s.created_at < :cutoff ORDER BY s.created_at LIMIT :limit)"
)


def add(tx: WriteTransaction, row: ScoreRow) -> None:
    """Store the score of a session."""
    tx.execute(_ADD, row._asdict())


def set_relevance(tx: WriteTransaction, session_key: str, agent_id: str, memory_id: str, relevance: float) -> None:
    """Store how relevant the memory was, if the session was offered it."""
    tx.execute(
        _SET_RELEVANCE,
        {"session_key": session_key, "agent_id": agent_id, "memory_id": memory_id, "relevance": relevance},
    )


def forget_quotes(tx: WriteTransaction, memory_id: str) -> None:
    """Delete the reasoning about sessions that were offered the memory; call it while that is still stored."""
    tx.execute(_FORGET_QUOTES, {"memory_id": memory_id})


def erase(tx: WriteTransaction, session_key: str, agent_id: str) -> None:
    """Delete the scores of the session."""
    tx.execute(_ERASE, {"session_key": session_key, "agent_id": agent_id})


def delete_before(tx: WriteTransaction, cutoff: str, limit: int) -> int:
    """Delete at most ``limit`` scores from before the cutoff; return their number."""
    tx.execute(_DELETE_OLD, {"cutoff": cutoff, "limit": limit})
    return tx.changes()
