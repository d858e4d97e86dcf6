"""Row counts for the status page. Source: wire.md 1.0 (``/api/status``)."""

from __future__ import annotations

from signet_actors.protocol.searcher import StoreStats
from signet_actors.searcher.reader import Reader
from signet_actors.store.snapshot import Snapshot


def store_stats(reader: Reader, view: Snapshot) -> StoreStats:
    """Counts over the whole store, without regard to any scope: numbers only."""
    reader.follow(view)
    live = int(reader.columns.live[: reader.columns.size].sum())
    return StoreStats(
        memories=live,
        tombstones=view.value("SELECT count(*) FROM memories WHERE is_deleted = 1"),
        embeddings=view.value("SELECT count(*) FROM embeddings"),
        agents=view.value("SELECT count(*) FROM agents"),
        jobs=dict(view.rows("SELECT status, count(*) FROM memory_jobs GROUP BY status")),
        oldest_pending_job=view.value("SELECT min(created_at) FROM memory_jobs WHERE status = 'pending'"),
        schema_version=view.value("PRAGMA user_version"),
        database_bytes=reader.database.stat().st_size,
    )
