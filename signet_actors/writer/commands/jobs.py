"""The durable job queue: which memory gets which jobs, what follows when one ends, and what is done with the lost.

A memory has at most one job of a kind that is pending or leased. A memory that changes meanwhile is not forgotten: a
pending job reads it when it is handed out, and when a leased one ends, the hash of what was handed out says whether
another is due.

Source: memory-pipeline.txt "Worker Model"; architecture.txt "Job Queue"; docs/decisions.md 11-15; docs/reliability.md
R6, R8.
Departs: a job that ends is followed by another when the memory's *content* differs, not for every newer version: a tag
or a pin changes nothing that a model reads, and calls cost.
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
from signet_actors.protocol.pipeline import (
    JobsReconciled,
    JobsRequeued,
    ReconcileJobs,
    RequeueJobs,
    RequeueRefused,
)
from signet_actors.protocol.writer import LeasesReaped, ReapLeases
from signet_actors.runtime.clock import iso
from signet_actors.writer.command_context import CommandContext
from signet_actors.writer.commands import repairs
from signet_actors.writer.insert_buffer import Insert

_NEW_JOBS = Insert("memory_jobs", ("id", "job_type", "memory_id", "max_attempts", "created_at", "updated_at"))

LAST_ATTEMPT_LOST = "the worker went away on the last attempt"
WORKER_LOST = "the worker went away"
"""The ``error`` of a job whose last attempt ended so; it may be what ended its worker (``leases``)."""
ERASED = "the memory was erased"
"""The ``error`` of a job that failed on a memory that is gone: what it failed of may repeat the text."""
DERIVED = "pipeline-v2"
"""``source_type`` and ``who`` of a memory that the pipeline made: nothing is extracted from it again."""

_OF_MEMORIES = frozenset(kind.name for kind in JOB_KINDS if kind.of_memory)
UNFINISHED = "status IN ('pending', 'leased')"
_MAX_REQUEUED = 500
_AFTER_SETTLED_MS = 500


def required_kinds(config: Config, *, derived: bool, embedded: bool) -> tuple[str, ...]:
    """The jobs that a memory has with its present content; ``derived``: the pipeline itself made it."""
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
    """A pending job waits for a memory that has no other of the kind."""
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
    """The same unless one is pending or leased; False then, because that one sees to it."""
    waiting = context.tx.one(
        f"SELECT 1 FROM memory_jobs WHERE memory_id = ? AND job_type = ? AND {UNFINISHED} LIMIT 1", (memory_id, kind)
    )
    if waiting is None:
        enqueue_new(context, kind, memory_id)
    return waiting is None


Space = tuple[str, int]


class _Subject(NamedTuple):
    """What a memory's row says about the jobs that it should have."""

    seq: int
    id: str
    content_hash: str
    source_type: str | None
    extraction_status: str
    embedded_model: str | None
    embedded_dimensions: int | None
    embedded_hash: str | None

    def embedded_in(self, space: Space | None) -> bool:
        """It has the vector of its present content by that model, at that width."""
        return (self.embedded_model, self.embedded_dimensions) == space and self.embedded_hash == self.content_hash


_SUBJECT = (
    "m.seq, m.id, m.content_hash, m.source_type, m.extraction_status, e.model, e.dimensions, e.content_hash"
    " FROM memories m LEFT JOIN embeddings e ON e.seq = m.embedding_seq"
)


def on_job_end(
    context: CommandContext, kind: str, memory_id: str | None, leased_hash: str | None, state: JobState
) -> None:
    """A job of the memory has ended (or waits again): its row says so, and a newer content has a job of its own."""
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
    """A memory that came back has the jobs that it missed as a tombstone; its hints went with it and come anew."""
    (row,) = context.tx.rows(f"SELECT {_SUBJECT} WHERE m.id = ?", (memory_id,))
    subject = _Subject(*row)
    for kind in _required_by(context, subject):
        if kind != EXTRACT or subject.extraction_status == "pending":
            enqueue(context, kind, memory_id)


def _required_by(context: CommandContext, subject: _Subject) -> tuple[str, ...]:
    embedded = subject.embedded_in(configured_space(context.config.embedding))
    return required_kinds(context.config, derived=subject.source_type == DERIVED, embedded=embedded)


