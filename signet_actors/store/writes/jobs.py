"""Statements about ``memory_jobs``: new, ended, lost and requeued jobs, and which jobs a memory has.

``leases`` has the statements about jobs that are handed out.

Source: memory-pipeline.txt "Worker Model"; docs/decisions.md 11-15.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.pipeline import JobMemory
from signet_actors.store.access import Reads
from signet_actors.store.read_policy import readable_in_any_scope
from signet_actors.store.sqlite.transaction import WriteTransaction
from signet_actors.store.writes.inserts import Insert


class JobRow(NamedTuple):
    """A new pending job."""

    id: str
    job_type: str
    memory_id: str
    max_attempts: int
    created_at: str
    updated_at: str


class Subject(NamedTuple):
    """The columns of a memory that decide which jobs it needs."""

    seq: int
    id: str
    content_hash: str
    source_type: str | None
    extraction_status: str
    embedded_model: str | None
    embedded_dimensions: int | None
    embedded_hash: str | None


class LostLease(NamedTuple):
    """A job whose lease ended without a report."""

    seq: int
    kind: str
    memory_id: str | None
    attempts: int
    max_attempts: int
    leased_hash: str | None


class RequeueCandidate(NamedTuple):
    """A job that a person may want to run again."""

    seq: int
    id: str
    kind: str
    memory_id: str | None
    status: str
    requeues: int


JOBS: Final = Insert("memory_jobs", JobRow._fields)
LOST_LEASE_COLUMNS: Final = "seq, job_type, memory_id, attempts, max_attempts, leased_hash"
"""The columns of a ``LostLease``."""

_UNFINISHED: Final = "status IN ('pending', 'leased')"
_HAS_UNFINISHED: Final = f"SELECT 1 FROM memory_jobs WHERE memory_id = ? AND job_type = ? AND {_UNFINISHED} LIMIT 1"
_SUBJECT: Final = (
    "SELECT m.seq, m.id, m.content_hash, m.source_type, m.extraction_status, e.model, e.dimensions, e.content_hash"
    " FROM memories m LEFT JOIN embeddings e ON e.seq = m.embedding_seq"
)
_SUBJECT_BY_ID: Final = f"{_SUBJECT} WHERE m.id = ?"
_LIVE_SUBJECT_BY_ID: Final = f"{_SUBJECT} WHERE m.id = ? AND m.is_deleted = 0"
_LIVE_SUBJECTS_AFTER: Final = f"{_SUBJECT} WHERE m.seq > ? AND m.is_deleted = 0 ORDER BY m.seq LIMIT ?"
_EXPIRED: Final = (
    f"SELECT {LOST_LEASE_COLUMNS} FROM memory_jobs INDEXED BY idx_memory_jobs_leased"
    " WHERE status = 'leased' AND (lease_boot IS NOT ? OR lease_expires_ns < ?) ORDER BY seq LIMIT ?"
)
_END_LEASE: Final = (
    "UPDATE memory_jobs SET status = ?, error = ?, failed_at = ?, updated_at = ?, available_at = ?,"
    " lease_id = NULL, lease_boot = NULL, lease_expires_ns = NULL, leased_at = NULL WHERE seq = ?"
)
_ERASE_TEXTS: Final = (
    "UPDATE memory_jobs SET result = NULL,"
    " error = CASE WHEN error IS NULL OR error IN (?, ?) THEN error ELSE ? END WHERE memory_id = ?"
)
_DELETE_PENDING: Final = "DELETE FROM memory_jobs WHERE memory_id = ? AND status = 'pending'"
_CANDIDATE: Final = "SELECT j.seq, j.id, j.job_type, j.memory_id, j.status, j.requeues FROM memory_jobs j"
_DEAD: Final = (
    f"{_CANDIDATE} WHERE status = 'dead' AND requeues = 0"
    " AND (? OR job_type IN (SELECT value FROM json_each(?)))"
    # Skip jobs that would be refused: they would stay the oldest and block the others for ever.
    " AND (memory_id IS NULL OR EXISTS (SELECT 1 FROM memories WHERE id = j.memory_id AND is_deleted = 0))"
    " AND NOT EXISTS (SELECT 1 FROM memory_jobs w WHERE w.memory_id = j.memory_id AND w.job_type = j.job_type"
    "  AND w.status IN ('pending', 'leased')) ORDER BY failed_at, job_type LIMIT ?"
)
_REQUEUE: Final = (
    "UPDATE memory_jobs SET status = ?, attempts = 0, releases = 0, requeues = ?, available_at = NULL,"
    " result = NULL, failed_at = NULL, updated_at = ? WHERE seq = ?"
)
_HAS_ENDED: Final = "SELECT 1 FROM memory_jobs WHERE memory_id = ? AND job_type = ? AND leased_hash = ? AND"
_HAS_DEAD: Final = f"{_HAS_ENDED} status = 'dead' LIMIT 1"
_HAS_EMBEDDED: Final = (
    f"{_HAS_ENDED} status IN ('completed', 'dead') AND result ->> '$.model' IS ? AND result ->> '$.dimensions' IS ?"
    " LIMIT 1"
)
_MEMORY_COLUMNS: Final = JobMemory.__struct_fields__
_LIVE_MEMORIES: Final = (
    f"SELECT {', '.join(f'm.{name}' for name in _MEMORY_COLUMNS)}"
    " FROM json_each(?) i JOIN memories m ON m.id = i.value WHERE m.is_deleted = 0"
)


def has_unfinished(tx: WriteTransaction, memory_id: str, kind: str) -> bool:
    """Return whether a job of the kind is pending or leased for the memory."""
    return tx.one(_HAS_UNFINISHED, (memory_id, kind)) is not None


def subject(tx: WriteTransaction, memory_id: str) -> Subject:
    """Return the memory, live or deleted. Raises ``ValueError`` if there is none."""
    (row,) = tx.rows(_SUBJECT_BY_ID, (memory_id,))
    return Subject(*row)


def live_subject(tx: WriteTransaction, memory_id: str) -> Subject | None:
    """Return the memory if it is not deleted."""
    row = tx.one(_LIVE_SUBJECT_BY_ID, (memory_id,))
    return None if row is None else Subject(*row)


def live_subjects_after(tx: WriteTransaction, seq: int, limit: int) -> list[Subject]:
    """Return the next live memories after row ``seq``, in order."""
    return [Subject(*row) for row in tx.rows(_LIVE_SUBJECTS_AFTER, (seq, limit))]


def job_memories(reads: Reads, memory_ids: Sequence[str]) -> dict[str, JobMemory]:
    """Return those of the memories that are not deleted, by id, as their workers receive them."""
    rows = reads.rows(_LIVE_MEMORIES, (msgspec.json.encode(memory_ids).decode(),))
    found = (JobMemory(**dict(zip(_MEMORY_COLUMNS, row, strict=True))) for row in rows)
    return {memory.id: msgspec.structs.replace(memory, pinned=bool(memory.pinned)) for memory in found}


def expired(tx: WriteTransaction, boot_id: str, now_ns: int, limit: int) -> list[LostLease]:
    """Return jobs whose lease is of another incarnation of the supervisor or expired before ``now_ns``."""
    return [LostLease(*row) for row in tx.rows(_EXPIRED, (boot_id, now_ns, limit))]


def end_lease(tx: WriteTransaction, seq: int, *, status: str, error: str, now: str, available_at: str | None) -> None:
    """Take the lease from a job whose worker exited."""
    tx.execute(_END_LEASE, (status, error, now, now, available_at, seq))


def erase_texts(tx: WriteTransaction, memory_id: str, harmless: tuple[str, str], erased: str) -> None:
    """Delete the results of the memory's jobs; errors other than the ``harmless`` ones become ``erased``."""
    tx.execute(_ERASE_TEXTS, (*harmless, erased, memory_id))


