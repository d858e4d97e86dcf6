"""Statements with which a restored database takes over what the replaced one knows must not be stored or shown again.

Source: docs/operations.md "Restore"; docs/guides/hooks.md "Sessions".
"""

from __future__ import annotations

from typing import Final, NamedTuple

from signet_actors.protocol.sessions import SessionContext
from signet_actors.store.engine import Insert, Reads, WriteTransaction
from signet_actors.store.writes import embeddings, memories, sessions, transcripts
from signet_actors.store.writes.history import HISTORY, HistoryRow
from signet_actors.store.writes.transcripts import TranscriptRow

_PAUSES: Final = "SELECT p.session_key, p.began_at, p.ended_at FROM session_pauses p"
_PUT_PAUSE: Final = Insert(
    "session_pauses",
    ("session_key", "began_at", "ended_at"),
    "ON CONFLICT (session_key, began_at) DO UPDATE SET ended_at = excluded.ended_at",
)
_LEFT_OUT: Final = "SELECT l.mark FROM left_out_turns l"
_OFF: Final = f"SELECT {', '.join(SessionContext.__struct_fields__)} FROM session_contexts WHERE bypassed = 1"
_SET_BYPASSED: Final = (
    "UPDATE session_contexts SET bypassed = EXISTS (SELECT 1 FROM session_pauses p"
    " WHERE p.session_key = session_contexts.session_key AND p.ended_at IS NULL) WHERE session_key = :session_key"
)
_FORGOTTEN: Final = "SELECT t.agent_id, t.session_key FROM session_transcripts t WHERE t.forgotten_at IS NOT NULL"
_DELETED: Final = (
    f"SELECT {', '.join(f'h.{name}' for name in HistoryRow._fields)} FROM memory_history h WHERE h.event = 'deleted'"
    " AND NOT EXISTS (SELECT 1 FROM memory_history n WHERE n.memory_id = h.memory_id AND n.seq > h.seq"
    " AND n.event = 'deleted') AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = h.memory_id AND m.is_deleted = 0)"
    " AND (h.metadata ->> 'hard' = 1"
    f" OR coalesce(h.actor_type, '') <> 'pipeline' AND coalesce(h.reason, '') <> '{memories.SUPERSEDED}')"
    " ORDER BY h.seq"
)
"""The last deletion of each memory that is not live. Not of one that the pipeline or a repeated import has replaced,
since the backup may lack what replaced it."""
_TOKEN: Final = (
    *("id", "kind", "name", "role", "project", "agent_id", "user_name", "connector", "secret_hash"),
    *("created_at", "created_by", "expires_at", "revoked_at"),
)
_TOKENS: Final = f"SELECT {', '.join(_TOKEN)} FROM auth_tokens"
_PUT_TOKEN: Final = Insert("auth_tokens", _TOKEN)
_LIVE: Final = (
    "SELECT m.seq, m.updated_at FROM memories m WHERE m.id = :id AND m.is_deleted = 0"
    " AND NOT EXISTS (SELECT 1 FROM memory_history h WHERE h.id = :event)"
)
"""The event is there already if the memory was recovered after it."""


class Carried(NamedTuple):
    """What is taken over: when memory was off for which session, the marks of turns that were left out then, sessions
    for which it is off, the agents and keys of forgotten sessions, the deletions of memories, and all tokens and keys.
    """

    pauses: list[tuple[str, str, str | None]]
    left_out: list[bytes]
    off: list[SessionContext]
    forgotten: list[tuple[str, str]]
    deleted: list[HistoryRow]
    tokens: list[tuple[object, ...]]


def read(replaced: Reads) -> Carried:
    """Return what the replaced database knows."""
    return Carried(
        pauses=[(key, began_at, ended_at) for key, began_at, ended_at in replaced.rows(_PAUSES)],
        left_out=[mark for (mark,) in replaced.rows(_LEFT_OUT)],
        off=[SessionContext(*row) for row in replaced.rows(_OFF)],
        forgotten=[(agent_id, key) for agent_id, key in replaced.rows(_FORGOTTEN)],
        deleted=[HistoryRow(*row) for row in replaced.rows(_DELETED)],
        tokens=[tuple(row) for row in replaced.rows(_TOKENS)],
    )


def write(tx: WriteTransaction, carried: Carried, now: str) -> None:
    """Let the restored database know it. Deleted memories are forgotten, and can be recovered for the usual time."""
    tx.insert(_PUT_PAUSE, [value for row in carried.pauses for value in row])
    sessions.leave_out(tx, carried.left_out)
    tx.execute("DELETE FROM auth_tokens", {})
    tx.insert(_PUT_TOKEN, [value for row in carried.tokens for value in row])
    for context in carried.off:
        sessions.put(tx, context)
    for key in {key for key, *_ in carried.pauses}:
        tx.execute(_SET_BYPASSED, {"session_key": key})
    for agent_id, key in carried.forgotten:
        found = transcripts.find(tx, agent_id, key)
        row = TranscriptRow(key, agent_id, None, None, "text", now, now)
        transcripts.mark_forgotten(tx, transcripts.insert(tx, row) if found is None else found.seq, now)
    for event in carried.deleted:
        found_row = tx.one(_LIVE, {"id": event.memory_id, "event": event.id})
        if found_row is not None:
            seq, updated_at = found_row
            memories.mark_deleted(tx, seq, deleted_at=max(now, updated_at), updated_by=event.changed_by)
            embeddings.hide_all(tx, event.memory_id)
            tx.insert(HISTORY, event)


def end_tokens(tx: WriteTransaction, now: str) -> None:
    """Revoke all tokens and keys of the restored database, since it is not known which were revoked later."""
    tx.execute("UPDATE auth_tokens SET revoked_at = :now WHERE revoked_at IS NULL", {"now": now})
