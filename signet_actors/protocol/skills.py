"""Messages about the skills that agents use.

Source: architecture.txt "skill_meta"; docs/guides/hooks.md "Skills".
"""

from __future__ import annotations

from signet_actors.operations.skills import SkillUse
from signet_actors.protocol.message import KeyedRequest, Message, Request


class SkillUseRecorded(Message, frozen=True, tag="writer.skill_use_recorded"):
    """The use is counted, on disk. ``use_count``: how often the agent has used the skill."""

    use_count: int


class RecordSkillUse(KeyedRequest[SkillUseRecorded], frozen=True, tag="writer.record_skill_use"):
    """Count one use of a skill by an agent."""

    agent_id: str
    skill: str
    failed: bool = False
    duration_ms: int | None = None


class SkillsListed(Message, frozen=True, tag="searcher.skills_listed"):
    """Skills of the agent, the most used first; ``total`` counts all of them."""

    skills: list[SkillUse]
    total: int


class ListSkills(Request[SkillsListed], frozen=True, tag="searcher.list_skills"):
    """List the skills that the agent used."""

    agent_id: str
    limit: int
    offset: int = 0


SkillCommand = RecordSkillUse
SkillCommandReply = SkillUseRecorded
SkillQuery = ListSkills
SkillQueryReply = SkillsListed
