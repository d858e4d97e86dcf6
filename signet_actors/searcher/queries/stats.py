"""Row counts for the status page. Source: docs/compatibility.md "Health and status"."""

from __future__ import annotations

from signet_actors.protocol.searcher import StoreStats
from signet_actors.searcher.reader import Reader
from signet_actors.store.snapshot import Snapshot

JOB_STATES = ("pending", "leased", "completed", "dead")
_OLDEST_PENDING = """
    SELECT min(j.created_at) FROM memory_jobs j JOIN
        (SELECT min(seq) AS seq FROM memory_jobs WHERE status = 'pending' GROUP BY job_type) o ON o.seq = j.seq
"""


def _jobs(snapshot: Snapshot, status: str) -> int:
    """Count jobs by the partial index of the state, which the planner uses because the state is a literal."""
    return int(snapshot.value(f"SELECT count(*) FROM memory_jobs WHERE status = '{status}'"))


def store_stats(reader: Reader, snapshot: Snapshot) -> StoreStats:
    """Return counts over the whole store, across all agents and scopes."""
    reader.sync(snapshot)
    live = int(reader.columns.live[: reader.columns.size].sum())
    return StoreStats(
        memories=live,
        tombstones=snapshot.value("SELECT count(*) FROM memories WHERE is_deleted = 1"),
        embeddings=snapshot.value("SELECT count(*) FROM embeddings"),
        agents=snapshot.value("SELECT count(*) FROM agents"),
        jobs={status: count for status in JOB_STATES if (count := _jobs(snapshot, status))},
        oldest_pending_job=snapshot.value(_OLDEST_PENDING),
        schema_version=snapshot.value("PRAGMA user_version"),
        database_bytes=reader.database.stat().st_size,
    )
