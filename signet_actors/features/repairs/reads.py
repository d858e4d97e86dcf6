"""What repairs have to do. Source: docs/compatibility.md "Repair gate"."""

from __future__ import annotations

from typing import Any, Final

from signet_actors.features.repairs.api import GAPS, FindWork, GapsReply, Work
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads.stats import live_memories

_UNEMBEDDED: Final = (
    "SELECT count(*) FROM memories m WHERE m.is_deleted = 0 AND NOT EXISTS"
    " (SELECT 1 FROM embeddings e WHERE e.seq = m.embedding_seq AND e.content_hash = m.content_hash)"
)
_ORPHANS: Final = (
    "SELECT count(DISTINCT e.source_id) FROM embeddings e WHERE e.source_type = 'memory'"
    " AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = e.source_id)"
)


def gaps(snapshot: Snapshot, _asked: Any) -> GapsReply:
    """Return how many live memories have no vector of their present content."""
    total, unembedded = live_memories(snapshot), int(snapshot.value(_UNEMBEDDED))
    share = (total - unembedded) / total if total else 1.0
    return GapsReply(unembedded, total, f"{share:.1%}")


def work(snapshot: Snapshot, _asked: FindWork) -> Work:
    """Return how much there is to embed, and to clean up."""
    return Work(int(snapshot.value(_UNEMBEDDED)), int(snapshot.value(_ORPHANS)))


READS: Final = {GAPS: gaps, FindWork: work}
