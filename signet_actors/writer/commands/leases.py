"""Leases on durable jobs: only the holder of a lease may report the end of its job.

A lease id is a fencing token, checked in the transaction of the report. It starts with the name and incarnation of the
process that holds it. A lease expires on the monotonic clock of one supervisor incarnation. Jobs are leased in the
order in which they became ready, so a job that keeps failing delays no other. Poison candidates, whose worker exited
while it held their lease, are leased one at a time; DESIGN.md, "Jobs", gives the reasons.

Source: memory-pipeline.txt "Worker Model"; docs/decisions.md 11-14; docs/reliability.md "Ground rules" 8, R8 and R16;
docs/security.md "Where the specification is unsafe".
"""

from __future__ import annotations

from typing import Any, NamedTuple

from signet_actors.domain.jobs import (
    JOB_KINDS,
    MAX_DELAY_MS,
    JobEvent,
    JobState,
    PoisonCandidates,
    advance,
    event_after_failure,
    release_delay_ms,
    retry_delay_ms,
)
from signet_actors.domain.timestamps import iso
from signet_actors.errors import ErrorCode, InvalidRequest, SignetError
from signet_actors.protocol.leases import (
    CompleteJob,
    FailJob,
    JobEnded,
    JobsLeased,
    LeasedJob,
    LeaseJobs,
    LeaseRenewed,
    RenewLease,
)
from signet_actors.protocol.pipeline import JobsReleased, ReleaseJobs
from signet_actors.store.errors import Connection
from signet_actors.writer.command_context import CommandContext
from signet_actors.writer.commands import jobs
from signet_actors.writer.commands.job_subjects import job_subjects

MAX_LEASED = 64
MAX_LEASED_BYTES = 4 * 1024 * 1024
"""Limit on the contents in one reply, plus the last job: a reply must fit into a frame of the bus."""
MAX_DROPPED = 256
"""How many jobs of deleted memories one request completes on its way."""
MEMORY_GONE = '{"skipped":"memory_gone"}'
MAX_REASON_CHARS = 500
CANDIDATE_DELAY_MS = 60_000
"""How long a poison candidate lets other jobs go first."""
_MS = 1_000_000

_PENDING = (
    "j.status = 'pending' AND j.job_type = :kind AND j.attempts < j.max_attempts"
    " AND (:suspects OR j.error IS NOT :suspect) AND (:fresh OR j.error IS :suspect)"
)
_ROW = "j.seq, j.id, j.memory_id, j.payload, j.attempts, j.max_attempts, j.error IS :suspect"
_READY = f"""
    SELECT * FROM (SELECT j.created_at AS since, {_ROW} FROM memory_jobs j
                   WHERE :fresh AND {_PENDING} AND j.available_at IS NULL ORDER BY j.seq LIMIT :limit)
    UNION ALL
    SELECT * FROM (SELECT j.available_at AS since, {_ROW} FROM memory_jobs j
                   WHERE {_PENDING} AND j.available_at IS NOT NULL AND j.available_at <= :now
                   ORDER BY j.available_at LIMIT :limit)
    UNION ALL
    SELECT * FROM (SELECT j.created_at AS since, {_ROW} FROM memory_jobs j
                   WHERE {_PENDING} AND j.available_at IS NOT NULL AND j.available_at > :never
                   ORDER BY j.available_at LIMIT :limit)
"""
"""The jobs that may be leased. A poison candidate always has a due time. The last part finds jobs with a due time that
is too far ahead to be real, because the wall clock was set back."""


class ActiveLease(NamedTuple):
    """The job that a lease holds."""

    seq: int
    attempts: int
    max_attempts: int
    kind: str
    memory_id: str | None
    leased_hash: str | None
    releases: int
    poison_candidate: bool


