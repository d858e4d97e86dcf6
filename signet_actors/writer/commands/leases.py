"""Leases on durable jobs: only the holder of a lease may report the end of its job.

A lease id is a fencing token, checked in the transaction of the report. It starts with the name and incarnation of its
holder. Jobs are leased in the order in which they became ready (of some kinds the newest first), so a failing job
delays no other. Poison jobs, whose worker exited while it held their lease, are leased singly (DESIGN.md, "Jobs").

Source: memory-pipeline.txt "Worker Model"; docs/decisions.md 11-14; docs/reliability.md "Ground rules" 8, R8 and R16;
docs/security.md "Where the specification is unsafe".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from signet_actors.domain.jobs import (
    JOB_KINDS,
    MAX_DELAY_MS,
    JobEvent,
    JobState,
    PoisonJobs,
    advance,
    event_after_failure,
    release_delay_ms,
    retry_delay_ms,
)
from signet_actors.domain.timestamps import iso
from signet_actors.errors import ErrorCode, InvalidRequest, SignetError
from signet_actors.features.analytics.writes import note_job_error
from signet_actors.protocol.leases import (
    CompleteJob,
    FailJob,
    JobEnded,
    JobReport,
    JobsLeased,
    LeasedJob,
    LeaseJobs,
    LeaseRenewed,
    RenewLease,
)
from signet_actors.protocol.pipeline import JobsReleased, ReleaseJobs
from signet_actors.store.command_context import CommandContext
from signet_actors.store.engine import Reads
from signet_actors.store.writes import jobs as job_rows
from signet_actors.store.writes import leases as lease_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes.leases import ActiveLease, Bounds, ReadyJob
from signet_actors.writer.commands import jobs

MAX_LEASED = 64
MAX_LEASED_BYTES = 4 * 1024 * 1024
"""Limit on the contents in one reply, plus the last job: a reply must fit into a frame of the bus."""
MAX_DROPPED = 256
"""How many jobs of deleted memories one request completes on its way."""
MEMORY_GONE = '{"skipped":"memory_gone"}'
MAX_REASON_CHARS = 500
POISON_DELAY_MS = 60_000
"""For how long other jobs are leased before a ready poison job."""
_NEWEST_FIRST: Final = frozenset(kind.name for kind in JOB_KINDS if kind.newest_first)
_MS = 1_000_000


def lease(context: CommandContext, command: LeaseJobs) -> JobsLeased:
    """Lease the jobs of these kinds that have been ready for longest to the caller; each lease spends one attempt."""
    _expire_earlier_incarnations(context)
    name, incarnation = context.caller
    expires_ns = context.clock.monotonic_ns() + command.lease_ms * _MS
    leased = _redeliver(context, command, expires_ns)
    allow_others, allow_poison = _leasable(context.tx, command.poison_jobs)
    limit = min(command.limit, MAX_LEASED)
    dropped = 0
    handed_bytes = sum(len(job.subject.content.encode()) for job in leased if job.subject is not None)
    while len(leased) < limit and dropped < MAX_DROPPED and handed_bytes < MAX_LEASED_BYTES:
        rows = _ready_rows(
            context, command.kinds, limit - len(leased), allow_others=allow_others, allow_poison=allow_poison
        )
        if not rows:
            break
        subjects = job_rows.job_memories(context.tx, [job.memory_id for _, job in rows if job.memory_id is not None])
        for kind, job in rows:
            if handed_bytes >= MAX_LEASED_BYTES:
                break
            if job.is_poison and not allow_poison:
                continue
            subject = None if job.memory_id is None else subjects.get(job.memory_id)
            if job.memory_id is not None and subject is None:
                status = advance(JobState.PENDING, JobEvent.DROP)
                lease_rows.drop(context.tx, job.seq, status=status, result=MEMORY_GONE, now=context.now)
                dropped += 1
                continue
            allow_poison = allow_poison and not job.is_poison
            lease_id = f"{name}.{incarnation}.{context.new_id()}"
            attempts = job.attempts + 1
            lease_rows.lease(
                context.tx,
                job.seq,
                status=advance(JobState.PENDING, JobEvent.LEASE),
                attempts=attempts,
                lease_id=lease_id,
                boot_id=context.boot_id,
                expires_ns=expires_ns,
                now=context.now,
                version=None if subject is None else subject.version,
                content_hash=None if subject is None else subject.content_hash,
                result=jobs.attempt_model(context, kind),
            )
            handed_bytes += 0 if subject is None else len(subject.content.encode())
            leased.append(
                LeasedJob(job.id, kind, lease_id, attempts, job.max_attempts, job.memory_id, job.payload, subject)
            )
    return JobsLeased(leased, expires_ns)


def renew(context: CommandContext, command: RenewLease) -> LeaseRenewed:
    """Extend the lease to ``lease_ms`` from now; raise ``lease_lost`` if it is not held any more."""
    job = active_lease(context, command.job_id, command.lease_id)
    expires_ns = context.clock.monotonic_ns() + command.lease_ms * _MS
    lease_rows.renew(context.tx, job.seq, expires_ns)
    return LeaseRenewed(expires_ns)


def complete(context: CommandContext, command: CompleteJob) -> JobEnded:
    """Complete the job with its result; raise ``lease_lost`` if the lease is not held any more."""
    return JobEnded(complete_leased(context, active_lease(context, command.job_id, command.lease_id), command.result))


def report(
    context: CommandContext, command: JobReport, store: Callable[[CommandContext, Any, ActiveLease], str | None]
) -> JobEnded:
    """``store`` what a worker found, and complete its job with the result. Raises ``lease_lost``."""
    job = active_lease(context, command.job_id, command.lease_id)
    require_kind(job, command.kind)
    return JobEnded(complete_leased(context, job, store(context, command, job)))


def complete_leased(context: CommandContext, job: ActiveLease, result: str | None) -> JobState:
    """Complete the leased job, and enqueue another if the memory's content has changed meanwhile.

    The result is dropped if the memory was erased meanwhile, because it may repeat the memory's text.
    """
    state = advance(JobState.LEASED, JobEvent.COMPLETE)
    if job.memory_id is not None and not memory_rows.exists(context.tx, job.memory_id):
        result = MEMORY_GONE
    lease_rows.complete(context.tx, job.seq, status=state, result=result, now=context.now)
    _wake_for_next_poison_job(context, job)
    jobs.on_job_end(context, job.kind, job.memory_id, job.leased_hash, state)
    return state


def fail(context: CommandContext, command: FailJob) -> JobEnded:
    """End the attempt without a result: the job waits for the next one, or is dead. Raises ``lease_lost``."""
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
    note_job_error(context, command.code, job.memory_id)
    jobs.on_job_end(context, job.kind, job.memory_id, job.leased_hash, state)
    return JobEnded(state)


def release(context: CommandContext, command: ReleaseJobs) -> JobsReleased:
    """Return each leased job to the queue without spending an attempt; leases that were lost are only counted.

    A poison job stays one: this attempt has not shown that it lets its worker live.
    """
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
            jobs.WORKER_EXITED if job.is_poison else command.reason,
            attempts=max(0, job.attempts - 1),
            releases=job.releases + 1,
            waits_ms=release_delay_ms(job.releases + 1, context.rng.random()),
        )
        note_job_error(context, command.code, job.memory_id)
    return JobsReleased(len(command.leases) - lost, lost)


def active_lease(context: CommandContext, job_id: str, lease_id: str) -> ActiveLease:
    """Return the job that this lease holds; raise ``lease_lost`` if the lease has expired or was lost."""
    now_ns = context.clock.monotonic_ns()
    job = lease_rows.active(context.tx, job_id, lease_id, context.boot_id, now_ns, jobs.WORKER_EXITED)
    if job is None:
        raise SignetError("the lease was lost; nothing was applied", code=ErrorCode.LEASE_LOST)
    return job


def require_kind(job: ActiveLease, kind: str) -> None:
    """Raise ``InvalidRequest`` unless the job is of this kind."""
    if job.kind != kind:
        raise InvalidRequest(f"the job is {job.kind}, not {kind}", field="job_id")


def ready_kinds(
    reads: Reads,
    kinds: tuple[str, ...],
    now_ms: int,
    poison_jobs: PoisonJobs = PoisonJobs.INCLUDED,
) -> tuple[str, ...]:
    """Return those of ``kinds`` for which ``lease`` would now hand out or drop a job."""
    allow_others, allow_poison = _leasable(reads, poison_jobs)
    bounds = _bounds(now_ms, allow_others=allow_others, allow_poison=allow_poison)
    return tuple(kind for kind in kinds if lease_rows.is_any_ready(reads, kind, bounds))


def next_due(
    reads: Reads,
    kinds: tuple[str, ...],
    now_ms: int,
    poison_jobs: PoisonJobs = PoisonJobs.INCLUDED,
) -> str | None:
    """Return when (ISO) the first delayed job of these kinds becomes ready, or None if there is none."""
    dues = [
        lease_rows.next_due(
            reads,
            kind,
            iso(now_ms),
            jobs.WORKER_EXITED,
            others=poison_jobs is not PoisonJobs.ONLY,
            poison=poison_jobs is not PoisonJobs.EXCLUDED,
        )
        for kind in kinds
    ]
    return min((due for due in dues if due is not None), default=None)


def _expire_earlier_incarnations(context: CommandContext) -> None:
    """Expire the leases that earlier incarnations of the caller still hold."""
    name, incarnation = context.caller
    jobs.expire_leases(
        context,
        [
            lost
            for lease_id, lost in lease_rows.lost_of(context.tx, context.boot_id, name)
            if int(lease_id[len(name) + 1 :].split(".", 1)[0]) < incarnation
        ],
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
        (lease_id, job)
        for lease_id, job in lease_rows.held_of(context.tx, context.boot_id, name)
        if lease_id.startswith(f"{name}.{incarnation}.") and lease_id not in known and job.kind in command.kinds
    ]
    subjects = job_rows.job_memories(context.tx, [job.memory_id for _, job in rows if job.memory_id is not None])
    for lease_id, job in rows:
        # Also if the lease has expired: until the reaper returns the job, no other worker can lease it.
        lease_rows.renew(context.tx, job.seq, expires_ns)
        subject = None if job.memory_id is None else subjects.get(job.memory_id)
        if job.memory_id is not None and subject is None:
            complete_leased(context, active_lease(context, job.id, lease_id), MEMORY_GONE)
            continue
        again.append(
            LeasedJob(job.id, job.kind, lease_id, job.attempts, job.max_attempts, job.memory_id, job.payload, subject)
        )
    return again


def _leasable(reads: Reads, poison_jobs: PoisonJobs) -> tuple[bool, bool]:
    """Return whether other jobs may be leased for this request, and whether a poison job may."""
    return (
        poison_jobs is not PoisonJobs.ONLY,
        poison_jobs is not PoisonJobs.EXCLUDED and not lease_rows.is_poison_job_leased(reads, jobs.WORKER_EXITED),
    )


def _wake_for_next_poison_job(context: CommandContext, job: ActiveLease) -> None:
    """Notify the waiters of every kind: the next poison job could not be leased while this one was."""
    if job.is_poison:
        context.queue_changes.ready.update(kind.name for kind in JOB_KINDS)


def _ready_rows(
    context: CommandContext, kinds: tuple[str, ...], limit: int, *, allow_others: bool, allow_poison: bool
) -> list[tuple[str, ReadyJob]]:
    """Return ``(kind, job)`` of up to ``limit`` ready jobs, the longest ready first, or the newest if the kinds are so.

    Poison jobs come last until they have waited for ``POISON_DELAY_MS``, so that a crash of the worker costs other jobs
    as little as possible.
    """
    bounds = _bounds(context.now_ms, allow_others=allow_others, allow_poison=allow_poison)
    newest_first = _NEWEST_FIRST.issuperset(kinds)
    rows = [
        (kind, job)
        for kind in dict.fromkeys(kinds)
        for job in lease_rows.ready(context.tx, kind, bounds, limit, newest_first=newest_first)
    ]
    waited = iso(context.now_ms - POISON_DELAY_MS)
    rows.sort(key=lambda row: (row[1].since, row[1].seq), reverse=newest_first)
    rows.sort(key=lambda row: _turn(row[1], waited, newest_first))
    return rows[:limit]


def _turn(job: ReadyJob, waited: str, newest_first: bool) -> int:
    """Return the turn of a job: a poison job comes last, and once it has waited like the others.

    Where the newest come first, it comes before them then: as one of them it would come last for good.
    """
    if not job.is_poison:
        return 0
    if job.since > waited:
        return 1
    return -1 if newest_first else 0


def _bounds(now_ms: int, *, allow_others: bool, allow_poison: bool) -> Bounds:
    never = iso(now_ms + MAX_DELAY_MS)
    return Bounds(iso(now_ms), never, jobs.WORKER_EXITED, others=allow_others, poison=allow_poison)


def _return_job(
    context: CommandContext, job: ActiveLease, state: JobState, why: str, *, attempts: int, releases: int, waits_ms: int
) -> None:
    waits = state is JobState.PENDING
    if job.memory_id is not None and not memory_rows.exists(context.tx, job.memory_id):
        why = jobs.ERASED
    lease_rows.give_back(
        context.tx,
        job.seq,
        status=state,
        error=why[:MAX_REASON_CHARS],
        failed_at=context.now if releases == 0 else None,
        now=context.now,
        available_at=iso(context.now_ms + waits_ms) if waits else None,
        attempts=attempts,
        releases=releases,
    )
    _wake_for_next_poison_job(context, job)
    if waits:
        context.queue_changes.delayed.add(job.kind)
