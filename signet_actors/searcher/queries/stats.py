"""Row counts for the status page. Source: wire.md 1.0 (``/api/status``)."""

from __future__ import annotations

from signet_actors.protocol.searcher import StoreStats
from signet_actors.searcher.reader import Reader
from signet_actors.store.snapshot import Snapshot

# The literals let the planner see which partial index fits: pending jobs stand in two.
_FRESH = "status = 'pending' AND available_at IS NULL"
_DELAYED = "status = 'pending' AND available_at IS NOT NULL"
_JOB_STATES = (
    ("pending", (_FRESH, _DELAYED)),
    ("leased", ("status = 'leased'",)),
    ("completed", ("status = 'completed'",)),
    ("dead", ("status = 'dead'",)),
)


def _jobs(view: Snapshot, parts: tuple[str, ...]) -> int:
    return sum(int(view.value(f"SELECT count(*) FROM memory_jobs WHERE {where}")) for where in parts)


def _oldest_pending(view: Snapshot) -> str | None:
    oldest: list[str] = [
        created_at
        for where in (_FRESH, _DELAYED)
        for (created_at,) in view.rows(
            "SELECT j.created_at FROM memory_jobs j JOIN"
            f" (SELECT min(seq) AS seq FROM memory_jobs WHERE {where} GROUP BY job_type) o ON o.seq = j.seq"
        )
    ]
    return min(oldest, default=None)


def store_stats(reader: Reader, view: Snapshot) -> StoreStats:
    """Counts over the whole store, without regard to any scope: numbers only."""
    reader.follow(view)
    live = int(reader.columns.live[: reader.columns.size].sum())
    return StoreStats(
        memories=live,
        tombstones=view.value("SELECT count(*) FROM memories WHERE is_deleted = 1"),
        embeddings=view.value("SELECT count(*) FROM embeddings"),
        agents=view.value("SELECT count(*) FROM agents"),
        jobs={status: count for status, parts in _JOB_STATES if (count := _jobs(view, parts))},
        oldest_pending_job=_oldest_pending(view),
        schema_version=view.value("PRAGMA user_version"),
        database_bytes=reader.database.stat().st_size,
    )