def lease(context: CommandContext, command: LeaseJobs) -> JobsLeased:
    """Lease the jobs of these kinds that have been ready for longest to the caller; each lease spends one attempt."""
    _expire_earlier_incarnations(context)
    name, incarnation = context.caller
    expires_ns = context.clock.monotonic_ns() + command.lease_ms * _MS
    leased = _redeliver(context, command, expires_ns)
    allow_others, allow_candidates = _leasable(context.tx.connection, command.suspects)
    limit = min(command.limit, MAX_LEASED)
    dropped = 0
    handed_bytes = 0
    while len(leased) < limit and dropped < MAX_DROPPED and handed_bytes < MAX_LEASED_BYTES:
        rows = _ready_rows(
            context, command.kinds, limit - len(leased), allow_others=allow_others, allow_candidates=allow_candidates
        )
        if not rows:
            break
        subjects = job_subjects(context.tx.connection, [row[4] for row in rows if row[4] is not None])
        for kind, _, seq, job_id, memory_id, payload, attempts, max_attempts, poison_candidate in rows:
            if handed_bytes >= MAX_LEASED_BYTES:
                break
            if poison_candidate and not allow_candidates:
                continue
            subject = None if memory_id is None else subjects.get(memory_id)
            if memory_id is not None and subject is None:
                _drop(context, seq)
                dropped += 1
                continue
            allow_candidates = allow_candidates and not poison_candidate
            lease_id = f"{name}.{incarnation}.{context.new_id()}"
            context.tx.execute(
                "UPDATE memory_jobs SET status = ?, attempts = ?, lease_id = ?, lease_boot = ?, lease_expires_ns = ?,"
                " leased_at = ?, updated_at = ?, available_at = NULL, leased_version = ?, leased_hash = ?, result = ?"
                " WHERE seq = ?",
                (
                    advance(JobState.PENDING, JobEvent.LEASE),
                    attempts + 1,
                    lease_id,
                    context.boot_id,
                    expires_ns,
                    context.now,
                    context.now,
                    None if subject is None else subject.version,
                    None if subject is None else subject.content_hash,
                    jobs.attempt_model(context, kind),
                    seq,
                ),
            )
            handed_bytes += 0 if subject is None else len(subject.content.encode())
            leased.append(LeasedJob(job_id, kind, lease_id, attempts + 1, max_attempts, memory_id, payload, subject))
    return JobsLeased(leased, expires_ns)


def renew(context: CommandContext, command: RenewLease) -> LeaseRenewed:
    """Extend the lease to ``lease_ms`` from now; raise ``lease_lost`` if it is not held any more."""
    job = active_lease(context, command.job_id, command.lease_id)
    expires_ns = context.clock.monotonic_ns() + command.lease_ms * _MS
    context.tx.execute("UPDATE memory_jobs SET lease_expires_ns = ? WHERE seq = ?", (expires_ns, job.seq))
    return LeaseRenewed(expires_ns)


def complete(context: CommandContext, command: CompleteJob) -> JobEnded:
    """Complete the job with its result; raise ``lease_lost`` if the lease is not held any more."""
    return JobEnded(complete_leased(context, active_lease(context, command.job_id, command.lease_id), command.result))


def complete_leased(context: CommandContext, job: ActiveLease, result: str | None) -> JobState:
    """Complete the leased job, and enqueue another if the memory's content has changed meanwhile.

    The result is dropped if the memory was erased meanwhile, because it may repeat the memory's text.
    """
    state = advance(JobState.LEASED, JobEvent.COMPLETE)
    if job.memory_id is not None and not context.tx.one("SELECT 1 FROM memories WHERE id = ?", (job.memory_id,)):
        result = MEMORY_GONE
    context.tx.execute(
        "UPDATE memory_jobs SET status = ?, result = ?, error = NULL, completed_at = ?, updated_at = ?,"
        " lease_id = NULL, lease_boot = NULL, lease_expires_ns = NULL WHERE seq = ?",
        (state, result, context.now, context.now, job.seq),
    )
    _wake_for_next_candidate(context, job)
    jobs.on_job_end(context, job.kind, job.memory_id, job.leased_hash, state)
    return state


def fail(context: CommandContext, command: FailJob) -> JobEnded:
    """End the attempt without a result: the job waits for its next attempt, or is dead after its last.

    Raises ``lease_lost`` if the lease is not held any more.
    """
    job = active_lease(context, command.job_id, command.lease_id)
    state = advance(JobState.LEASED, event_after_failure(job.attempts, job.max_attempts))
    _return_job(
        context,
        job,
        state,
        command.error,
        attempts=job.attempts,
        releases=0,
        waits_ms=retry_delay_ms(job.attempts, context.rng.random()),
    )
    jobs.on_job_end(context, job.kind, job.memory_id, job.leased_hash, state)
    return JobEnded(state)


