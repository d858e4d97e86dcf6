"""The durable job queue: which jobs a memory gets, what happens when a job ends, and how lost jobs are retried.

A memory has at most one pending or leased job of a kind. If the memory changes meanwhile, a pending job reads the new
content when it is leased. When a leased job ends, the hash of the content that was handed out decides whether another
job is needed.

Source: memory-pipeline.txt "Worker Model"; architecture.txt "Job Queue"; docs/decisions.md 11-15; docs/reliability.md
R6, R8.
Departs: a job that ends is followed by another if the memory's *content* differs, not for every newer version: a tag or
a pin changes nothing that a model reads, and model calls are expensive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from signet_actors.config.embedding_models import configured_space, space_name
from signet_actors.config.schema import Config
from signet_actors.domain.jobs import (
    EMBED,
    EXTRACT,
    JOB_KINDS,
    MAX_DELAY_MS,
    PROSPECTIVE_INDEX,
    JobEvent,
    JobState,
    advance,
    event_after_failure,
)
from signet_actors.domain.memories import DERIVED
from signet_actors.domain.timestamps import iso
from signet_actors.protocol.leases import LeasesReaped, ReapLeases
from signet_actors.protocol.pipeline import (
    JobsReconciled,
    JobsRequeued,
    ReconcileJobs,
    RequeueJobs,
    RequeueRefused,
)
from signet_actors.store.read_policy import readable_in_any_scope
from signet_actors.store.writes.inserts import Insert
from signet_actors.writer.command_context import CommandContext
from signet_actors.writer.commands import repairs

_NEW_JOBS = Insert("memory_jobs", ("id", "job_type", "memory_id", "max_attempts", "created_at", "updated_at"))

LAST_ATTEMPT_LOST = "the worker went away on the last attempt"
WORKER_LOST = "the worker went away"
"""The ``error`` of a job whose worker exited while it held the lease; the job may have crashed it (see ``leases``)."""
ERASED = "the memory was erased"
"""The ``error`` of a failed job whose memory was erased: the original error may repeat the text."""

_OF_MEMORIES = frozenset(kind.name for kind in JOB_KINDS if kind.of_memory)
UNFINISHED = "status IN ('pending', 'leased')"
_MAX_REQUEUED = 500
_AFTER_SETTLED_MS = 500


def required_kinds(config: Config, *, derived: bool, embedded: bool) -> tuple[str, ...]:
    """Return the jobs that a memory with its present content needs; ``derived``: the pipeline created it."""
    pipeline = config.memory.pipeline_v2
    kinds = []
    if pipeline.enabled and not derived:
        kinds.append(EXTRACT)
    if pipeline.enabled and pipeline.hints.enabled:
        kinds.append(PROSPECTIVE_INDEX)
    if not embedded and pipeline.embedding_tracker.enabled and config.embedding.provider != "none":
        kinds.append(EMBED)
    return tuple(kinds)


def enqueue_new(context: CommandContext, kind: str, memory_id: str) -> None:
    """Insert a pending job for a memory that has no other pending or leased job of the kind."""
    context.insert_buffer.add(
        _NEW_JOBS,
        (
            context.new_id(),
            kind,
            memory_id,
            context.config.memory.pipeline_v2.worker.max_retries,
            context.now,
            context.now,
        ),
    )
    context.queue_changes.ready.add(kind)


def enqueue(context: CommandContext, kind: str, memory_id: str) -> bool:
    """Insert a pending job unless one of the kind is pending or leased; return whether it was inserted."""
    waiting = context.tx.one(
        f"SELECT 1 FROM memory_jobs WHERE memory_id = ? AND job_type = ? AND {UNFINISHED} LIMIT 1", (memory_id, kind)
    )
    if waiting is None:
        enqueue_new(context, kind, memory_id)
    return waiting is None


Space = tuple[str, int]


class _Subject(NamedTuple):
    """The columns of a memory that decide which jobs it needs."""

    seq: int
    id: str
    content_hash: str
    source_type: str | None
    extraction_status: str
    embedded_model: str | None
    embedded_dimensions: int | None
    embedded_hash: str | None

    def embedded_in(self, space: Space | None) -> bool:
        """Return whether the memory has a vector of its present content by that model, at that width."""
        return (self.embedded_model, self.embedded_dimensions) == space and self.embedded_hash == self.content_hash


_SUBJECT = (
    "m.seq, m.id, m.content_hash, m.source_type, m.extraction_status, e.model, e.dimensions, e.content_hash"
    " FROM memories m LEFT JOIN embeddings e ON e.seq = m.embedding_seq"
)


def on_job_end(
    context: CommandContext, kind: str, memory_id: str | None, leased_hash: str | None, state: JobState
) -> None:
    """Update the memory's row after a job ended or was requeued; enqueue another job if the content has changed."""
    if kind not in _OF_MEMORIES or memory_id is None:
        return
    row = context.tx.one(f"SELECT {_SUBJECT} WHERE m.id = ? AND m.is_deleted = 0", (memory_id,))
    if row is None:
        return
    subject = _Subject(*row)
    if (
        state is not JobState.PENDING
        and leased_hash not in {None, subject.content_hash}
        and kind in _required_by(context, subject)
    ):
        enqueue_new(context, kind, memory_id)
        state = JobState.PENDING
    if kind == EXTRACT:
        status = {JobState.COMPLETED: "completed", JobState.DEAD: "failed"}.get(state, "pending")
        if status != subject.extraction_status:
            context.tx.execute("UPDATE memories SET extraction_status = ? WHERE seq = ?", (status, subject.seq))


