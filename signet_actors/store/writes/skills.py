"""Statements about ``skill_meta``.

Source: architecture.txt "skill_meta".
"""

from __future__ import annotations

from typing import Final

from signet_actors.store.engine import WriteTransaction

_COUNT: Final = (
    "INSERT INTO skill_meta"
    " (agent_id, skill_name, use_count, failure_count, last_duration_ms, created_at, last_used_at)"
    " VALUES (:agent_id, :skill_name, 1, :failures, :duration_ms, :now, :now)"
    " ON CONFLICT (agent_id, skill_name) DO UPDATE SET use_count = skill_meta.use_count + 1,"
    " failure_count = skill_meta.failure_count + excluded.failure_count,"
    " last_duration_ms = coalesce(excluded.last_duration_ms, skill_meta.last_duration_ms),"
    " last_used_at = excluded.last_used_at RETURNING use_count"
)
_TOTAL: Final = "SELECT count(*) FROM skill_meta WHERE agent_id = :agent_id"
_DROP: Final = (
    "DELETE FROM skill_meta WHERE agent_id = :agent_id AND skill_name IN"
    " (SELECT s.skill_name FROM skill_meta s WHERE s.agent_id = :agent_id AND s.skill_name <> :kept"
    " ORDER BY s.last_used_at LIMIT :count)"
)


def count_use(
    tx: WriteTransaction, agent_id: str, skill_name: str, *, failed: bool, duration_ms: int | None, now: str
) -> int:
    """Count a use of the skill; return how often the agent has used it."""
    bindings = {
        "agent_id": agent_id,
        "skill_name": skill_name,
        "failures": int(failed),
        "duration_ms": duration_ms,
        "now": now,
    }
    row = tx.one(_COUNT, bindings)
    if row is None:
        raise AssertionError("the statement returns a row")
    return int(row[0])


def keep_most(tx: WriteTransaction, agent_id: str, most: int, *, kept: str) -> None:
    """Delete the agent's skills of more than ``most``, those used longest ago first, but never ``kept``."""
    row = tx.one(_TOTAL, {"agent_id": agent_id})
    excess = 0 if row is None else row[0] - most
    if excess > 0:
        tx.execute(_DROP, {"agent_id": agent_id, "kept": kept, "count": excess})
