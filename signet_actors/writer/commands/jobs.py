"""The durable job queue: which jobs a memory gets, what happens when a job ends, and how lost jobs are retried.

A memory has at most one pending or leased job of a kind. If the memory changes meanwhile, a pending job reads the new
content when it is leased. When a leased job ends, the hash of the content that was handed out decides whether another
job is needed.

Source: memory-pipeline.txt "Worker Model"; architecture.txt "Job Queue"; docs/decisions.md 11-15; docs/reliability.md
R6, R8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from signet_actors.config.embedding_models import configured_space, makes_token_codes, space_name
from signet_actors.config.schema import Config
from signet_actors.domain import jobs as domain_jobs
from signet_actors.domain.memories import AGGREGATE, DERIVED
from signet_actors.domain.timestamps import iso
from signet_actors.features.repairs import writes as repairs
from signet_actors.features.repairs.rules import REQUEUE
from signet_actors.operations.requeue import NotRequeued
from signet_actors.protocol.leases import LeasesReaped, ReapLeases
from signet_actors.protocol.pipeline import JobsReconciled, JobsRequeued, ReconcileJobs, RequeueJobs
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import jobs as job_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes.jobs import JobRow, LostLease, Subject

LAST_WORKER_EXITED = "the worker process exited during the last attempt"
WORKER_EXITED = "the worker process exited"
"""The ``error`` of a poison job: its worker exited while it held the lease, so the job may have crashed it."""
ERASED = "the memory was erased"
"""The ``error`` of a failed job whose memory was erased: the original error may repeat the text."""

_OF_MEMORIES = frozenset(kind.name for kind in domain_jobs.JOB_KINDS if kind.of_memory)
_MAX_REQUEUED = 500
_AFTER_SETTLED_MS = 500


def required_kinds(
    config: Config, source_type: str | None, *, embedded: bool, derived: bool = False
) -> tuple[str, ...]:
    """Return the jobs that a memory with its present content needs; ``derived``: the pipeline gave it this content."""
    pipeline = config.memory.pipeline_v2
    kinds = []
    if pipeline.enabled and not derived and source_type not in {DERIVED, AGGREGATE}:
        kinds.append(domain_jobs.EXTRACT)
    if pipeline.enabled and pipeline.hints.enabled and source_type != AGGREGATE:
        kinds.append(domain_jobs.PROSPECTIVE_INDEX)
    if not embedded and pipeline.embedding_tracker.enabled and config.embedding.provider != "none":
        kinds.append(domain_jobs.EMBED)
    return tuple(kinds)


def enqueue_new(
    context: CommandContext,
    kind: str,
    memory_id: str | None = None,
    payload: str | None = None,
    *,
    delay_ms: int = 0,
) -> str:
    """Insert a pending job and return its id; a memory that it is about has no other pending or leased one of the kind.

    ``payload`` is JSON text: the session that the job is about, or what it must know besides its memory. With
    ``delay_ms``, it waits for so long.
    """
    job_id = context.new_id()
    context.insert_buffer.add(
        job_rows.JOBS,
        JobRow(
            id=job_id,
            job_type=kind,
            memory_id=memory_id,
            payload=payload,
            max_attempts=context.config.memory.pipeline_v2.worker.max_retries,
            created_at=context.now,
            updated_at=context.now,
            available_at=iso(context.now_ms + delay_ms) if delay_ms else None,
        ),
    )
    (context.queue_changes.delayed if delay_ms else context.queue_changes.ready).add(kind)
    return job_id


def enqueue(context: CommandContext, kind: str, memory_id: str) -> bool:
    """Insert a pending job unless one of the kind is pending or leased; return whether it was inserted."""
    waits = job_rows.has_unfinished(context.tx, memory_id, kind)
    if not waits:
        enqueue_new(context, kind, memory_id)
    return not waits


Space = tuple[str, int]
MAX_WAITING: Final = 1_000
"""A round waits while more vectors are missing: the newest jobs run first, and new memories must not wait."""


def _is_embedded_in(subject: Subject, space: Space | None) -> bool:
    """Return whether the memory has a vector of its present content by that model, at that width."""
    embedded = subject.embedded_model, subject.embedded_dimensions
    return embedded == space and subject.embedded_hash == subject.content_hash


def _lacks_codes(context: CommandContext, subject: Subject, space: Space | None) -> bool:
    """Return whether the vector was stored by a release that made no token codes."""
    makes_codes = makes_token_codes(context.config.embedding)
    return makes_codes and not subject.has_token_codes and _is_embedded_in(subject, space)


def on_job_end(
    context: CommandContext, kind: str, memory_id: str | None, leased_hash: str | None, state: domain_jobs.JobState
) -> None:
    """Update the memory's row after a job ended or was requeued; enqueue another job if the content has changed.

    Departs: a job that ends is followed by another if the memory's *content* differs, not for every newer version: a
    tag or a pin changes nothing that a model reads, and model calls are expensive.
    """
    if kind not in _OF_MEMORIES or memory_id is None:
        return
    subject = job_rows.live_subject(context.tx, memory_id)
    if subject is None:
        return
    if (
        state is not domain_jobs.JobState.PENDING
        and leased_hash not in {None, subject.content_hash}
        and kind in _required_by(context, subject)
    ):
        enqueue_new(context, kind, memory_id)
        state = domain_jobs.JobState.PENDING
    if kind == domain_jobs.EXTRACT:
        status = {domain_jobs.JobState.COMPLETED: "completed", domain_jobs.JobState.DEAD: "failed"}.get(
            state, "pending"
        )
        if status != subject.extraction_status:
            memory_rows.set_extraction_status(context.tx, subject.seq, status)


def restore_jobs(context: CommandContext, memory_id: str) -> None:
    """Enqueue the jobs that a recovered memory missed while it was deleted; hints were deleted and are made again."""
    subject = job_rows.subject(context.tx, memory_id)
    for kind in _required_by(context, subject):
        if kind != domain_jobs.EXTRACT or subject.extraction_status == "pending":
            enqueue(context, kind, memory_id)


def _required_by(context: CommandContext, subject: Subject) -> tuple[str, ...]:
    space = configured_space(context.config.embedding)
    embedded = _is_embedded_in(subject, space) and not _lacks_codes(context, subject, space)
    return required_kinds(context.config, subject.source_type, embedded=embedded)


def attempt_model(context: CommandContext, kind: str) -> str | None:
    """Return the embedding model and width of this attempt as JSON, stored as the job's result until it has one.

    A job that ends dead keeps it, which shows which model could not embed the memory (``_already_attempted``).
    """
    space = configured_space(context.config.embedding) if kind == domain_jobs.EMBED else None
    return None if space is None else msgspec.json.encode({"model": space[0], "dimensions": space[1]}).decode()


def reap(context: CommandContext, command: ReapLeases) -> LeasesReaped:
    """Return jobs with expired leases to ``pending`` while attempts remain, else declare them ``dead``.

    A lease counts on the monotonic clock of one supervisor incarnation. A lease of an earlier incarnation counts as
    expired, because its workers have exited.
    """
    now_ns = context.clock.monotonic_ns()
    return expire_leases(context, job_rows.expired(context.tx, context.boot_id, now_ns, command.limit))


def expire_leases(context: CommandContext, leased: Sequence[LostLease]) -> LeasesReaped:
    """Requeue leased jobs whose workers exited, or declare them dead after their last attempt.

    Requeued jobs are delayed until the worker's next incarnation has settled. Its next crash is then not an early one,
    which would count against its restart limit, so a few poison jobs cannot make the supervisor give up the worker.
    """
    dead = 0
    settled_ms = min(context.config.supervision.settled_ms + _AFTER_SETTLED_MS, domain_jobs.MAX_DELAY_MS // 2)
    waits_until = iso(context.now_ms + settled_ms)
    for seq, kind, memory_id, attempts, max_attempts, leased_hash in leased:
        state = domain_jobs.advance(
            domain_jobs.JobState.LEASED, domain_jobs.event_after_failure(attempts, max_attempts)
        )
        dead += state is domain_jobs.JobState.DEAD
        job_rows.end_lease(
            context.tx,
            seq,
            status=state,
            error=LAST_WORKER_EXITED if state is domain_jobs.JobState.DEAD else WORKER_EXITED,
            now=context.now,
            available_at=waits_until if state is domain_jobs.JobState.PENDING else None,
        )
        on_job_end(context, kind, memory_id, leased_hash, state)
    if leased:
        # Poison jobs of every kind wait for each other.
        context.queue_changes.ready.update(kind.name for kind in domain_jobs.JOB_KINDS)
    return LeasesReaped(requeued=len(leased) - dead, dead=dead)


def erase_texts(context: CommandContext, memory_id: str) -> None:
    """Delete results and errors of the memory's jobs, which may repeat its text. Source: docs/reliability.md R23."""
    job_rows.erase_texts(context.tx, memory_id, (WORKER_EXITED, LAST_WORKER_EXITED), ERASED)


