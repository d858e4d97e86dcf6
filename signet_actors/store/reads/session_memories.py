"""The memories that a session was offered, as far as the caller may read them.

Source: memory-pipeline.txt "Continuity Scoring"; docs/decisions.md 35.
"""

from __future__ import annotations

from typing import Any, Final

from signet_actors.operations.session_memories import SessionMemoryBody, SessionMetrics
from signet_actors.protocol.session_memories import ListSessionMemories
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, readable_in_any_scope

_OFFERED: Final = (
    "FROM session_memories o JOIN memories m ON m.id = o.memory_id"
    " LEFT JOIN agent_feedback f ON f.session_key = o.session_key AND f.agent_id = o.agent_id"
    " AND f.memory_id = o.memory_id WHERE {}"
)
_PAGE: Final = (
    "SELECT m.id, {}, m.type, o.source, o.rank, o.was_injected, o.fts_hit_count, o.relevance_score, f.score,"
    f" coalesce(f.rating_count, 0), o.created_at {_OFFERED}"
    " ORDER BY {} LIMIT :limit OFFSET :offset"
)
_IN_TIME: Final = "o.created_at, o.source DESC, o.rank, m.id"
_BY_RANK: Final = "o.rank, o.created_at, m.id"
_METRICS: Final = (
    "SELECT count(*), coalesce(sum(o.was_injected), 0),"
    " coalesce(sum(CASE WHEN o.fts_hit_count > 0 THEN 1 ELSE 0 END), 0),"
    " coalesce(sum(CASE WHEN o.fts_hit_count > 0 THEN o.was_injected ELSE 0 END), 0),"
    f" count(f.score), avg(o.relevance_score), avg(f.score) {_OFFERED}"
)


def page(snapshot: Snapshot, query: ListSessionMemories) -> tuple[list[SessionMemoryBody], SessionMetrics]:
    """Return a page of the memories, in the order in which they were offered, and the metrics of all of them."""
    where, bindings = _of_session(snapshot, query)
    order = _BY_RANK if query.injected_only else _IN_TIME
    sql = _PAGE.format("m.content" if query.chars is None else "substr(m.content, 1, :chars)", where, order)
    rows = snapshot.rows(sql, {**bindings, "limit": query.limit, "offset": query.offset, "chars": query.chars})
    metrics = snapshot.one(_METRICS.format(where), bindings)
    assert metrics is not None, "an aggregate has one row"
    return [_memory(*row) for row in rows], SessionMetrics(*metrics)


def _memory(
    memory_id: str, content: str, kind: str, source: str, rank: int, shown: int, *rest: Any
) -> SessionMemoryBody:
    return SessionMemoryBody(memory_id, content, kind, source, rank, bool(shown), *rest)


def _of_session(snapshot: Snapshot, query: ListSessionMemories) -> tuple[str, dict[str, Any]]:
    return conjunction(
        (
            "o.session_key = :session_key AND o.agent_id = :agent_id AND m.is_deleted = 0",
            {"session_key": query.session_key, "agent_id": query.read.agent_id},
        ),
        ("o.was_injected = 1" if query.injected_only else "1 = 1", {}),
        readable_in_any_scope(snapshot, query.read.agent_id),
    )
