"""Row counts for the status page. Source: docs/compatibility.md "Health and status"."""

from __future__ import annotations

from signet_actors.protocol.searcher import StoreStats
from signet_actors.searcher.reader import Reader
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import jobs, stats


def store_stats(reader: Reader, snapshot: Snapshot) -> StoreStats:
    """Return counts over the whole store, across all agents and scopes."""
    reader.sync(snapshot)
    live = int(reader.columns.live[: reader.columns.size].sum())
    return StoreStats(
        memories=live,
        tombstones=stats.tombstone_count(snapshot),
        embeddings=stats.embedding_count(snapshot),
        agents=stats.agent_count(snapshot),
        jobs=jobs.count_by_state(snapshot),
        oldest_pending_job=jobs.oldest_pending(snapshot),
        schema_version=snapshot.schema_version(),
        database_bytes=reader.engine.file_bytes(),
        sessions=stats.session_count(snapshot),
        entities=stats.entity_count(snapshot),
    )
