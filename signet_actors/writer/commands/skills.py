"""Count the skills that agents use.

Source: architecture.txt "skill_meta".
"""

from __future__ import annotations

from typing import Final

from signet_actors.protocol.skills import RecordSkillUse, SkillUseRecorded
from signet_actors.store.writes import skills as skill_rows
from signet_actors.writer.command_context import CommandContext

MAX_SKILLS: Final = 1000
"""Of one agent; those that it used longest ago are dropped."""


def record_use(context: CommandContext, command: RecordSkillUse) -> SkillUseRecorded:
    """Count one use of the skill."""
    use_count = skill_rows.count_use(
        context.tx,
        command.agent_id,
        command.skill,
        failed=command.failed,
        duration_ms=command.duration_ms,
        now=context.now,
    )
    if use_count == 1:
        skill_rows.keep_most(context.tx, command.agent_id, MAX_SKILLS, kept=command.skill)
    return SkillUseRecorded(use_count)
