"""Scores of an agent's own sessions.

Source: memory-pipeline.txt "Continuity Scoring"; docs/reliability.md R23.
"""

from __future__ import annotations

from typing import Any, Final

from signet_actors.operations.analytics import ContinuityScore
from signet_actors.protocol.session_scores import ListScores
from signet_actors.store.engine import Snapshot

_QUOTES_FORGOTTEN: Final = (
    "EXISTS (SELECT 1 FROM session_memories o JOIN memories m ON m.id = o.memory_id"
    " WHERE o.session_key = s.session_key AND o.agent_id = s.agent_id AND o.was_injected = 1 AND m.is_deleted = 1)"
)
_COLUMNS: Final = ", ".join(
    f"CASE WHEN {_QUOTES_FORGOTTEN} THEN NULL ELSE s.reasoning END" if name == "reasoning" else f"s.{name}"
    for name in ContinuityScore.__struct_fields__
)
_LIST: Final = (
    f"SELECT {_COLUMNS} FROM session_scores s WHERE s.agent_id = :agent_id AND {{}} ORDER BY s.seq DESC LIMIT :limit"
)
_NEWEST_OF_PROJECT: Final = (
    "NOT EXISTS (SELECT 1 FROM session_scores n WHERE n.agent_id = s.agent_id"
    " AND n.project IS NOT DISTINCT FROM s.project AND n.seq > s.seq)"
)


def listed(snapshot: Snapshot, query: ListScores) -> list[ContinuityScore]:
    """Return the scores, the newest first."""
    bindings: dict[str, Any] = {"agent_id": query.agent_id, "limit": query.limit}
    clauses = [_NEWEST_OF_PROJECT] if query.latest else []
    if query.project is not None:
        clauses.append("s.project = :project")
        bindings["project"] = query.project
    rows = snapshot.rows(_LIST.format(" AND ".join(clauses) or "1 = 1"), bindings)
    return [ContinuityScore(*row) for row in rows]
