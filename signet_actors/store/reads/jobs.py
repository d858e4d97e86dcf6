"""Durable jobs and counts of the queue. A literal state lets the planner use the index of that state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from signet_actors.operations.pipeline import DeadReport, JobReply
from signet_actors.store.engine import Reads, Snapshot

_BY_ID = (
    "SELECT payload, id, memory_id, document_id, job_type, status, attempts, attempts, max_attempts, NULL, error, NULL,"
    " error, leased_at, completed_at, failed_at, created_at, updated_at FROM memory_jobs WHERE id = :id"
)
_COUNT_IN_STATE: Final = {
    "pending": "SELECT count(*) FROM memory_jobs WHERE status = 'pending'",
    "leased": "SELECT count(*) FROM memory_jobs WHERE status = 'leased'",
    "completed": "SELECT count(*) FROM memory_jobs WHERE status = 'completed'",
    "dead": "SELECT count(*) FROM memory_jobs WHERE status = 'dead'",
}
# The last column is a time that the status page shows for the state.
_QUEUES: Final = (
    ("pending", "SELECT job_type, count(*), NULL FROM memory_jobs WHERE status = 'pending' GROUP BY 1"),
    (
        "delayed",
        (
            "SELECT job_type, count(*), min(available_at) FROM memory_jobs"
            " WHERE status = 'pending' AND available_at IS NOT NULL GROUP BY 1"
        ),
    ),
    ("leased", "SELECT job_type, count(*), min(leased_at) FROM memory_jobs WHERE status = 'leased' GROUP BY 1"),
    ("completed", "SELECT job_type, count(*), NULL FROM memory_jobs WHERE status = 'completed' GROUP BY 1"),
    ("dead", "SELECT job_type, count(*), NULL FROM memory_jobs WHERE status = 'dead' GROUP BY 1"),
)
_STALE_LEASES = "SELECT count(*) FROM memory_jobs WHERE status = 'leased' AND leased_at < :leased_before"
_OLDEST_PENDING = """
    SELECT min(j.created_at) FROM memory_jobs j JOIN
        (SELECT min(seq) AS seq FROM memory_jobs WHERE status = 'pending' GROUP BY job_type) o ON o.seq = j.seq
"""
_OLDEST_PENDING_BY_KIND = """
    SELECT j.job_type, j.created_at FROM memory_jobs j JOIN
        (SELECT min(seq) AS seq FROM memory_jobs WHERE status = 'pending' GROUP BY job_type) o ON o.seq = j.seq
"""
_DEAD_CAUSES = (
    "SELECT job_type, coalesce(error, 'unknown'), count(*), max(failed_at) FROM memory_jobs"
    " WHERE status = 'dead' GROUP BY 1, 2 ORDER BY 3 DESC, 4 DESC LIMIT :limit"
)
_RESULT = (
    "SELECT j.result FROM memory_jobs j JOIN memories m ON m.id = j.memory_id WHERE j.id = :id AND m.is_deleted = 0"
)


class _Owner(msgspec.Struct):
    """The agent whose session a job is about, of its payload."""

    agent_id: str | None = None


def by_id(snapshot: Snapshot, job_id: str) -> tuple[JobReply, str | None] | None:
    """Return the job and, if it is about a session, whose; None if there is none with this id, whoever may read it."""
    row = snapshot.one(_BY_ID, {"id": job_id})
    if row is None:
        return None
    owner = None if row[0] is None else msgspec.json.decode(row[0], type=_Owner).agent_id
    return JobReply(*row[1:]), owner


def count_by_state(snapshot: Snapshot) -> dict[str, int]:
    """Return the number of jobs in each state, without states that no job is in."""
    counts = {state: int(snapshot.value(sql)) for state, sql in _COUNT_IN_STATE.items()}
    return {state: count for state, count in counts.items() if count}


def oldest_pending(reads: Reads) -> str | None:
    """Return when the oldest pending job was created, None if none is pending."""
    created_at: str | None = reads.value(_OLDEST_PENDING)
    return created_at


def queues(reads: Reads) -> Iterator[tuple[str, str, int, str | None]]:
    """Yield ``(state, kind of job, count, time)``: of delayed jobs the next due time, of leased ones the oldest lease.

    Delayed jobs are also among the pending ones.
    """
    for state, sql in _QUEUES:
        for kind, count, time in reads.rows(sql):
            yield state, kind, count, time


def stale_leases(reads: Reads, leased_before: str) -> int:
    """Return the number of jobs whose lease began before this time."""
    return int(reads.value(_STALE_LEASES, {"leased_before": leased_before}))


def oldest_pending_by_kind(snapshot: Snapshot) -> list[tuple[str, str]]:
    """Return ``(kind of job, creation time)`` of the oldest pending job of each kind."""
    return [(kind, created_at) for kind, created_at in snapshot.rows(_OLDEST_PENDING_BY_KIND)]


def causes_of_dead(snapshot: Snapshot, limit: int) -> list[DeadReport]:
    """Return why jobs are dead, the most frequent causes first."""
    return [DeadReport(*row) for row in snapshot.rows(_DEAD_CAUSES, {"limit": limit})]


def result_of(snapshot: Snapshot, job_id: str) -> str | None:
    """Return the job's result as JSON; None if it has none or its memory is forgotten."""
    result: str | None = snapshot.value(_RESULT, {"id": job_id})
    return result