def requeue(context: CommandContext, command: RequeueJobs) -> JobsRequeued:
    """Give dead jobs all their attempts again, as far as permitted; see ``RequeueJobs``.

    Raises ``SignetError`` (``forbidden``, ``rate_limited``) if the gate of the repairs refuses it.
    """
    repairs.enter(context, REQUEUE, command.principal)
    limit = min(command.limit, _MAX_REQUEUED)
    if command.ids:
        # A job whose memory the caller may not read is answered like one that does not exist.
        rows = job_rows.readable_by_ids(context.tx, command.ids, command.read, limit)
    else:
        rows = job_rows.dead(context.tx, command.kinds, limit + 1)
    answer = JobsRequeued([], [], more=len(rows) > limit)
    found = {row.id for row in rows}
    answer.refused.extend(NotRequeued(job_id, "not_found") for job_id in command.ids if job_id not in found)
    for seq, job_id, kind, memory_id, status, requeues in rows[:limit]:
        refusal = _refusal(context, kind, memory_id, status)
        if refusal is not None:
            answer.refused.append(NotRequeued(job_id, refusal))
            continue
        state = domain_jobs.advance(domain_jobs.JobState(status), domain_jobs.JobEvent.REQUEUE)
        job_rows.requeue(context.tx, seq, status=state, requeues=requeues + 1, now=context.now)
        context.queue_changes.ready.add(kind)
        on_job_end(context, kind, memory_id, None, state)
        answer.requeued.append(job_id)
    if answer.requeued:
        repairs.record(context, REQUEUE, len(answer.requeued), command.principal)
    return answer