def restore_jobs(context: CommandContext, memory_id: str) -> None:
    """Enqueue the jobs that a recovered memory missed while it was deleted; hints were deleted and are made again."""
    (row,) = context.tx.rows(f"SELECT {_SUBJECT} WHERE m.id = ?", (memory_id,))
    subject = _Subject(*row)
    for kind in _required_by(context, subject):
        if kind != EXTRACT or subject.extraction_status == "pending":
            enqueue(context, kind, memory_id)


def _required_by(context: CommandContext, subject: _Subject) -> tuple[str, ...]:
    embedded = subject.embedded_in(configured_space(context.config.embedding))
    return required_kinds(context.config, derived=subject.source_type == DERIVED, embedded=embedded)


def attempt_model(context: CommandContext, kind: str) -> str | None:
    """Return the embedding model and width of this attempt as JSON, stored as the job's result until it has one.

    A job that ends dead keeps it, which shows which model could not embed the memory (``_already_attempted``).
    """
    space = configured_space(context.config.embedding) if kind == EMBED else None
    return None if space is None else msgspec.json.encode({"model": space[0], "dimensions": space[1]}).decode()


def reap(context: CommandContext, command: ReapLeases) -> LeasesReaped:
    """Return jobs with expired leases to ``pending`` while attempts remain, else declare them ``dead``.

    A lease counts on the monotonic clock of one supervisor incarnation. A lease of an earlier incarnation counts as
    expired, because its workers have exited.
    """
    expired = context.tx.rows(
        f"SELECT {EXPIRED_COLUMNS} FROM memory_jobs INDEXED BY idx_memory_jobs_leased"
        " WHERE status = 'leased' AND (lease_boot IS NOT ? OR lease_expires_ns < ?) ORDER BY seq LIMIT ?",
        (context.boot_id, context.clock.monotonic_ns(), command.limit),
    )
    return expire_leases(context, expired)


EXPIRED_COLUMNS = "seq, job_type, memory_id, attempts, max_attempts, leased_hash"
"""The columns of a job that ``expire_leases`` needs."""


