"""The counts from which the health is computed, over all agents and scopes.

Each is read from an index. Source: docs/compatibility.md "Diagnostics and pipeline status".
"""

from __future__ import annotations

from typing import Final

from signet_actors.domain.jobs import SCORE_SESSION, STALE_LEASE_MS, SUMMARIZE
from signet_actors.domain.timestamps import epoch_ms, iso
from signet_actors.features.diagnostics.api import ChangeFigures, CountChanges, HealthFigures, MeasureHealth
from signet_actors.store.engine import Reads
from signet_actors.store.reads import jobs, stats

WINDOW_MS: Final = 7 * 86_400_000
_OF_SESSIONS: Final = (SUMMARIZE, SCORE_SESSION)
_TEXT_ROWS: Final = "SELECT count(*) FROM {}"
_EVENTS: Final = "SELECT count(*) FROM memory_history h WHERE h.event = :event AND h.created_at >= :since"
_LEDGER: Final = "SELECT count(*) FROM searches"
_DUPLICATES: Final = (
    "SELECT count(*), coalesce(CAST(sum(c.number - 1) AS bigint), 0) FROM (SELECT count(*) AS number FROM memories m"
    " WHERE m.is_deleted = 0 GROUP BY m.agent_id, m.content_hash HAVING count(*) > 1) c"
)


def measured(reads: Reads, asked: MeasureHealth) -> HealthFigures:
    """Return the counts of jobs and rows."""
    now_ms = epoch_ms(asked.now) or 0
    by_state = dict.fromkeys(("pending", "completed", "dead"), 0)
    for state, kind, number, _ in jobs.queues(reads):
        if state in by_state and kind not in _OF_SESSIONS:
            by_state[state] += number
    oldest = jobs.oldest_pending(reads)
    since_ms = now_ms if oldest is None else epoch_ms(oldest) or now_ms
    return HealthFigures(
        depth=by_state["pending"],
        completed=by_state["completed"],
        dead=by_state["dead"],
        oldest_s=max(0, now_ms - since_ms) / 1000,
        stale_leases=jobs.stale_leases(reads, iso(now_ms - STALE_LEASE_MS)),
        memories=stats.live_memories(reads),
        tombstones=stats.tombstone_count(reads),
        embeddings=stats.embedding_count(reads),
        text_rows=int(reads.value(_TEXT_ROWS.format(reads.dialect.text_sizes))),
        ledger_rows=int(reads.value(_LEDGER)),
    )


def counted(reads: Reads, asked: CountChanges) -> ChangeFigures:
    """Return the counts of changes and of duplicates."""
    since = iso((epoch_ms(asked.now) or 0) - WINDOW_MS)
    clusters, duplicates = reads.rows(_DUPLICATES)[0]
    return ChangeFigures(
        recovers=int(reads.value(_EVENTS, {"event": "recovered", "since": since})),
        deletes=int(reads.value(_EVENTS, {"event": "deleted", "since": since})),
        clusters=clusters,
        duplicates=duplicates,
        memories=stats.live_memories(reads),
    )


READS: Final = {MeasureHealth: measured, CountChanges: counted}
