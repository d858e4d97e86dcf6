"""Store what sessions were offered, and how it was rated, and let aspects of the graph gain and lose weight by it.

Source: knowledge-graph.txt "Behavioral Feedback Loop"; memory-pipeline.txt "Aspect Feedback".
Departs: a memory counts once for a session, however often the session ends. What was never counted, because its memory
had no aspect yet, may count at a later end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

import msgspec

from signet_actors.domain.timestamps import iso
from signet_actors.features.session_memories.api import FEEDBACK, FEEDBACK_COUNTER, FeedbackReply, FeedbackRequest
from signet_actors.protocol.message import Asked
from signet_actors.protocol.sessions import OfferedMemory
from signet_actors.store.command_context import CommandContext
from signet_actors.store.engine import WriteTransaction
from signet_actors.store.writes import provider_usage, store_meta

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

_ENDS: Final = "feedback_ends:{}"
_DAY_MS: Final = 86_400_000
_MAX_DECAYED: Final = 2_000
"""Aspects of one time, those of the highest weight first."""
_ASPECT: Final = (
    "SELECT a.aspect_id FROM entity_attributes a WHERE a.memory_id = :memory_id AND a.agent_id = :agent_id"
    " AND a.status = 'active' AND a.aspect_id IS NOT NULL ORDER BY a.importance DESC, a.seq LIMIT 1"
)
_HIT: Final = (
    "SELECT o.memory_id FROM session_memories o JOIN memories m ON m.id = o.memory_id AND m.is_deleted = 0"
    " WHERE o.session_key = :session_key AND o.agent_id = :agent_id AND o.fts_hit_count > 0 AND o.confirmed_at IS NULL"
)
_CONFIRM: Final = (
    "UPDATE session_memories SET confirmed_at = :now"
    " WHERE session_key = :session_key AND agent_id = :agent_id AND memory_id = :memory_id"
)
_WEIGHT: Final = "SELECT p.weight FROM entity_aspects p WHERE p.id = :id"
_SET_WEIGHT: Final = "UPDATE entity_aspects SET weight = :weight, updated_at = :now WHERE id = :id"
_DECAY: Final = (
    "UPDATE entity_aspects SET weight = CASE WHEN weight - :rate > :least THEN weight - :rate ELSE :least END"
    " WHERE id IN (SELECT p.id FROM entity_aspects p WHERE p.agent_id = :agent_id AND p.updated_at < :stale_at"
    " AND p.weight > :least ORDER BY p.weight DESC, p.id LIMIT :limit)"
)


def offer(context: CommandContext, memories: Iterable[OfferedMemory]) -> None:
    """Record that sessions were offered memories. The source and rank by which one was shown first are kept."""
    for one in memories:
        values = msgspec.structs.asdict(one) | {"was_injected": int(one.was_injected), "now": context.now}
        context.tx.execute(_OFFER, values)


def rate(context: CommandContext, asked: Asked[FeedbackRequest]) -> FeedbackReply:
    """Add each rating to the mean of its memory, if the session was offered that memory and it still exists."""
    tx, accepted, propagated = context.tx, 0, 0
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
        propagated += propagate(context, asked.caller.agent_id, memory_id, rating)
    rejected = len(asked.request.ratings) - accepted
    return FeedbackReply(recorded=accepted, accepted=accepted, rejected=rejected, propagated=propagated)


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


def end_session(context: CommandContext, session_key: str, agent_id: str) -> None:
    """Count what the session searched for, and at every few ended sessions of the agent lower the unused aspects."""
    tx, settings = context.tx, context.config.memory.pipeline_v2.feedback
    session = {"session_key": session_key, "agent_id": agent_id}
    confirmed: Counter[str] = Counter()
    for (memory_id,) in tx.rows(_HIT, session):
        aspect_id = aspect_of(tx, agent_id, memory_id)
        if aspect_id is not None:
            confirmed[aspect_id] += 1
            tx.execute(_CONFIRM, {**session, "memory_id": memory_id, "now": context.now})
    for aspect_id, confirmations in confirmed.items():
        add_weight(context, aspect_id, settings.delta * confirmations)
    _count(context, "aspects", len(confirmed))
    _count(context, "confirmations", confirmed.total())
    key = _ENDS.format(agent_id)
    ends = int(store_meta.value(tx, key) or 0) + 1
    store_meta.put(tx, key, str(ends % settings.interval))
    if ends >= settings.interval:
        _decay(context, agent_id)


def propagate(context: CommandContext, agent_id: str, memory_id: str, rating: float) -> bool:
    """Let a rating from -1 to 1 move the weight of the memory's aspect; return False if it has none."""
    aspect_id = aspect_of(context.tx, agent_id, memory_id)
    if aspect_id is None:
        return False
    add_weight(context, aspect_id, context.config.memory.pipeline_v2.feedback.delta * rating)
    _count(context, "propagated", 1)
    return True


def aspect_of(tx: WriteTransaction, agent_id: str, memory_id: str) -> str | None:
    """Return the aspect of the memory's most important active attribute in the graph of the agent."""
    found: str | None = tx.value(_ASPECT, {"agent_id": agent_id, "memory_id": memory_id})
    return found


def add_weight(context: CommandContext, aspect_id: str, amount: float) -> None:
    """Raise or lower the weight of the aspect within the configured bounds."""
    settings = context.config.memory.pipeline_v2.feedback
    weight = context.tx.value(_WEIGHT, {"id": aspect_id}) + amount
    bounded = min(settings.max_weight, max(settings.min_weight, weight))
    context.tx.execute(_SET_WEIGHT, {"id": aspect_id, "weight": bounded, "now": context.now})


def _decay(context: CommandContext, agent_id: str) -> None:
    settings = context.config.memory.pipeline_v2.feedback
    stale_at = iso(context.now_ms - settings.stale_days * _DAY_MS)
    bounds = {"rate": settings.decay_rate, "least": settings.min_weight, "limit": _MAX_DECAYED}
    context.tx.execute(_DECAY, {"agent_id": agent_id, "stale_at": stale_at, **bounds})
    _count(context, "decayed", context.tx.changes())


def _count(context: CommandContext, name: str, number: int) -> None:
    if number:
        provider_usage.count(context.tx, context.now[:10], f"{FEEDBACK_COUNTER}{name}", number)


WRITES: Final = {FEEDBACK: rate}