def expire_leases(context: CommandContext, leased: Sequence[Sequence[Any]]) -> LeasesReaped:
    """Requeue leased jobs whose workers exited, or declare them dead after their last attempt.

    Requeued jobs are delayed until the worker's next incarnation has settled. Its next crash is then not an early one,
    which would count against its restart limit, so a few poison jobs cannot make the supervisor give up the worker.
    """
    dead = 0
    settled_ms = min(context.config.supervision.settled_ms + _AFTER_SETTLED_MS, MAX_DELAY_MS // 2)
    waits_until = iso(context.now_ms + settled_ms)
    for seq, kind, memory_id, attempts, max_attempts, leased_hash in leased:
        state = advance(JobState.LEASED, event_after_failure(attempts, max_attempts))
        dead += state is JobState.DEAD
        context.tx.execute(
            "UPDATE memory_jobs SET status = ?, error = ?, failed_at = ?, updated_at = ?, available_at = ?,"
            " lease_id = NULL, lease_boot = NULL, lease_expires_ns = NULL, leased_at = NULL WHERE seq = ?",
            (
                state,
                LAST_ATTEMPT_LOST if state is JobState.DEAD else WORKER_LOST,
                context.now,
                context.now,
                waits_until if state is JobState.PENDING else None,
                seq,
            ),
        )
        on_job_end(context, kind, memory_id, leased_hash, state)
    if leased:
        # Poison candidates of every kind wait for each other.
        context.queue_changes.ready.update(kind.name for kind in JOB_KINDS)
    return LeasesReaped(requeued=len(leased) - dead, dead=dead)


def erase_texts(context: CommandContext, memory_id: str) -> None:
    """Delete results and errors of the memory's jobs, which may repeat its text. Source: docs/reliability.md R23."""
    context.tx.execute(
        "UPDATE memory_jobs SET result = NULL,"
        " error = CASE WHEN error IS NULL OR error IN (?, ?) THEN error ELSE ? END WHERE memory_id = ?",
        (WORKER_LOST, LAST_ATTEMPT_LOST, ERASED, memory_id),
    )


def requeue(context: CommandContext, command: RequeueJobs) -> JobsRequeued:
    """Give dead jobs all their attempts again, as far as permitted; see ``RequeueJobs``.

    Raises ``SignetError`` (``rate_limited``) if the last requeue was too recent, or there were too many within an hour.
    """
    limits = context.config.memory.pipeline_v2.repair
    repairs.enforce_rate(
        context,
        repairs.REQUEUE_DEAD,
        cooldown_ms=limits.requeue_cooldown_ms,
        hourly_budget=limits.requeue_hourly_budget,
    )
    limit = min(command.limit, _MAX_REQUEUED)
    columns = "j.seq, j.id, j.job_type, j.memory_id, j.status, j.requeues"
    if command.ids:
        # A job whose memory the caller may not read is answered like one that does not exist.
        predicate, bindings = readable_in_any_scope(context.tx.connection, command.read.agent_id)
        rows = context.tx.rows(
            f"SELECT {columns} FROM memory_jobs j WHERE j.id IN (SELECT value FROM json_each(:ids))"
            f" AND (j.memory_id IS NULL OR EXISTS (SELECT 1 FROM memories m WHERE m.id = j.memory_id AND {predicate}))"
            " ORDER BY j.seq LIMIT :limit",
            {**bindings, "ids": _json(command.ids), "limit": limit},
        )
    else:
        rows = context.tx.rows(
            f"SELECT {columns} FROM memory_jobs j WHERE status = 'dead' AND requeues = 0"
            " AND (? OR job_type IN (SELECT value FROM json_each(?)))"
            # Skip jobs that would be refused: they would stay the oldest and block the others for ever.
            " AND (memory_id IS NULL OR EXISTS (SELECT 1 FROM memories WHERE id = j.memory_id AND is_deleted = 0))"
            " AND NOT EXISTS (SELECT 1 FROM memory_jobs w WHERE w.memory_id = j.memory_id AND w.job_type = j.job_type"
            "  AND w.status IN ('pending', 'leased')) ORDER BY failed_at, job_type LIMIT ?",
            (not command.kinds, _json(command.kinds), limit + 1),
        )
    answer = JobsRequeued([], [], more=len(rows) > limit)
    found = {row[1] for row in rows}
    answer.refused.extend(RequeueRefused(job_id, "not_found") for job_id in command.ids if job_id not in found)
    for seq, job_id, kind, memory_id, status, requeues in rows[:limit]:
        refusal = _refusal(context, kind, memory_id, status)
        if refusal is not None:
            answer.refused.append(RequeueRefused(job_id, refusal))
            continue
        state = advance(JobState(status), JobEvent.REQUEUE)
        context.tx.execute(
            "UPDATE memory_jobs SET status = ?, attempts = 0, releases = 0, requeues = ?, available_at = NULL,"
            " result = NULL, failed_at = NULL, updated_at = ? WHERE seq = ?",
            (state, requeues + 1, context.now, seq),
        )
        context.queue_changes.ready.add(kind)
        on_job_end(context, kind, memory_id, None, state)
        answer.requeued.append(job_id)
    if answer.requeued:
        repairs.record(context, repairs.REQUEUE_DEAD, command.principal, affected=len(answer.requeued))
    return answer


def _refusal(context: CommandContext, kind: str, memory_id: str | None, status: str) -> str | None:
    if status != JobState.DEAD:
        return "not_dead"
    if memory_id is None:
        return None
    if not context.tx.one("SELECT 1 FROM memories WHERE id = ? AND is_deleted = 0", (memory_id,)):
        return "memory_gone"
    waiting = f"SELECT 1 FROM memory_jobs WHERE memory_id = ? AND job_type = ? AND {UNFINISHED}"
    return "already_waiting" if context.tx.one(waiting, (memory_id, kind)) else None


def reconcile(context: CommandContext, command: ReconcileJobs) -> JobsReconciled:
    """Enqueue missing jobs for the memories after ``after``.

    A job is missing if extraction is pending, or if vectors are made and the memory has none of its present content by
    the configured model. No job is enqueued if one for the same content (and model) has ended: a dead job is left to
    the operator. A memory that was stored while the pipeline was off is not extracted now. Vectors of a previous model
    stay and are searched until new ones replace them.
    """
    rows = context.tx.rows(
        f"SELECT {_SUBJECT} WHERE m.seq > ? AND m.is_deleted = 0 ORDER BY m.seq LIMIT ?",
        (command.after, command.limit),
    )
    enqueued, space = 0, configured_space(context.config.embedding)
    for subject in map(_Subject._make, rows):
        if subject.extraction_status != "pending" and subject.embedded_in(space):
            continue
        for kind in _required_by(context, subject):
            if kind == EXTRACT and subject.extraction_status != "pending":
                continue
            if kind != PROSPECTIVE_INDEX and not _already_attempted(context, kind, subject, space):
                enqueued += enqueue(context, kind, subject.id)
    following = rows[-1][0] if len(rows) == command.limit else None
    return JobsReconciled(enqueued, following, space_name(context.config.embedding))


def _already_attempted(context: CommandContext, kind: str, subject: _Subject, space: Space | None) -> bool:
    """Return whether a job for this content has ended; if a dead extraction is found, mark the memory as failed.

    An embed job that ended without leaving a vector, completed or dead, had a text that its model cannot embed; another
    model may. If a dead job has no model noted, the embedding is tried once more.
    """
    tried: Sequence[Any] = ()
    ended = "status = 'dead'"
    if kind == EMBED:
        ended = "status IN ('completed', 'dead') AND result ->> '$.model' IS ? AND result ->> '$.dimensions' IS ?"
        tried = space or (None, None)
    found = context.tx.one(
        f"SELECT 1 FROM memory_jobs WHERE memory_id = ? AND job_type = ? AND leased_hash = ? AND {ended} LIMIT 1",
        (subject.id, kind, subject.content_hash, *tried),
    )
    if found is not None and kind == EXTRACT:
        context.tx.execute("UPDATE memories SET extraction_status = 'failed' WHERE seq = ?", (subject.seq,))
    return found is not None


def _json(texts: tuple[str, ...]) -> str:
    return msgspec.json.encode(texts).decode()
