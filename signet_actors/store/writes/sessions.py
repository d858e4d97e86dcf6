"""Statements about ``session_contexts`` and ``session_recalls``, and about when memory was off for a session."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from signet_actors.protocol.sessions import ReturnedMemory, SessionContext
from signet_actors.store.engine import Insert, WriteTransaction

_PUT: Final = (
    f"INSERT INTO session_contexts ({', '.join(SessionContext.__struct_fields__)}, bypassed)"
    f" VALUES ({', '.join(f':{name}' for name in SessionContext.__struct_fields__)}, 0)"
    " ON CONFLICT (session_key, agent_id) DO UPDATE SET"
    " context_epoch = CASE WHEN excluded.context_epoch > session_contexts.context_epoch"
    " THEN excluded.context_epoch ELSE session_contexts.context_epoch END,"
    " harness = coalesce(excluded.harness, session_contexts.harness),"
    " project = coalesce(excluded.project, session_contexts.project),"
    " last_active_at = excluded.last_active_at,"
    " start_key = CASE WHEN excluded.started_epoch IS NULL THEN session_contexts.start_key ELSE excluded.start_key END,"
    " started_epoch = coalesce(excluded.started_epoch, session_contexts.started_epoch)"
)
_SET_BYPASSED: Final = (
    "UPDATE session_contexts SET bypassed = :bypassed WHERE session_key = :session_key AND bypassed <> :bypassed"
)
_PAUSE: Final = (
    "INSERT INTO session_pauses (session_key, began_at) SELECT :session_key, :at WHERE NOT EXISTS"
    " (SELECT 1 FROM session_pauses p WHERE p.session_key = :session_key AND p.ended_at IS NULL)"
    " ON CONFLICT (session_key, began_at) DO UPDATE SET ended_at = NULL"
)
_CLOCK_WAS_SET_BACK: Final = (
    "INSERT INTO session_pauses (session_key, began_at) SELECT :session_key, '' WHERE EXISTS"
    " (SELECT 1 FROM session_pauses p WHERE p.session_key = :session_key AND p.ended_at IS NULL AND p.began_at > :at)"
    " ON CONFLICT (session_key, began_at) DO UPDATE SET ended_at = NULL"
)
_END_PAUSE: Final = "UPDATE session_pauses SET ended_at = :at WHERE session_key = :session_key AND ended_at IS NULL"
_NOTE_COPY: Final = (
    "INSERT INTO session_pauses (session_key, began_at, ended_at) VALUES (:session_key, :at, :at)"
    " ON CONFLICT (session_key, began_at) DO NOTHING"
)
_PAUSES: Final = "SELECT p.began_at, p.ended_at FROM session_pauses p WHERE p.session_key = :session_key"
_LEFT_OUT: Final = Insert("left_out_turns", ("mark",), "ON CONFLICT (mark) DO NOTHING")
_IS_LEFT_OUT: Final = "SELECT 1 FROM left_out_turns l WHERE l.mark = :mark"
_RECALLS: Final = Insert(
    "session_recalls",
    (*ReturnedMemory.__struct_fields__, "recalled_at"),
    "ON CONFLICT (session_key, agent_id, context_epoch, memory_id) DO UPDATE SET"
    " content_version = excluded.content_version, request_key = excluded.request_key,"
    " recalled_at = excluded.recalled_at"
    " WHERE excluded.content_version > session_recalls.content_version",
)
_DELETE_RECALLS: Final = (
    "DELETE FROM session_recalls WHERE (session_key, agent_id, context_epoch, memory_id) IN"
    " (SELECT r.session_key, r.agent_id, r.context_epoch, r.memory_id FROM session_recalls r"
    " WHERE r.recalled_at < :cutoff ORDER BY r.recalled_at LIMIT :limit)"
)
_DELETE_CONTEXTS: Final = (
    "DELETE FROM session_contexts WHERE (session_key, agent_id) IN"
    " (SELECT c.session_key, c.agent_id FROM session_contexts c"
    " WHERE c.last_active_at < :cutoff AND c.bypassed = 0 ORDER BY c.last_active_at LIMIT :limit)"
)


def put(tx: WriteTransaction, context: SessionContext) -> None:
    """Store the newest state of a session. Its epoch never goes back, and what is not named stays."""
    tx.execute(_PUT, msgspec.structs.asdict(context))


def set_bypassed(tx: WriteTransaction, session_key: str, at: str, *, bypassed: bool) -> None:
    """Store in the rows of the session, those of all agents, whether memory is switched off for it, and since when."""
    tx.execute(_SET_BYPASSED, {"session_key": session_key, "bypassed": int(bypassed)})
    check_clock(tx, session_key, at)
    tx.execute(_PAUSE if bypassed else _END_PAUSE, {"session_key": session_key, "at": at})


def check_clock(tx: WriteTransaction, session_key: str, now: str) -> None:
    """Let a pause that began after ``now`` have begun at any time before: the clock was set back while memory was off.

    What was said before the pause and is not stored yet is then left out, too.
    """
    tx.execute(_CLOCK_WAS_SET_BACK, {"session_key": session_key, "at": now})


def note_copy(tx: WriteTransaction, session_key: str, at: str) -> None:
    """Note that the session has what was said in another one at this time, while memory was off: an empty pause."""
    tx.execute(_NOTE_COPY, {"session_key": session_key, "at": at})


def pauses(tx: WriteTransaction, session_key: str) -> list[tuple[str, str | None]]:
    """Return from when to when memory was off for the session; None: it still is. See also ``note_copy``."""
    return [(began_at, ended_at) for began_at, ended_at in tx.rows(_PAUSES, {"session_key": session_key})]


def leave_out(tx: WriteTransaction, marks: Sequence[bytes]) -> None:
    """Note turns that are never stored, in no session."""
    tx.insert(_LEFT_OUT, marks)


def is_left_out(tx: WriteTransaction, mark: bytes | None) -> bool:
    return mark is not None and tx.one(_IS_LEFT_OUT, {"mark": mark}) is not None


def add_recalls(tx: WriteTransaction, returned: Iterable[ReturnedMemory], now: str) -> None:
    """Store what sessions received; of a row that is stored already, only newer words count."""
    tx.insert(_RECALLS, [value for each in returned for value in (*msgspec.structs.astuple(each), now)])


def delete_before(tx: WriteTransaction, cutoff: str, limit: int) -> int:
    """Delete at most ``limit`` rows from before the cutoff, of what sessions received and then of sessions.

    The row of a bypassed session stays, however old: the session may go on, and must not receive anything then.
    """
    tx.execute(_DELETE_RECALLS, {"cutoff": cutoff, "limit": limit})
    deleted = tx.changes()
    tx.execute(_DELETE_CONTEXTS, {"cutoff": cutoff, "limit": limit - deleted})
    return deleted + tx.changes()