def delete_pending(tx: WriteTransaction, memory_id: str) -> None:
    """Delete the memory's pending jobs."""
    tx.execute(_DELETE_PENDING, (memory_id,))


def readable_by_ids(
    tx: WriteTransaction, job_ids: Sequence[str], read: ReadScope, limit: int
) -> list[RequeueCandidate]:
    """Return the jobs with these ids; a job whose memory the caller may not read is left out."""
    predicate, bindings = readable_in_any_scope(tx.connection, read.agent_id)
    rows = tx.rows(
        f"{_CANDIDATE} WHERE j.id IN (SELECT value FROM json_each(:ids))"
        f" AND (j.memory_id IS NULL OR EXISTS (SELECT 1 FROM memories m WHERE m.id = j.memory_id AND {predicate}))"
        " ORDER BY j.seq LIMIT :limit",
        {**bindings, "ids": _json(job_ids), "limit": limit},
    )
    return [RequeueCandidate(*row) for row in rows]


def dead(tx: WriteTransaction, kinds: Sequence[str], limit: int) -> list[RequeueCandidate]:
    """Return dead jobs of these kinds (of all kinds if none is given) that can be requeued, longest dead first."""
    return [RequeueCandidate(*row) for row in tx.rows(_DEAD, (not kinds, _json(kinds), limit))]


def requeue(tx: WriteTransaction, seq: int, *, status: str, requeues: int, now: str) -> None:
    """Give the job all its attempts again."""
    tx.execute(_REQUEUE, (status, requeues, now, seq))


def has_dead(tx: WriteTransaction, memory_id: str, kind: str, content_hash: str) -> bool:
    """Return whether a job of the kind for this content is dead."""
    return tx.one(_HAS_DEAD, (memory_id, kind, content_hash)) is not None


def has_embedded(
    tx: WriteTransaction, memory_id: str, kind: str, content_hash: str, space: tuple[str, int] | None
) -> bool:
    """Return whether a job for this content has ended, completed or dead, that tried this model and width."""
    model, dimensions = space or (None, None)
    return tx.one(_HAS_EMBEDDED, (memory_id, kind, content_hash, model, dimensions)) is not None


def _json(texts: Sequence[Any]) -> str:
    return msgspec.json.encode(texts).decode()
