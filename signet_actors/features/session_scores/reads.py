"""Scores of an agent's own sessions. Source: memory-pipeline.txt "Continuity Scoring"; docs/reliability.md R23."""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.features.session_scores import api
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import ARCHIVED_AGENTS, is_archived, readable_in_any_scope

_QUOTES_HIDDEN: Final = (
    "EXISTS (SELECT 1 FROM session_memories o JOIN memories m ON m.id = o.memory_id"
    " WHERE o.session_key = s.session_key AND o.agent_id = s.agent_id AND o.was_injected = 1"
    f" AND (m.is_deleted = 1 OR m.agent_id IN ({ARCHIVED_AGENTS})))"
)
_COLUMNS: Final = ", ".join(
    f"CASE WHEN {_QUOTES_HIDDEN} THEN NULL ELSE s.reasoning END" if name == "reasoning" else f"s.{name}"
    for name in api.ContinuityScore.__struct_fields__
)
_LIST: Final = (
    f"SELECT {_COLUMNS} FROM session_scores s WHERE s.agent_id = :agent_id{{}} ORDER BY s.seq DESC LIMIT :limit"
)
_OF_PROJECT: Final = " AND s.project = :project"
_NEWEST_OF_PROJECT: Final = (
    " AND NOT EXISTS (SELECT 1 FROM session_scores n WHERE n.agent_id = s.agent_id"
    " AND n.project IS NOT DISTINCT FROM s.project AND n.seq > s.seq)"
)

_SHOWN: Final = (
    "SELECT {} FROM session_memories o JOIN memories m ON m.id = o.memory_id WHERE o.session_key = :session_key"
    " AND o.agent_id = :agent_id AND o.was_injected = 1 AND m.is_deleted = 0 AND {}"
)
_BEST: Final = f"{_SHOWN} ORDER BY o.rank, o.created_at, m.id LIMIT :limit"


def continuity(snapshot: Snapshot, asked: Asked[api.ContinuityRequest]) -> api.ContinuityReply:
    """Return the agent's scores, the newest first, with their mean and trend."""
    wanted = asked.request
    where = "" if wanted.project is None else _OF_PROJECT
    scores = _listed(snapshot, where, asked.caller.agent_id, limit=wanted.limit, project=wanted.project)
    values = [score.score for score in scores]
    summary = api.ContinuitySummary(
        count=len(values),
        average=round(sum(values) / len(values), 4) if values else None,
        trend=round(values[0] - values[-1], 4) if values else None,
        latest=values[0] if values else None,
    )
    return api.ContinuityReply(scores, summary)


def latest(snapshot: Snapshot, asked: Asked[api.LatestContinuityRequest]) -> api.LatestContinuityReply:
    """Return the newest score of each project of the agent."""
    return api.LatestContinuityReply(_listed(snapshot, _NEWEST_OF_PROJECT, asked.caller.agent_id, limit=api.MAX_LISTED))


def shown(snapshot: Snapshot, query: api.FindShown) -> api.ShownMemories:
    """Return the memories of the best ranks that the session was shown, and the number of all."""
    policy, bindings = readable_in_any_scope(snapshot, ReadScope(query.agent_id))
    bindings |= msgspec.structs.asdict(query)
    rows = snapshot.rows(_BEST.format("m.id, substr(m.content, 1, :chars)", policy), bindings)
    count = snapshot.value(_SHOWN.format("count(*)", policy), bindings)
    return api.ShownMemories([api.ShownMemory(*row) for row in rows], count)


def _listed(snapshot: Snapshot, where: str, agent_id: str, **bindings: object) -> list[api.ContinuityScore]:
    if is_archived(snapshot, agent_id):
        return []
    rows = snapshot.rows(_LIST.format(where), {"agent_id": agent_id, **bindings})
    return [api.ContinuityScore(*row) for row in rows]


READS: Final = {api.CONTINUITY: continuity, api.LATEST: latest, api.FindShown: shown}
