"""Checkpoints of sessions that a caller may read, and what is stored of a session that goes on.

The read policy is that of memories (``read_policy``): the alias of ``session_checkpoints`` is ``m`` for that reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from signet_actors.domain.text_cut import ends_of
from signet_actors.features.checkpoints import api
from signet_actors.features.checkpoints.rules import normalized_project, tells_work
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, is_archived, readable_in_any_scope
from signet_actors.store.reads.transcripts import last_turns, readable_transcript


def _columns(of: type[api.Checkpoint]) -> str:
    return ", ".join('m."trigger"' if name == "trigger" else f"m.{name}" for name in of.__struct_fields__)


_LIST: Final = (
    f"SELECT {_columns(api.Checkpoint)} FROM session_checkpoints m WHERE {{}} ORDER BY m.seq DESC LIMIT :limit"
)
_NEWEST: Final = (
    f"SELECT {_columns(api.StoredCheckpoint)} FROM session_checkpoints m WHERE m.agent_id = :agent_id AND {{}}"
    " ORDER BY m.seq DESC LIMIT 1"
)

_SESSIONS: Final = 20
"""Of a project, those that were active last; most of them say something."""
_TURNS: Final = 10
_OWN_TURNS: Final = 30
"""Of a session that goes on, of which the agent has lost everything."""
_CHARS: Final = 2000
_BESIDE: Final = 2
"""So many turns or lines before one may say something together with it."""
Without = Callable[[str, str], str]
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


def of_project(snapshot: Snapshot, asked: Asked[api.ProjectCheckpointsRequest]) -> api.CheckpointsReply:
    """Return the checkpoints of a project that the caller may read."""
    return _listed(snapshot, asked, "m.project_normalized = :value", normalized_project(asked.request.project))


def of_session(snapshot: Snapshot, asked: Asked[api.SessionCheckpointsRequest]) -> api.CheckpointsReply:
    """Return the checkpoints of a session that the caller may read; none if it is not known."""
    return _listed(snapshot, asked, "m.session_key = :value", asked.caller.session_key)


def _listed(snapshot: Snapshot, asked: Asked[Any], condition: str, value: str | None) -> api.CheckpointsReply:
    policy = readable_in_any_scope(snapshot, asked.caller.read)
    where, bindings = conjunction((condition, {"value": value}), policy)
    rows = snapshot.rows(_LIST.format(where), {**bindings, "limit": asked.request.limit})
    return api.CheckpointsReply([api.Checkpoint(*row) for row in rows], len(rows))


def newest(
    snapshot: Snapshot, agent_id: str, *, session_key: str | None = None, project: str | None = None
) -> api.StoredCheckpoint | None:
    """Return the agent's own newest checkpoint of the normalized project, or of the session one that tells anything."""
    where, value = ("m.project_normalized = :value", project)
    if session_key is not None:
        where, value = f"m.session_key = :value AND {_TELLS}", session_key
    row = snapshot.one(_NEWEST.format(where), {"agent_id": agent_id, "value": value})
    return None if row is None else api.StoredCheckpoint(*row)


def recovery(snapshot: Snapshot, query: api.FindRecovery, without: Without) -> api.RecoveryFound:
    """Return the checkpoint of the session that goes on and the end of its transcript.

    ``without`` returns a text without what was forgotten, also of what answers the text before it.
    """
    if is_archived(snapshot, query.agent_id):
        return api.RecoveryFound()
    if not query.same_session:
        return (
            api.RecoveryFound() if query.project is None else _of_last_session(snapshot, query, query.project, without)
        )
    if query.session_key is None:
        return api.RecoveryFound()
    found = readable_transcript(snapshot, query.session_key, ReadScope(query.agent_id))
    end = None
    if found is not None and found[1].agent_id == query.agent_id:
        session = ActiveSession(query.session_key, found[1].updated_at, found[1].harness)
        end = _end_of(snapshot, session, found[0], without, _OWN_TURNS)
    return api.RecoveryFound(_cleaned(newest(snapshot, query.agent_id, session_key=query.session_key), without), end)


def _of_last_session(snapshot: Snapshot, query: api.FindRecovery, project: str, without: Without) -> api.RecoveryFound:
    """Return what is stored of the session of the project that was active last, of those that say what was done.

    If none does, a session of one prompt counts: without it the next session would know nothing.
    """
    little = api.RecoveryFound()
    agent_id = query.agent_id
    bindings = {"agent_id": agent_id, "project": project, "since": query.since, "limit": _SESSIONS}
    sessions = [ActiveSession(*row) for row in snapshot.rows(_ACTIVE, bindings)]
    last = newest(snapshot, agent_id, project=project)
    if last is not None and last.session_key not in {session.session_key for session in sessions}:
        sessions.append(ActiveSession(last.session_key, last.created_at))
    for session in sorted(sessions, key=lambda session: session.active_at, reverse=True):
        if session.bypassed:
            continue
        checkpoint = _cleaned(newest(snapshot, agent_id, session_key=session.session_key), without)
        if session.session_key == query.session_key:
            if checkpoint is not None and not checkpoint.ended:
                return api.RecoveryFound(checkpoint)
            continue
        if session.summary is not None and session.ended:
            return api.RecoveryFound(summary=session.summary)
        end = None if session.transcript is None else _end_of(snapshot, session, session.transcript, without)
        found = api.RecoveryFound(checkpoint, end)
        if tells_work([] if end is None else end.turns, "" if checkpoint is None else checkpoint.digest):
            return found
        little = found if little == api.RecoveryFound() else little
    return little


def _cleaned(checkpoint: api.StoredCheckpoint | None, without: Without) -> api.StoredCheckpoint | None:
    """Return the checkpoint without the sentences that say what was forgotten."""
    if checkpoint is None:
        return None
    lines: list[str] = []
    for line in checkpoint.digest.splitlines():
        left = without(line, "\n".join(lines[-_BESIDE:]))
        lines += [left] if left else []
    return msgspec.structs.replace(checkpoint, digest="\n".join(lines))


def _end_of(
    snapshot: Snapshot, session: ActiveSession, transcript: int, without: Without, count: int = _TURNS
) -> api.LastTurns:
    said: list[tuple[str, str]] = []
    asked = ""
    for turn in last_turns(snapshot, transcript, count):
        if turn.role == "text" or not turn.continues:
            text = turn.content[-_CHARS:] if turn.role == "text" else ends_of(turn.content, _CHARS)
            before = [left for _, left in said[-_BESIDE:]]
            left = without(text, "\n".join((*before, asked) if turn.role == "assistant" else before))
            asked = text if turn.role == "user" else asked
            said += [(turn.role, left)] if left else []
    return api.LastTurns(session.session_key, session.harness, session.active_at, said, session.ended)


READS: Final = {api.LIST: of_project, api.LIST_SESSION: of_session}
