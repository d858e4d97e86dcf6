"""Collect the events of a memory or an entity from the tables that record them.

Each query returns time, event and details of one kind of events, no more than a page needs. Texts of memories are not
repeated; reasons that may quote a forgotten memory are left out. Of sessions and jobs only those of the agent count.

Source: docs/compatibility.md "Timeline"; docs/decisions.md 35.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple, cast

from signet_actors.errors import NotFound
from signet_actors.features.entities.reads import SEEN, OwnGraph
from signet_actors.features.timeline import api
from signet_actors.operations.request_fields import AgentFields
from signet_actors.protocol.message import Asked, Caller
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import readable_in_any_scope
from signet_actors.store.reads.history import REASON
from signet_actors.store.reads.memories import is_readable

Rows = Callable[[str], Iterable[tuple[Any, ...]]]


class Source(NamedTuple):
    """A kind of events. ``sql`` selects time, event, the order within one moment, and the values of ``details``."""

    source: str
    details: tuple[str, ...]
    sql: str


_REASON_CHARS: Final = 500
_JOB: Final = (
    "j.id, j.job_type, j.attempts, substr(j.error, 1, 500) FROM memory_jobs j WHERE j.memory_id = :id"
    " AND (j.payload ->> 'agent_id' IS NULL OR j.payload ->> 'agent_id' = :agent_id)"
)
_READABLE_ID: Final = "(SELECT m.id FROM memories m WHERE m.id = p.{} AND {{readable}})"
_PROPOSAL: Final = (
    "p.id, p.run_id, p.job_id, p.action, p.confidence, p.reason, p.memory_id,"
    f" {_READABLE_ID.format('target_id')}, {_READABLE_ID.format('result_memory_id')}, p.reviewed_by"
    " FROM memory_proposals p CROSS JOIN memories m ON m.id = p.memory_id AND {readable}"
)
"""Only what was decided because of a memory that the caller may read, with the ids of such memories."""
_ROLES: Final = (
    ("p.memory_id", "1 = 1"),
    ("p.target_id", "p.memory_id <> :id"),
    ("p.result_memory_id", "p.memory_id <> :id AND coalesce(p.target_id, '') <> :id"),
)
"""In which column a proposal names the memory; one that names it twice counts once."""


def _decisions(time: str, event: str, also: str) -> str:
    return " UNION ALL ".join(
        f"SELECT p.{time}, {event}, p.seq, {_PROPOSAL} WHERE {column} = :id AND {once} AND {also}"
        for column, once in _ROLES
    )


OF_MEMORY: Final = (
    Source(
        "history",
        ("id", "changedBy", "actorType", "reason", "sessionId", "jobId"),
        "SELECT h.created_at, h.event, h.seq, h.id, h.changed_by, h.actor_type,"
        f" substr({REASON}, 1, {_REASON_CHARS}), h.session_id, h.job_id FROM memory_history h WHERE h.memory_id = :id",
    ),
    Source(
        "job",
        ("jobId", "kind", "attempts", "error"),
        f"SELECT j.created_at, 'queued', 2 * j.seq, {_JOB}"
        f" UNION ALL SELECT coalesce(j.completed_at, j.failed_at), j.status, 2 * j.seq + 1, {_JOB}"
        " AND j.status IN ('completed', 'dead') AND coalesce(j.completed_at, j.failed_at) IS NOT NULL",
    ),
    Source(
        "decision",
        (
            *("proposalId", "runId", "jobId", "action", "confidence", "reason"),
            *("memoryId", "targetId", "resultMemoryId", "reviewedBy"),
        ),
        _decisions("created_at", "p.outcome", "1 = 1")
        + " UNION ALL "
        + _decisions("reviewed_at", "'reviewed'", "p.reviewed_at IS NOT NULL"),
    ),
    Source(
        "session",
        ("sessionKey", "harness", "project", "by", "rank", "searches", "relevance"),
        "SELECT o.created_at, CASE WHEN o.was_injected = 1 THEN 'given' ELSE 'offered' END, o.session_key,"
        " o.session_key, c.harness, c.project, o.source, o.rank, o.fts_hit_count, o.relevance_score"
        " FROM session_memories o LEFT JOIN session_contexts c"
        " ON c.session_key = o.session_key AND c.agent_id = o.agent_id"
        " WHERE o.memory_id = :id AND o.agent_id = :agent_id",
    ),
    Source(
        "feedback",
        ("sessionKey", "score", "ratings", "by"),
        "SELECT f.updated_at, 'rated', f.session_key, f.session_key, f.score, f.rating_count, f.actor"
        " FROM agent_feedback f WHERE f.memory_id = :id AND f.agent_id = :agent_id",
    ),
)
_MEMBER: Final = "FROM member b CROSS JOIN entities g ON g.id = b.id"
_SAID: Final = (
    "a.id, a.kind, s.name, a.group_key, a.claim_key, substr(a.content, 1, 300), a.memory_id, a.superseded_by,"
    " a.superseded_how FROM member b CROSS JOIN entity_attributes a ON a.entity_id = b.id CROSS JOIN memories m"
    " ON m.id = a.memory_id AND m.is_deleted = 0 AND {readable} LEFT JOIN entity_aspects s ON s.id = a.aspect_id"
)
_EDGE: Final = (
    "SELECT d.created_at, '{event}', d.id, d.dependency_type, v.id, v.name, d.strength FROM member b"
    " CROSS JOIN entity_dependencies d ON d.{here}_entity_id = b.id CROSS JOIN entities e ON e.id = d.{there}_entity_id"
    " CROSS JOIN entities v ON v.id = coalesce(e.merged_into, e.id)"
    f" WHERE e.agent_id = :agent_id AND v.id <> b.target AND {SEEN.format('v')}"
)
OF_ENTITY: Final = (
    Source(
        "entity",
        ("id", "name", "type"),
        f"SELECT g.created_at, 'created', g.id, g.id, g.name, g.entity_type {_MEMBER}"
        f" UNION ALL SELECT g.pinned_at, 'pinned', g.id, g.id, g.name, g.entity_type {_MEMBER}"
        " WHERE g.pinned_at IS NOT NULL"
        f" UNION ALL SELECT p.created_at, 'suppressed', g.id, g.id, g.name, g.entity_type {_MEMBER}"
        " CROSS JOIN entity_pinning p ON p.entity_id = g.id WHERE p.pin_type = 'suppress'",
    ),
    Source(
        "mention",
        ("memoryId",),
        "SELECT min(x.created_at), 'mentioned', min(m.seq), m.id FROM member b"
        " CROSS JOIN memory_entity_mentions x ON x.entity_id = b.id"
        " CROSS JOIN memories m ON m.id = x.memory_id AND m.is_deleted = 0 AND {readable} GROUP BY m.id",
    ),
    Source(
        "session",
        ("sessionKey", "harness", "project", "memories"),
        "SELECT min(o.created_at), CASE WHEN max(o.was_injected) = 1 THEN 'given' ELSE 'offered' END, o.session_key,"
        " o.session_key, min(c.harness), min(c.project), count(DISTINCT o.memory_id) FROM member b"
        " CROSS JOIN memory_entity_mentions x ON x.entity_id = b.id"
        " CROSS JOIN memories m ON m.id = x.memory_id AND m.is_deleted = 0 AND {readable}"
        " CROSS JOIN session_memories o ON o.memory_id = m.id AND o.agent_id = :agent_id"
        " LEFT JOIN session_contexts c ON c.session_key = o.session_key AND c.agent_id = o.agent_id"
        " GROUP BY o.session_key",
    ),
    Source(
        "attribute",
        (
            *("id", "kind", "aspect", "groupKey", "claimKey", "content", "memoryId"),
            *("supersededBy", "supersededHow"),
        ),
        f"SELECT a.created_at, 'stated', a.seq, {_SAID}"
        f" UNION ALL SELECT a.updated_at, 'superseded', a.seq, {_SAID} WHERE a.status = 'superseded'",
    ),
    Source(
        "dependency",
        ("type", "entityId", "name", "strength"),
        _EDGE.format(event="depends on", here="source", there="target")
        + " UNION ALL "
        + _EDGE.format(event="is depended on", here="target", there="source"),
    ),
)
_PAGE: Final = "{sql} ORDER BY 1 {to}, 3 {to}, 2 {to} LIMIT {most:d}"


def timeline(snapshot: Snapshot, asked: Asked[api.TimelineRequest]) -> api.TimelineReply:
    """Return a page of the events of the memory, or of the entity, with this id. Raises NotFound."""
    wanted = asked.request
    return _collected(snapshot, asked.caller, wanted.limit, wanted.offset, newest_first=wanted.order == "desc")


def exported(snapshot: Snapshot, asked: Asked[AgentFields]) -> api.TimelineReply:
    """Return the newest events, in the order of time. Raises NotFound."""
    found = _collected(snapshot, asked.caller, api.MAX_EXPORTED, 0, newest_first=True)
    return api.TimelineReply(found.entity_type, found.entity_id, found.events[::-1], found.has_more)


def _collected(snapshot: Snapshot, caller: Caller, limit: int, offset: int, *, newest_first: bool) -> api.TimelineReply:
    named, read = caller.path["id"], caller.read
    if is_readable(snapshot, named, read):
        policy, bindings = readable_in_any_scope(snapshot, read)
        values = {**bindings, "id": named, "agent_id": caller.agent_id}
        events, more = _page(
            OF_MEMORY,
            lambda sql: snapshot.rows(sql.replace("{readable}", policy), values),
            limit,
            offset,
            newest_first=newest_first,
        )
        return api.TimelineReply("memory", named, events, more)
    graph = OwnGraph(snapshot, read)
    entity = graph.entity(named)
    if entity is None:
        raise NotFound(api.NOT_FOUND)
    events, more = _page(
        OF_ENTITY, lambda sql: graph.of_members(sql, [entity.id]), limit, offset, newest_first=newest_first
    )
    return api.TimelineReply("entity", entity.id, events, more)


def _page(
    sources: Iterable[Source], rows: Rows, limit: int, offset: int, *, newest_first: bool
) -> tuple[list[api.Event], bool]:
    """Return the events of the page, and whether there are further ones.

    Events of one moment are in the order of the sources.
    """
    found: list[api.Event] = []
    to, ordered = ("DESC", [*sources][::-1]) if newest_first else ("ASC", [*sources])
    for source in ordered:
        for at, event, _, *values in rows(_PAGE.format(sql=source.sql, to=to, most=offset + limit + 1)):
            told = zip(source.details, values, strict=True)
            details = {name: value for name, value in told if value is not None}
            found.append(api.Event(at, cast("Any", source.source), event, details))
    found.sort(key=lambda event: event.timestamp, reverse=newest_first)
    return found[offset : offset + limit], len(found) > offset + limit


READS: Final = {api.GET_TIMELINE: timeline, api.EXPORT_TIMELINE: exported}
