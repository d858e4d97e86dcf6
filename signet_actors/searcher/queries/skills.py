"""The skills that an agent used.

Source: architecture.txt "skill_meta".
"""

from __future__ import annotations

from signet_actors.protocol.skills import ListSkills, SkillsListed
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import skills as stored


def listed(snapshot: Snapshot, query: ListSkills) -> SkillsListed:
    """Return a page of the agent's skills, the most used first, and their number."""
    return SkillsListed(
        stored.listed(snapshot, query.agent_id, query.limit, query.offset), stored.total(snapshot, query.agent_id)
    )
