"""Sessions, what they received, and the memories that a new session should know.

Source: memory-api.txt "POST /api/memory/recall" (context ledger); memory-system.txt "Importance Decay".
"""

from __future__ import annotations

from typing import Final

from signet_actors.domain.memories import CHUNK
from signet_actors.domain.session_keys import CHECK_PREFIX
from signet_actors.protocol.memories import Wording
from signet_actors.protocol.sessions import SessionContext
from signet_actors.store.engine import Snapshot

_CONTEXT: Final = (
    f"SELECT {', '.join(f'c.{name}' for name in SessionContext.__struct_fields__)}"
    " FROM session_contexts c WHERE c.session_key = :session_key AND c.agent_id = :agent_id"
)
_PROJECT: Final = (
    "SELECT t.project FROM session_transcripts t WHERE t.session_key = :session_key AND t.agent_id = :agent_id"
)
_BYPASSED: Final = "SELECT max(c.bypassed) FROM session_contexts c WHERE c.session_key = :session_key"
_LAST_AGENT: Final = (
    "SELECT c.agent_id FROM session_contexts c WHERE c.session_key = :session_key"
    " ORDER BY c.last_active_at DESC LIMIT 1"
)
_PAUSED: Final = "SELECT 1 FROM session_pauses p WHERE p.session_key = :session_key"
_AGENT: Final = "SELECT 1 FROM agents a WHERE a.id = :agent_id"
_RETURNED: Final = (
    "SELECT last.memory_id, m.seq, last.request_key, last.content_version FROM"
    " (SELECT r.memory_id, r.request_key, r.recalled_at, r.content_version FROM session_recalls r"
    " WHERE r.session_key = :session_key AND r.agent_id = :agent_id AND r.context_epoch = :epoch"
    " ORDER BY r.recalled_at DESC LIMIT :limit) last"
    " JOIN memories m ON m.id = last.memory_id ORDER BY last.recalled_at, m.seq"
)
_WORDINGS: Final = (
    "SELECT m.id, m.seq, m.content_version FROM memories m WHERE m.id = :id AND m.agent_id = :agent_id"
    " AND m.is_deleted = 0 UNION ALL SELECT m.id, m.seq, m.content_version FROM memories m"
    f" WHERE m.source_id = :id AND m.agent_id = :agent_id AND m.source_type = '{CHUNK}' AND m.is_deleted = 0"
)
_LAST_ACTIVE: Final = (
    "SELECT max(c.last_active_at) FROM session_contexts c"
    " WHERE c.agent_id = :agent_id AND c.session_key <> :session_key"
    f" AND substr(c.session_key, 1, {len(CHECK_PREFIX)}) <> '{CHECK_PREFIX}'"
)
_ASKED_FOR: Final = (
    "SELECT m.seq FROM (SELECT c.session_key FROM session_contexts c WHERE c.agent_id = :agent_id"
    " AND c.project = :project ORDER BY c.last_active_at DESC LIMIT :sessions) c"
    " JOIN session_memories o ON o.session_key = c.session_key AND o.agent_id = :agent_id"
    " JOIN memories m ON m.id = o.memory_id WHERE m.is_deleted = 0 AND (o.source = 'prompt' AND o.was_injected = 1"
    " OR o.fts_hit_count > 0 AND m.last_accessed IS NOT NULL) ORDER BY o.created_at DESC LIMIT :limit"
)
_LAST_SUMMARY: Final = (
    "SELECT m.seq FROM session_summaries u JOIN memories m ON m.id = u.memory_id WHERE u.agent_id = :agent_id"
    " AND m.project = :project AND m.is_deleted = 0 ORDER BY u.latest_at DESC LIMIT 1"
)
_LAST_ACCESSED: Final = (
    "SELECT m.seq FROM memories m WHERE m.is_deleted = 0 AND m.last_accessed IS NOT NULL"
    " ORDER BY m.last_accessed DESC LIMIT :limit"
)


def context(snapshot: Snapshot, session_key: str, agent_id: str) -> SessionContext | None:
    """Return the state of the session, None if it is not stored."""
    row = snapshot.one(_CONTEXT, {"session_key": session_key, "agent_id": agent_id})
    return None if row is None else SessionContext(*row)


def project(snapshot: Snapshot, session_key: str, agent_id: str) -> str | None:
    """Return the project of the session's transcript, None if there is none."""
    row = snapshot.one(_PROJECT, {"session_key": session_key, "agent_id": agent_id})
    return None if row is None else row[0]


def is_bypassed(snapshot: Snapshot, session_key: str) -> bool:
    """Return True if memory is switched off for the session in the row of any agent."""
    return bool(snapshot.value(_BYPASSED, {"session_key": session_key}))


def was_bypassed(snapshot: Snapshot, session_key: str) -> bool:
    return snapshot.one(_PAUSED, {"session_key": session_key}) is not None


def last_agent(snapshot: Snapshot, session_key: str) -> str | None:
    """Return the agent that used the session last; None if it is not known."""
    row = snapshot.one(_LAST_AGENT, {"session_key": session_key})
    return None if row is None else str(row[0])


def has_agent(snapshot: Snapshot, agent_id: str) -> bool:
    """Return True if the agent is known, which gives it a read policy."""
    return snapshot.one(_AGENT, {"agent_id": agent_id}) is not None


def returned(
    snapshot: Snapshot, session_key: str, agent_id: str, epoch: int, limit: int
) -> list[tuple[str, int, str | None, int]]:
    """Return ``(id, seq, request key, content version)`` of what the session received in the epoch and still exists.

    At most ``limit`` rows, those that were received last, the last one last.
    """
    return snapshot.rows(_RETURNED, {"session_key": session_key, "agent_id": agent_id, "epoch": epoch, "limit": limit})


def wordings(snapshot: Snapshot, memory_id: str, agent_id: str) -> dict[str, Wording]:
    """Return number and version of the words of the agent's live memory, or of the chunks of a group, by id."""
    rows = snapshot.rows(_WORDINGS, {"id": memory_id, "agent_id": agent_id})
    return {one: (seq, version) for one, seq, version in rows}


def last_active_at(snapshot: Snapshot, agent_id: str, session_key: str) -> str | None:
    """Return when another session of the agent was active last."""
    moment: str | None = snapshot.value(_LAST_ACTIVE, {"agent_id": agent_id, "session_key": session_key})
    return moment


def asked_for(snapshot: Snapshot, agent_id: str, project: str, sessions: int, limit: int) -> list[int]:
    """Return ``seq`` of the memories that answered a prompt or a search of the agent's last sessions in the project.

    Who may read them is not checked.
    """
    given = {"agent_id": agent_id, "project": project, "sessions": sessions, "limit": limit}
    return [seq for (seq,) in snapshot.rows(_ASKED_FOR, given)]


def last_summary(snapshot: Snapshot, agent_id: str, project: str) -> int | None:
    """Return ``seq`` of the summary of the last session of the project that has one."""
    seq: int | None = snapshot.value(_LAST_SUMMARY, {"agent_id": agent_id, "project": project})
    return seq


def last_accessed(snapshot: Snapshot, limit: int) -> list[int]:
    """Return ``seq`` of the memories that were recalled last, without a check of who may read them."""
    return [seq for (seq,) in snapshot.rows(_LAST_ACCESSED, {"limit": limit})]
