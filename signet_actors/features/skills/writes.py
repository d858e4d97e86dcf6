"""Count the skills that agents use. Source: architecture.txt "skill_meta"."""

from __future__ import annotations

from typing import Final

from signet_actors.features.skills.api import RECORD, SkillInvocationReply, SkillInvocationRequest
from signet_actors.protocol.message import Asked
from signet_actors.store.command_context import CommandContext

MAX_SKILLS: Final = 1000
"""Of one agent; those that it used longest ago are dropped."""
_COUNT: Final = (
    "INSERT INTO skill_meta"
    " (agent_id, skill_name, use_count, failure_count, last_duration_ms, created_at, last_used_at)"
    " VALUES (:agent_id, :skill, 1, :failures, :duration_ms, :now, :now)"
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


def record(context: CommandContext, asked: Asked[SkillInvocationRequest]) -> SkillInvocationReply:
    """Count one use of the skill; if it is new, drop what the agent has too many of, but never this one."""
    tx, agent_id, use = context.tx, asked.caller.agent_id, asked.request
    use_count = tx.value(
        _COUNT,
        {
            "agent_id": agent_id,
            "skill": use.used,
            "failures": int(not use.success),
            "duration_ms": use.latency_ms if use.duration_ms is None else use.duration_ms,
            "now": context.now,
        },
    )
    if use_count == 1:
        excess = tx.value(_TOTAL, {"agent_id": agent_id}) - MAX_SKILLS
        if excess > 0:
            tx.execute(_DROP, {"agent_id": agent_id, "kept": use.used, "count": excess})
    return SkillInvocationReply(recorded=True)


WRITES: Final = {RECORD: record}
