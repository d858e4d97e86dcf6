"""Read the memories of an agent that may be duplicates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Final

from signet_actors.domain.dated_sections import SUMMARY_TYPE
from signet_actors.domain.memories import AGGREGATE, CHUNK, COMPACTION, IMPORTED_SOURCE_TYPES
from signet_actors.features.duplicates import api
from signet_actors.features.duplicates.rules import Candidate, better_first
from signet_actors.operations.transcripts import OwnAgent
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Reads, Snapshot

SHOWN_CHARS: Final = 300
_MOST_CLUSTERS: Final = 1000
UNMERGED: Final = (CHUNK, AGGREGATE, COMPACTION, *IMPORTED_SOURCE_TYPES)
"""Source types of memories that belong to a text, a file or other memories; nothing is merged with these."""
POSITION: Final = "compared_duplicates/"
"""Key of ``store_meta`` before the id of an agent: up to which vector its memories were compared."""

_OWN: Final = (
    "m.is_deleted = 0 AND m.agent_id = :agent_id AND m.visibility <> 'archived' AND m.type <> '"
    + SUMMARY_TYPE
    + "' AND coalesce(m.source_type, '') NOT IN ("
    + ", ".join(f"'{kind}'" for kind in UNMERGED)
    + ")"
)
_CLUSTERS: Final = (
    "SELECT string_agg(CAST(m.seq AS text), ',') FROM memories m WHERE m.is_deleted = 0 AND m.agent_id = :agent_id"
    " GROUP BY m.agent_id, m.visibility, coalesce(m.project, ''), coalesce(m.scope, ''), m.content_hash"
    " HAVING count(*) > 1 ORDER BY min(m.seq) LIMIT :limit"
)
"""Its columns are those of the index that keeps texts unique, so that it reads no rows."""
_ROWS: Final = (
    "SELECT m.seq, m.id, m.content, m.content_hash, m.importance, m.created_at FROM memories m"
    f" WHERE {_OWN} AND m.pinned = 0 AND m.seq IN ({{}})"
)
_LIVE: Final = "SELECT count(*) FROM memories m WHERE m.is_deleted = 0 AND m.agent_id = :agent_id"
_UNCOMPARED: Final = (
    "SELECT count(*) FROM embeddings e CROSS JOIN memories m ON m.id = e.source_id AND m.embedding_seq = e.seq"
    f" WHERE e.seq > :after AND {_OWN} AND m.pinned = 0"
)
_MERGED: Final = (
    "SELECT 1 FROM memory_history h WHERE h.memory_id = :kept AND h.event = 'merged'"
    " AND h.metadata ->> 'mergedFrom' = :merged"
)
_POSITION: Final = "SELECT s.value FROM store_meta s WHERE s.key = :key"


def candidates(reads: Reads, agent_id: str, seqs: Sequence[int]) -> dict[int, Candidate]:
    """Return those of the rows that may be merged or stay, by ``memories.seq``."""
    sql = _ROWS.format(reads.dialect.members("seqs"))
    rows = reads.rows(sql, {"agent_id": agent_id, "seqs": reads.dialect.listed(seqs)})
    return {row[0]: Candidate(*row) for row in rows}


def was_merged(reads: Reads, one: str, other: str) -> bool:
    """Return whether one of the memories was merged into the other before: someone has recovered it, so both count."""
    return any(reads.one(_MERGED, {"kept": kept, "merged": merged}) for kept, merged in ((one, other), (other, one)))


def found_pair(kept: Candidate, merged: Candidate, similarity: float) -> api.FoundPair:
    """Return the pair as it is shown and merged."""
    texts = kept.content[:SHOWN_CHARS], merged.content[:SHOWN_CHARS]
    return api.FoundPair(
        api.DuplicatePair(kept.id, merged.id, round(similarity, 4), *texts), kept.content_hash, merged.content_hash
    )


def position(reads: Reads, agent_id: str) -> int:
    """Return the last vector (``embeddings.seq``) up to which the memories of the agent were compared."""
    return int(reads.value(_POSITION, {"key": POSITION + agent_id}) or 0)


def find_exact(snapshot: Snapshot, asked: api.FindExact) -> api.FoundDuplicates:
    """Return pairs of equal texts."""
    pairs: list[tuple[api.FoundPair, int]] = []
    for rows in _clusters(snapshot, asked.agent_id, asked.limit):
        best = reduce(lambda one, other: better_first(one, other)[0], rows)
        pairs += [(found_pair(best, each, 1.0), each.seq) for each in rows if each is not best]
    del pairs[asked.limit :]
    merged = [seq for _, seq in pairs]
    return api.FoundDuplicates(
        [pair for pair, _ in pairs], position(snapshot, asked.agent_id), done=False, merged=merged
    )


def _clusters(snapshot: Snapshot, agent_id: str, limit: int) -> Iterator[list[Candidate]]:
    """Yield groups of equal texts, without those of which one is pinned or belongs to a text or a file."""
    for (listed,) in snapshot.rows(_CLUSTERS, {"agent_id": agent_id, "limit": limit}):
        seqs = [int(seq) for seq in listed.split(",")]
        rows = list(candidates(snapshot, agent_id, seqs).values())
        if len(rows) == len(seqs):
            yield rows


def stats(snapshot: Snapshot, asked: Asked[OwnAgent]) -> api.DedupStatsReply:
    """Return how many texts the agent has twice, and how many memories have not been compared."""
    agent_id = asked.caller.agent_id
    sizes = [len(rows) for rows in _clusters(snapshot, agent_id, _MOST_CLUSTERS)]
    after = {"agent_id": agent_id, "after": position(snapshot, agent_id)}
    active, uncompared = snapshot.value(_LIVE, {"agent_id": agent_id}), snapshot.value(_UNCOMPARED, after)
    return api.DedupStatsReply(len(sizes), sum(sizes) - len(sizes), int(active), int(uncompared))


READS: Final = {api.STATS: stats, api.FindExact: find_exact}
