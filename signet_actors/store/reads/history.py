"""The history of a memory, without facts and reasons that may quote a forgotten memory."""

from __future__ import annotations

from typing import Final

from signet_actors.operations.memories import HistoryItem
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.contents import check_reply
from signet_actors.store.reads.proposals import FACT_FORGOTTEN, REASON_FORGOTTEN

# The fact and the reason of a proposal may quote a memory other than the one whose history they are part of.
_METADATA = (
    "CASE WHEN h.job_id IS NULL THEN h.metadata ELSE coalesce("
    f"(SELECT CASE WHEN {FACT_FORGOTTEN} THEN {{without_fact}}"
    f" WHEN {REASON_FORGOTTEN} THEN {{without_reason}} ELSE h.metadata END"
    " FROM memory_proposals p WHERE p.job_id = h.job_id AND p.history_id = h.id), h.metadata) END"
)
REASON: Final = (
    "CASE WHEN h.job_id IS NOT NULL AND EXISTS (SELECT 1 FROM memory_proposals p"
    f" WHERE p.job_id = h.job_id AND p.history_id = h.id AND ({FACT_FORGOTTEN} OR {REASON_FORGOTTEN}))"
    " THEN nullif(h.reason, h.metadata ->> 'decisionReason') ELSE h.reason END"
)
"""The reason of event ``h``, without one that may quote a forgotten memory."""
_REDACTED = {"metadata": _METADATA, "reason": REASON}
_EVENT = ", ".join(_REDACTED.get(name, f"h.{name}") for name in HistoryItem.__struct_fields__)
_FIRST = "FROM memory_history h WHERE h.memory_id = :memory_id ORDER BY h.seq LIMIT :limit"
_OF_MEMORY = f"SELECT {_EVENT} {_FIRST}"
_SIZES = f"SELECT coalesce(octet_length(h.old_content), 0) + coalesce(octet_length(h.new_content), 0) {_FIRST}"


def of_memory(snapshot: Snapshot, memory_id: str, limit: int) -> list[HistoryItem]:
    """Return the first events of the memory, oldest first; access is not checked. Raises ``ReplyTooLong``."""
    asked = {"memory_id": memory_id, "limit": limit}
    check_reply(size for (size,) in snapshot.rows(_SIZES, asked))
    without = snapshot.dialect.without_keys
    sql = _OF_MEMORY.format(
        without_fact=without("h.metadata", "factContent", "decisionReason"),
        without_reason=without("h.metadata", "decisionReason"),
    )
    return [HistoryItem(*row) for row in snapshot.rows(sql, asked)]
