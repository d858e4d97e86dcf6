"""The skills that an agent used. Source: architecture.txt "skill_meta"."""

from __future__ import annotations

from typing import Final

from signet_actors.features.skills.api import LIST, ListSkillsReply, ListSkillsRequest, SkillUse
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Snapshot

_LIST: Final = (
    f"SELECT {', '.join(SkillUse.__struct_fields__)} FROM skill_meta WHERE agent_id = :agent_id"
    " ORDER BY use_count DESC, last_used_at DESC, skill_name LIMIT :limit OFFSET :offset"
)
_TOTAL: Final = "SELECT count(*) FROM skill_meta WHERE agent_id = :agent_id"


def listed(snapshot: Snapshot, asked: Asked[ListSkillsRequest]) -> ListSkillsReply:
    """Return a page of the agent's skills, the most used first, and their number."""
    agent_id, page = asked.caller.agent_id, asked.request
    rows = snapshot.rows(_LIST, {"agent_id": agent_id, "limit": page.limit, "offset": page.offset})
    return ListSkillsReply([SkillUse(*row) for row in rows], snapshot.value(_TOTAL, {"agent_id": agent_id}))


READS: Final = {LIST: listed}
