"""The skills that an agent used.

Source: architecture.txt "skill_meta".
"""

from __future__ import annotations

from typing import Final

from signet_actors.operations.skills import SkillUse
from signet_actors.store.engine import Snapshot

_LIST: Final = (
    f"SELECT {', '.join(SkillUse.__struct_fields__)} FROM skill_meta WHERE agent_id = :agent_id"
    " ORDER BY use_count DESC, last_used_at DESC, skill_name LIMIT :limit OFFSET :offset"
)
_TOTAL: Final = "SELECT count(*) FROM skill_meta WHERE agent_id = :agent_id"


def listed(snapshot: Snapshot, agent_id: str, limit: int, offset: int) -> list[SkillUse]:
    """Return a page of the agent's skills, the most used first."""
    bindings = {"agent_id": agent_id, "limit": limit, "offset": offset}
    return [SkillUse(*row) for row in snapshot.rows(_LIST, bindings)]


def total(snapshot: Snapshot, agent_id: str) -> int:
    """Return how many skills the agent used."""
    return int(snapshot.value(_TOTAL, {"agent_id": agent_id}))