def release(context: CommandContext, command: ReleaseJobs) -> JobsReleased:
    """Return each leased job to the queue without spending an attempt; leases that were lost are only counted."""
    lost = 0
    for given in command.leases:
        try:
            job = active_lease(context, given.job_id, given.lease_id)
        except SignetError:
            lost += 1
            continue
        _return_job(
            context,
            job,
            advance(JobState.LEASED, JobEvent.RELEASE),
            command.reason,
            attempts=max(0, job.attempts - 1),
            releases=job.releases + 1,
            waits_ms=release_delay_ms(job.releases + 1, context.rng.random()),
        )
    return JobsReleased(len(command.leases) - lost, lost)


def active_lease(context: CommandContext, job_id: str, lease_id: str) -> ActiveLease:
    """Return the job that this lease holds; raise ``lease_lost`` if the lease has expired or was lost."""
    row = context.tx.one(
        "SELECT seq, attempts, max_attempts, job_type, memory_id, leased_hash, releases, error IS ? FROM memory_jobs"
        " WHERE id = ? AND status = 'leased' AND lease_id = ? AND lease_boot = ? AND lease_expires_ns > ?",
        (jobs.WORKER_LOST, job_id, lease_id, context.boot_id, context.clock.monotonic_ns()),
    )
    if row is None:
        raise SignetError("the lease was lost; nothing was applied", code=ErrorCode.LEASE_LOST)
    return ActiveLease(*row)


def require_kind(job: ActiveLease, kind: str) -> None:
    """Raise ``InvalidRequest`` unless the job is of this kind."""
    if job.kind != kind:
        raise InvalidRequest(f"the job is {job.kind}, not {kind}", field="job_id")


def ready_kinds(
    connection: Connection,
    kinds: tuple[str, ...],
    now_ms: int,
    candidates: PoisonCandidates = PoisonCandidates.INCLUDED,
) -> tuple[str, ...]:
    """Return those of ``kinds`` for which ``lease`` would now hand out or drop a job."""
    allow_others, allow_candidates = _leasable(connection, candidates)
    bindings = {**_bounds(now_ms), "fresh": allow_others, "suspects": allow_candidates}
    return tuple(
        kind
        for kind in kinds
        if connection.execute(_READY, {**bindings, "kind": kind, "limit": 1}).fetchone() is not None
    )


def next_due(
    connection: Connection,
    kinds: tuple[str, ...],
    now_ms: int,
    candidates: PoisonCandidates = PoisonCandidates.INCLUDED,
) -> str | None:
    """Return when (ISO) the first delayed job of these kinds becomes ready, or None if there is none."""
    dues = [
        connection.execute(
            "SELECT min(available_at) FROM memory_jobs j"
            " WHERE j.status = 'pending' AND j.job_type = ? AND j.available_at IS NOT NULL AND j.available_at > ?"
            " AND (? OR j.error IS NOT ?) AND (? OR j.error IS ?)",
            (
                kind,
                iso(now_ms),
                candidates is not PoisonCandidates.EXCLUDED,
                jobs.WORKER_LOST,
                candidates is not PoisonCandidates.ONLY,
                jobs.WORKER_LOST,
            ),
        ).get
        for kind in kinds
    ]
    return min((str(due) for due in dues if due is not None), default=None)


def _expire_earlier_incarnations(context: CommandContext) -> None:
    """Expire the leases that earlier incarnations of the caller still hold."""
    name, incarnation = context.caller
    jobs.expire_leases(
        context,
        [
            lost
            for lease_id, *lost in _leased_by(context, name, jobs.EXPIRED_COLUMNS)
            if int(lease_id[len(name) + 1 :].split(".", 1)[0]) < incarnation
        ],
    )


def _leased_by(context: CommandContext, name: str, columns: str) -> list[tuple[Any, ...]]:
    """Return ``(lease_id, …)`` of every job that any incarnation of this process holds."""
    return context.tx.rows(
        f"SELECT lease_id, {columns} FROM memory_jobs INDEXED BY idx_memory_jobs_leased"
        " WHERE status = 'leased' AND lease_boot = ? AND substr(lease_id, 1, ?) = ? ORDER BY seq",
        (context.boot_id, len(name) + 1, f"{name}."),
    )