def _refusal(context: CommandContext, kind: str, memory_id: str | None, status: str) -> str | None:
    if status != domain_jobs.JobState.DEAD:
        return "not_dead"
    if memory_id is None:
        return None
    if not memory_rows.exists_live(context.tx, memory_id):
        return "memory_gone"
    return "already_waiting" if job_rows.has_unfinished(context.tx, memory_id, kind) else None


def reconcile(context: CommandContext, command: ReconcileJobs) -> JobsReconciled:
    """Enqueue missing jobs for the memories after ``after``.

    A job is missing if extraction is pending, or if vectors are made and the memory has none of its present content by
    the configured model. No job is enqueued if one for the same content (and model) has ended: a dead job is left to
    the operator. A memory that was stored while the pipeline was off is not extracted now. Vectors of a previous model
    stay and are searched until new ones replace them.
    """
    space = configured_space(context.config.embedding)
    if job_rows.pending_more_than(context.tx, domain_jobs.EMBED, MAX_WAITING):
        return JobsReconciled(0, command.after, space_name(context.config.embedding))
    subjects = job_rows.live_subjects_after(context.tx, command.after, command.limit)
    enqueued = 0
    for subject in subjects:
        lacks_codes = _lacks_codes(context, subject, space)
        if subject.extraction_status != "pending" and _is_embedded_in(subject, space) and not lacks_codes:
            continue
        for kind in _required_by(context, subject):
            if kind == domain_jobs.EXTRACT and subject.extraction_status != "pending":
                continue
            if kind == domain_jobs.EMBED and lacks_codes:
                attempted = job_rows.has_dead(context.tx, subject.id, kind, subject.content_hash)
            else:
                attempted = kind == domain_jobs.PROSPECTIVE_INDEX or _already_attempted(context, kind, subject, space)
            if not attempted:
                enqueued += enqueue(context, kind, subject.id)
    following = subjects[-1].seq if len(subjects) == command.limit else None
    return JobsReconciled(enqueued, following, space_name(context.config.embedding))


def _already_attempted(context: CommandContext, kind: str, subject: Subject, space: Space | None) -> bool:
    """Return whether a job for this content has ended; if a dead extraction is found, mark the memory as failed.

    An embed job that ended without leaving a vector, completed or dead, had a text that its model cannot embed; another
    model may. If a dead job has no model noted, the embedding is tried once more.
    """
    if kind == domain_jobs.EMBED:
        return job_rows.has_embedded(context.tx, subject.id, kind, subject.content_hash, space)
    ended = job_rows.has_dead(context.tx, subject.id, kind, subject.content_hash)
    if ended and kind == domain_jobs.EXTRACT:
        memory_rows.set_extraction_status(context.tx, subject.seq, "failed")
    return ended
