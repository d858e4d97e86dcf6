"""Statements about ``session_contexts`` and ``session_recalls``.

Source: memory-api.txt "POST /api/memory/recall" (context ledger); docs/decisions.md 60.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from signet_actors.store.engine import Insert, WriteTransaction


class RecallRow(NamedTuple):
    """A new row of ``session_recalls``."""

    session_key: str
    agent_id: str
    context_epoch: int
    memory_id: str
    request_key: str | None
    recalled_at: str


class ContextRow(NamedTuple):
    """The newest state of a session; ``bypassed`` is 0 or 1."""

    session_key: str
    agent_id: str
    context_epoch: int
    harness: str | None
    project: str | None
    bypassed: int
    started_at: str
    last_active_at: str


_PUT: Final = (
    f"INSERT INTO session_contexts ({', '.join(ContextRow._fields)})"
    f" VALUES ({', '.join(f':{name}' for name in ContextRow._fields)})"
    " ON CONFLICT (session_key, agent_id) DO UPDATE SET"
    " context_epoch = CASE WHEN excluded.context_epoch > session_contexts.context_epoch"
    " THEN excluded.context_epoch ELSE session_contexts.context_epoch END,"
    " harness = coalesce(excluded.harness, session_contexts.harness),"
    " project = coalesce(excluded.project, session_contexts.project),"
    " bypassed = excluded.bypassed, last_active_at = excluded.last_active_at"
)
_RECALLS: Final = Insert(
    "session_recalls",
    RecallRow._fields,
    "ON CONFLICT (session_key, agent_id, context_epoch, memory_id) DO NOTHING",
)
_DELETE_RECALLS: Final = (
    "DELETE FROM session_recalls WHERE (session_key, agent_id, context_epoch, memory_id) IN"
    " (SELECT r.session_key, r.agent_id, r.context_epoch, r.memory_id FROM session_recalls r"
    " WHERE r.recalled_at < :cutoff ORDER BY r.recalled_at LIMIT :limit)"
)
_DELETE_CONTEXTS: Final = (
    "DELETE FROM session_contexts WHERE (session_key, agent_id) IN"
    " (SELECT c.session_key, c.agent_id FROM session_contexts c"
    " WHERE c.last_active_at < :cutoff ORDER BY c.last_active_at LIMIT :limit)"
)


def put(tx: WriteTransaction, context: ContextRow) -> None:
    """Store the newest state of a session. Its epoch never goes back, and a missing name keeps the stored one."""
    tx.execute(_PUT, context._asdict())


def add_recalls(tx: WriteTransaction, rows: Iterable[RecallRow]) -> None:
    """Store what sessions received; a row that is stored already stays as it is."""
    tx.insert(_RECALLS, [value for row in rows for value in row])


def delete_before(tx: WriteTransaction, cutoff: str, limit: int) -> int:
    """Delete at most ``limit`` rows from before the cutoff, of what sessions received and then of sessions."""
    tx.execute(_DELETE_RECALLS, {"cutoff": cutoff, "limit": limit})
    deleted = tx.changes()
    tx.execute(_DELETE_CONTEXTS, {"cutoff": cutoff, "limit": limit - deleted})
    return deleted + tx.changes()