def _redeliver(context: CommandContext, command: LeaseJobs, expires_ns: int) -> list[LeasedJob]:
    """Return the jobs that the caller holds without knowing it, with ``lease_ms`` from now on their leases.

    This happens when a reply was lost. The lease id stays the same, so that a late duplicate of the request takes no
    job from a worker that has started on it. The hash of the leased content stays too: if the memory has changed since,
    the job is at worst followed by another.
    """
    if command.holding is None:
        return []
    name, incarnation = context.caller
    known = set(command.holding)
    again: list[LeasedJob] = []
    rows = [
        row
        for row in _leased_by(context, name, "seq, id, job_type, attempts, max_attempts, memory_id, payload")
        if row[0].startswith(f"{name}.{incarnation}.") and row[0] not in known and row[3] in command.kinds
    ]
    subjects = job_subjects(context.tx.connection, [row[6] for row in rows if row[6] is not None])
    for lease_id, seq, job_id, kind, attempts, max_attempts, memory_id, payload in rows:
        # Also if the lease has expired: until the reaper returns the job, no other worker can lease it.
        context.tx.execute("UPDATE memory_jobs SET lease_expires_ns = ? WHERE seq = ?", (expires_ns, seq))
        subject = None if memory_id is None else subjects.get(memory_id)
        if memory_id is not None and subject is None:
            complete_leased(context, active_lease(context, job_id, lease_id), MEMORY_GONE)
            continue
        again.append(LeasedJob(job_id, kind, lease_id, attempts, max_attempts, memory_id, payload, subject))
    return again


def _leasable(connection: Connection, candidates: PoisonCandidates) -> tuple[bool, bool]:
    """Return whether other jobs may be leased for this request, and whether a poison candidate may."""
    return (
        candidates is not PoisonCandidates.ONLY,
        candidates is not PoisonCandidates.EXCLUDED and not _candidate_leased(connection),
    )


def _candidate_leased(connection: Connection) -> bool:
    sql = "SELECT 1 FROM memory_jobs WHERE status = 'leased' AND error = ? LIMIT 1"
    return connection.execute(sql, (jobs.WORKER_LOST,)).fetchone() is not None


def _wake_for_next_candidate(context: CommandContext, job: ActiveLease) -> None:
    """Notify the waiters of every kind: the next poison candidate could not be leased while this one was."""
    if job.poison_candidate:
        context.queue_changes.ready.update(kind.name for kind in JOB_KINDS)


def _ready_rows(
    context: CommandContext, kinds: tuple[str, ...], limit: int, *, allow_others: bool, allow_candidates: bool
) -> list[tuple[Any, ...]]:
    """Return ``(kind, since, seq, …)`` of up to ``limit`` ready jobs, the longest ready first.

    Poison candidates come last until they have waited for ``CANDIDATE_DELAY_MS``, so that a crash of the worker costs
    other jobs as little as possible.
    """
    bindings = {**_bounds(context.now_ms), "limit": limit, "fresh": allow_others, "suspects": allow_candidates}
    rows = [
        (kind, *row) for kind in dict.fromkeys(kinds) for row in context.tx.rows(_READY, {**bindings, "kind": kind})
    ]
    waited = iso(context.now_ms - CANDIDATE_DELAY_MS)
    rows.sort(key=lambda row: (bool(row[-1]) and row[1] > waited, row[1], row[2]))
    return rows[:limit]


def _bounds(now_ms: int) -> dict[str, str]:
    return {"now": iso(now_ms), "never": iso(now_ms + MAX_DELAY_MS), "suspect": jobs.WORKER_LOST}


def _drop(context: CommandContext, seq: int) -> None:
    context.tx.execute(
        "UPDATE memory_jobs SET status = ?, result = ?, completed_at = ?, updated_at = ?, available_at = NULL"
        " WHERE seq = ?",
        (advance(JobState.PENDING, JobEvent.DROP), MEMORY_GONE, context.now, context.now, seq),
    )


def _return_job(
    context: CommandContext, job: ActiveLease, state: JobState, why: str, *, attempts: int, releases: int, waits_ms: int
) -> None:
    waits = state is JobState.PENDING
    if job.memory_id is not None and not context.tx.one("SELECT 1 FROM memories WHERE id = ?", (job.memory_id,)):
        why = jobs.ERASED
    context.tx.execute(
        "UPDATE memory_jobs SET status = ?, error = ?, failed_at = coalesce(?, failed_at), updated_at = ?,"
        " available_at = ?, attempts = ?,"
        " releases = ?, lease_id = NULL, lease_boot = NULL, lease_expires_ns = NULL, leased_at = NULL WHERE seq = ?",
        (
            state,
            why[:MAX_REASON_CHARS],
            context.now if releases == 0 else None,
            context.now,
            iso(context.now_ms + waits_ms) if waits else None,
            attempts,
            releases,
            job.seq,
        ),
    )
    _wake_for_next_candidate(context, job)
    if waits:
        context.queue_changes.delayed.add(job.kind)