def attempt_model(context: CommandContext, kind: str) -> str | None:
    """What an attempt at such a job depends on, noted as its result until it has another: the model, of an embedding.

    A job that dies keeps it, and so says by which model its memory could not be embedded (``_settled``).
    """
    space = configured_space(context.config.embedding) if kind == EMBED else None
    return None if space is None else msgspec.json.encode({"model": space[0], "dimensions": space[1]}).decode()


def reap(context: CommandContext, command: ReapLeases) -> LeasesReaped:
    """Expired leases are given back: to ``pending`` while attempts remain, else to ``dead`` with the cause.

    A lease counts on the monotonic clock of one supervisor life; a lease of another life is expired, because no
    worker of that life can still be running.
    """
    expired = context.tx.rows(
        f"SELECT {EXPIRED_COLUMNS} FROM memory_jobs INDEXED BY idx_memory_jobs_leased"
        " WHERE status = 'leased' AND (lease_boot IS NOT ? OR lease_expires_ns < ?) ORDER BY seq LIMIT ?",
        (context.boot_id, context.clock.monotonic_ns(), command.limit),
    )
    return expire_leases(context, expired)


EXPIRED_COLUMNS = "seq, job_type, memory_id, attempts, max_attempts, leased_hash"
"""What ``lose`` wants to know of a job."""


def expire_leases(context: CommandContext, leased: Sequence[Sequence[Any]]) -> LeasesReaped:
    """Leased jobs whose workers are gone wait for their next attempt, or are dead after their last.

    They wait until the next life of the worker has settled: the death of one that has served for a while is no early
    one, which would be counted against its restarts, so that a few jobs that kill cannot have it given up for all.
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
        # Those that lost their workers before wait for each other, whatever their kinds.
        context.queue_changes.ready.update(kind.name for kind in JOB_KINDS)
    return LeasesReaped(requeued=len(leased) - dead, dead=dead)


def erase_texts(context: CommandContext, memory_id: str) -> None:
    """What jobs of the memory came to, or failed of, is not told any more. Source: docs/reliability.md R23."""
    context.tx.execute(
        "UPDATE memory_jobs SET result = NULL,"
        " error = CASE WHEN error IS NULL OR error IN (?, ?) THEN error ELSE ? END WHERE memory_id = ?",
        (WORKER_LOST, LAST_ATTEMPT_LOST, ERASED, memory_id),
    )


def requeue(context: CommandContext, command: RequeueJobs) -> JobsRequeued:
    """Dead jobs have all their attempts again, as far as they may; see ``RequeueJobs``.

    Raises ``SignetError`` (``rate_limited``) where the last requeue is too near, or the hour has had too many.
    """
    limits = context.config.memory.pipeline_v2.repair
    repairs.enforce_rate(
        context,
        repairs.REQUEUE_DEAD,
        cooldown_ms=limits.requeue_cooldown_ms,
        hourly_budget=limits.requeue_hourly_budget,
    )
    limit = min(command.limit, _MAX_REQUEUED)
    columns = "seq, id, job_type, memory_id, status, requeues"
    if command.ids:
        rows = context.tx.rows(
            f"SELECT {columns} FROM memory_jobs WHERE id IN (SELECT value FROM json_each(?)) ORDER BY seq LIMIT ?",
            (_json(command.ids), limit),
        )
    else:
        rows = context.tx.rows(
            f"SELECT {columns} FROM memory_jobs j WHERE status = 'dead' AND requeues = 0"
            " AND (? OR job_type IN (SELECT value FROM json_each(?)))"
            # What would be refused would be the oldest the next time too, and nothing behind it ever revived.
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
    """Of the memories behind ``after``, each that should have a job and has none has one.

    That is one whose extraction is pending, and one without a vector of its present content by the configured model,
    where vectors are made; unless the job for this very content (and model) has ended already: a dead one is left to a
    person. Another model is another job, also where the one for the former model is dead. A memory that was stored
    while the pipeline was off is not extracted by surprise. A vector of a former model stays, and is searched, until
    the new one takes its place.
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
    """Whether a job for this content has ended; a dead extraction is then written on its memory, too.

    An embedding without a vector to show for it, completed or dead, was of a text that the model cannot read; another
    model may. Of one that died before its model was noted nothing is known: it is tried once more.
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
