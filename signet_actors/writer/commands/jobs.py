"""The durable job queue, as far as there are jobs now: the first one of a memory, and expired leases.

Source: memory-system.txt "Job Queue"; decisions.md 11-13.
"""

from __future__ import annotations

from signet_actors.domain.jobs import JobState, advance, lost_attempt
from signet_actors.protocol.writer import LeasesReaped, ReapLeases
from signet_actors.writer.new_rows import Insert
from signet_actors.writer.session import Session

_FIRST_JOBS = Insert("memory_jobs", ("id", "job_type", "memory_id", "max_attempts", "created_at", "updated_at"))

LAST_ATTEMPT_LOST = "the worker went away on the last attempt"
WORKER_LOST = "the worker went away; the lease expired"


def enqueue_first(session: Session, job_type: str, memory_id: str) -> None:
    """A pending job waits for a memory that was made in this transaction and cannot have one yet."""
    session.new_rows.add(
        _FIRST_JOBS,
        (
            session.new_id(),
            job_type,
            memory_id,
            session.config.memory.pipeline_v2.worker.max_retries,
            session.now,
            session.now,
        ),
    )


def reap(session: Session, command: ReapLeases) -> LeasesReaped:
    """Expired leases are given back: to ``pending`` while attempts remain, else to ``dead`` with the cause.

    A lease counts on the monotonic clock of one supervisor life; a lease of another life is expired, because no
    worker of that life can still be running.
    """
    expired = session.tx.rows(
        "SELECT seq, attempts, max_attempts FROM memory_jobs"
        " WHERE status = 'leased' AND (lease_boot IS NOT ? OR lease_expires_ns < ?) ORDER BY seq LIMIT ?",
        (session.boot_id, session.clock.monotonic_ns(), command.limit),
    )
    dead = 0
    for seq, attempts, max_attempts in expired:
        state = advance(JobState.LEASED, lost_attempt(attempts, max_attempts))
        dead += state is JobState.DEAD
        session.tx.execute(
            "UPDATE memory_jobs SET status = ?, error = ?, failed_at = ?, updated_at = ?, lease_id = NULL,"
            " lease_boot = NULL, lease_expires_ns = NULL, leased_at = NULL WHERE seq = ?",
            (state, LAST_ATTEMPT_LOST if state is JobState.DEAD else WORKER_LOST, session.now, session.now, seq),
        )
    return LeasesReaped(requeued=len(expired) - dead, dead=dead)
