"""Leases on durable jobs: who holds one may report the job's end, and nobody else.

A lease is an id that is checked in the transaction of the report (a fencing token): the report of a worker whose lease
expired and went to somebody else changes nothing. Expiry is on the monotonic clock of one supervisor life.

Source: memory-pipeline.txt "Job Queue"; decisions.md 11-13; reliability.md sections 0 (8) and 3.3.
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.jobs import JobEvent, JobState, advance, lost_attempt, retry_delay_ms
from signet_actors.errors import ErrorCode, SignetError
from signet_actors.protocol.writer import (
    CompleteJob,
    FailJob,
    JobEnded,
    JobsLeased,
    LeasedJob,
    LeaseJobs,
    LeaseRenewed,
    RenewLease,
)
from signet_actors.runtime.clock import iso
from signet_actors.writer.session import Session

MAX_LEASED_AT_ONCE = 64
_MS = 1_000_000


def lease(session: Session, command: LeaseJobs) -> JobsLeased:
    """The oldest pending jobs of these kinds that may run now are the asker's, one attempt each is spent."""
    rows = session.tx.rows(
        "SELECT seq, id, job_type, memory_id, payload, attempts, max_attempts FROM memory_jobs"
        " WHERE status = 'pending' AND job_type IN (SELECT value FROM json_each(?)) AND attempts < max_attempts"
        " AND (available_at IS NULL OR available_at <= ?) ORDER BY seq LIMIT ?",
        (_json_array(command.kinds), session.now, min(command.limit, MAX_LEASED_AT_ONCE)),
    )
    expires_ns = session.clock.monotonic_ns() + command.lease_ms * _MS
    leased = []
    for seq, job_id, kind, memory_id, payload, attempts, max_attempts in rows:
        lease_id = session.new_id()
        session.tx.execute(
            "UPDATE memory_jobs SET status = ?, attempts = ?, lease_id = ?, lease_boot = ?, lease_expires_ns = ?,"
            " leased_at = ?, updated_at = ? WHERE seq = ?",
            (
                advance(JobState.PENDING, JobEvent.LEASE),
                attempts + 1,
                lease_id,
                session.boot_id,
                expires_ns,
                session.now,
                session.now,
                seq,
            ),
        )
        leased.append(LeasedJob(job_id, kind, lease_id, attempts + 1, max_attempts, memory_id, payload))
    return JobsLeased(leased, expires_ns)


def renew(session: Session, command: RenewLease) -> LeaseRenewed:
    """The lease lasts for another ``lease_ms`` from now; raises ``lease_lost`` where it is not held any more."""
    seq, _, _ = _held(session, command.job_id, command.lease_id)
    expires_ns = session.clock.monotonic_ns() + command.lease_ms * _MS
    session.tx.execute("UPDATE memory_jobs SET lease_expires_ns = ? WHERE seq = ?", (expires_ns, seq))
    return LeaseRenewed(expires_ns)


def complete(session: Session, command: CompleteJob) -> JobEnded:
    """The job is completed with its result; raises ``lease_lost`` where the lease is not held any more."""
    seq, _, _ = _held(session, command.job_id, command.lease_id)
    state = advance(JobState.LEASED, JobEvent.COMPLETE)
    session.tx.execute(
        "UPDATE memory_jobs SET status = ?, result = ?, error = NULL, completed_at = ?, updated_at = ?,"
        " lease_id = NULL, lease_boot = NULL, lease_expires_ns = NULL WHERE seq = ?",
        (state, command.result, session.now, session.now, seq),
    )
    return JobEnded(state)


def fail(session: Session, command: FailJob) -> JobEnded:
    """The attempt is over without a result: the job waits for its next one, or is dead after its last.

    Raises ``lease_lost`` where the lease is not held any more.
    """
    seq, attempts, max_attempts = _held(session, command.job_id, command.lease_id)
    state = advance(JobState.LEASED, lost_attempt(attempts, max_attempts))
    waits_ms = retry_delay_ms(attempts, session.rng.random())
    session.tx.execute(
        "UPDATE memory_jobs SET status = ?, error = ?, failed_at = ?, updated_at = ?, available_at = ?,"
        " lease_id = NULL, lease_boot = NULL, lease_expires_ns = NULL, leased_at = NULL WHERE seq = ?",
        (
            state,
            command.error,
            session.now,
            session.now,
            iso(session.now_ms + waits_ms) if state is JobState.PENDING else None,
            seq,
        ),
    )
    return JobEnded(state)


def _held(session: Session, job_id: str, lease_id: str) -> tuple[int, int, int]:
    """``(seq, attempts, max_attempts)`` of the job that this lease holds now; one past its time holds nothing."""
    row = session.tx.one(
        "SELECT seq, attempts, max_attempts FROM memory_jobs"
        " WHERE id = ? AND status = 'leased' AND lease_id = ? AND lease_boot = ? AND lease_expires_ns > ?",
        (job_id, lease_id, session.boot_id, session.clock.monotonic_ns()),
    )
    if row is None:
        raise SignetError("the lease is not held any more; nothing was applied", code=ErrorCode.LEASE_LOST)
    seq, attempts, max_attempts = row
    return int(seq), int(attempts), int(max_attempts)


def _json_array(texts: tuple[str, ...]) -> str:
    return msgspec.json.encode(texts).decode()
