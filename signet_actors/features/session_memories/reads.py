"""The memories that a session was offered, as far as the caller may read them (docs/decisions.md 35)."""

from __future__ import annotations

from typing import Final

from signet_actors.errors import NotFound
from signet_actors.features.session_memories import api
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, readable_in_any_scope
from signet_actors.store.reads import sessions

_OFFERED: Final = (
    "FROM session_memories o JOIN memories m ON m.id = o.memory_id"
    " LEFT JOIN agent_feedback f ON f.session_key = o.session_key AND f.agent_id = o.agent_id"
    " AND f.memory_id = o.memory_id WHERE {}"
)
_OWN: Final = "o.session_key = :session_key AND o.agent_id = :agent_id AND m.is_deleted = 0"
_PAGE: Final = (
    "SELECT m.id, m.content, m.type, o.source, o.rank, o.was_injected, o.fts_hit_count, o.relevance_score, f.score,"
    f" coalesce(f.rating_count, 0), o.created_at {_OFFERED}"
    " ORDER BY o.created_at, o.source DESC, o.rank, m.id LIMIT :limit OFFSET :offset"
)
_METRICS: Final = (
    "SELECT count(*), coalesce(sum(o.was_injected), 0),"
    " coalesce(sum(CASE WHEN o.fts_hit_count > 0 THEN 1 ELSE 0 END), 0),"
    " coalesce(sum(CASE WHEN o.fts_hit_count > 0 THEN o.was_injected ELSE 0 END), 0),"
    f" count(f.score), avg(o.relevance_score), avg(f.score) {_OFFERED}"
)


def listed(snapshot: Snapshot, asked: Asked[api.ListSessionMemoriesRequest]) -> api.SessionMemoriesReply:
    """Return a page in the order in which the session was offered the memories, and the metrics of all of them."""
    page, agent_id, session_key = asked.request, asked.caller.agent_id, asked.caller.session_key or ""
    where, bindings = conjunction(
        (_OWN, {"session_key": session_key, "agent_id": agent_id}), readable_in_any_scope(snapshot, asked.caller.read)
    )
    counts = snapshot.one(_METRICS.format(where), bindings)
    assert counts is not None, "an aggregate has one row"
    metrics = api.SessionMetrics(*counts)
    if not metrics.offered and sessions.context(snapshot, session_key, agent_id) is None:
        raise NotFound("Session not found")
    rows = snapshot.rows(_PAGE.format(where), {**bindings, "limit": page.limit, "offset": page.offset})
    memories = [api.SessionMemoryBody(*(*row[:5], bool(row[5]), *row[6:])) for row in rows]
    return api.SessionMemoriesReply(session_key, agent_id, memories, len(memories), metrics)


READS: Final = {api.SESSION_MEMORIES: listed}
