"""Checkpoints of sessions that a caller may read.

The read policy is that of memories (``read_policy``): the alias of ``session_checkpoints`` is ``m`` for that reason.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from signet_actors.protocol.checkpoints import ListCheckpoints, StoredCheckpoint
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, readable_in_any_scope

_COLUMNS: Final = ", ".join(
    'm."trigger"' if name == "trigger" else f"m.{name}" for name in StoredCheckpoint.__struct_fields__
)
_LIST: Final = f"SELECT {_COLUMNS} FROM session_checkpoints m WHERE {{}} ORDER BY m.seq DESC LIMIT :limit"
_NEWEST: Final = (
    f"SELECT {_COLUMNS} FROM session_checkpoints m WHERE m.agent_id = :agent_id AND {{}} ORDER BY m.seq DESC LIMIT 1"
)

_ACTIVE: Final = (
    "SELECT c.session_key, CASE WHEN t.updated_at > c.last_active_at THEN t.updated_at ELSE c.last_active_at END,"
    " c.harness, t.seq,"
    " CASE WHEN t.open_at IS NULL AND coalesce(t.end_reason, '') <> 'idle' THEN 1 ELSE 0 END,"
    " (SELECT m.id FROM session_summaries u JOIN memories m ON m.id = u.memory_id AND m.is_deleted = 0"
    " WHERE u.session_key = c.session_key AND u.agent_id = :agent_id ORDER BY u.latest_at DESC LIMIT 1), c.bypassed"
    " FROM"
    " (SELECT s.session_key, s.last_active_at, s.harness, s.bypassed FROM session_contexts s"
    " WHERE s.agent_id = :agent_id AND s.project = :project AND s.last_active_at >= :since"
    " ORDER BY s.last_active_at DESC LIMIT :limit) c"
    " LEFT JOIN session_transcripts t ON t.agent_id = :agent_id AND t.session_key = c.session_key"
    " AND t.forgotten_at IS NULL"
)
_TELLS: Final = (
    "(m.prompt_count > 0 OR m.memory_queries <> '[]' OR m.recent_remembers <> '[]'"
    " OR instr(m.digest, '- Recent prompt: ') OR instr(m.digest, '- Context: '))"
)


class ActiveSession(NamedTuple):
    """A session of a project. ``transcript``: ``session_transcripts.seq``.

    ``ended``: it reported its end (1). ``summary``: the id of the memory that says what was done in it. ``bypassed``:
    memory is switched off for it (1).
    """

    session_key: str
    active_at: str
    harness: str | None = None
    transcript: int | None = None
    ended: int = 0
    summary: str | None = None
    bypassed: int = 0


def active_sessions(snapshot: Snapshot, agent_id: str, project: str, since: str, limit: int) -> list[ActiveSession]:
    """Return the agent's sessions of the project that were active last, in any order."""
    bindings = {"agent_id": agent_id, "project": project, "since": since, "limit": limit}
    return [ActiveSession(*row) for row in snapshot.rows(_ACTIVE, bindings)]


def readable(snapshot: Snapshot, query: ListCheckpoints) -> list[StoredCheckpoint]:
    """Return the checkpoints of the query's session or project that the caller may read, the newest first."""
    given = {"session_key": query.session_key, "project_normalized": query.project}
    conditions: list[tuple[str, dict[str, Any]]] = [
        (f"m.{column} = :{column}", {column: value}) for column, value in given.items() if value is not None
    ]
    where, bindings = conjunction(*conditions, readable_in_any_scope(snapshot, query.read.agent_id))
    rows = snapshot.rows(_LIST.format(where), {**bindings, "limit": query.limit})
    return [StoredCheckpoint(*row) for row in rows]


def newest(
    snapshot: Snapshot, agent_id: str, *, session_key: str | None = None, project: str | None = None
) -> StoredCheckpoint | None:
    """Return the agent's own newest checkpoint of the normalized project, or of the session one that tells anything."""
    where, value = ("m.project_normalized = :value", project)
    if session_key is not None:
        where, value = f"m.session_key = :value AND {_TELLS}", session_key
    row = snapshot.one(_NEWEST.format(where), {"agent_id": agent_id, "value": value})
    return None if row is None else StoredCheckpoint(*row)
