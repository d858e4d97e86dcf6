"""Statements about ``memory_jobs``: new, ended, lost and requeued jobs, and which jobs a memory has.

``leases`` has the statements about jobs that are handed out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from signet_actors.domain.jobs import STRUCTURAL_CLASSIFY
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.pipeline import JobMemory
from signet_actors.store.engine import Insert, Reads, WriteTransaction
from signet_actors.store.read_policy import readable_in_any_scope


class JobRow(NamedTuple):
    """A new pending job about a memory, or about a session; ``payload`` is JSON text."""

    id: str
    job_type: str
    memory_id: str | None
    payload: str | None
    max_attempts: int
    created_at: str
    updated_at: str
    available_at: str | None = None


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
    has_token_codes: int


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
LOST_LEASE_COLUMNS: Final = "j.seq, j.job_type, j.memory_id, j.attempts, j.max_attempts, j.leased_hash"
"""The columns of a ``LostLease``."""

_OF_MEMORY: Final = "SELECT 1 FROM memory_jobs j WHERE j.memory_id = :memory_id AND j.job_type = :kind AND"
_NTH_PENDING: Final = (
    "SELECT 1 FROM memory_jobs j WHERE j.status = 'pending' AND j.job_type = :kind LIMIT 1 OFFSET :count"
)
_HAS_UNFINISHED: Final = f"{_OF_MEMORY} j.status IN ('pending', 'leased') LIMIT 1"
_CLASSIFIES: Final = (
    "SELECT 1 FROM memory_jobs j WHERE j.payload ->> 'entity' = :entity_id"
    f" AND j.job_type = '{STRUCTURAL_CLASSIFY}' AND j.status IN ('pending', 'leased') LIMIT 1"
)
_RESULT: Final = "SELECT j.result, j.leased_hash FROM memory_jobs j WHERE j.id = :id"
_SUBJECT: Final = (
    "SELECT m.seq, m.id, m.content_hash, m.source_type, m.extraction_status, e.model, e.dimensions, e.content_hash,"
    " CASE WHEN e.token_codes IS NULL THEN 0 ELSE 1 END"
    " FROM memories m LEFT JOIN embeddings e ON e.seq = m.embedding_seq"
)
_SUBJECT_BY_ID: Final = f"{_SUBJECT} WHERE m.id = :id"
_LIVE_SUBJECT_BY_ID: Final = f"{_SUBJECT} WHERE m.id = :id AND m.is_deleted = 0"
_LIVE_SUBJECTS_AFTER: Final = f"{_SUBJECT} WHERE m.seq > :after AND m.is_deleted = 0 ORDER BY m.seq LIMIT :limit"
# SQLite would read all jobs in order of `seq`; of the sum it knows no order and reads the index of leased jobs.
_EXPIRED: Final = (
    f"SELECT {LOST_LEASE_COLUMNS} FROM memory_jobs j WHERE j.status = 'leased'"
    " AND (j.lease_boot IS DISTINCT FROM :boot_id OR j.lease_expires_ns < :now_ns) ORDER BY j.seq + 0 LIMIT :limit"
)
_END_LEASE: Final = (
    "UPDATE memory_jobs SET status = :status, error = :error, failed_at = :now, updated_at = :now,"
    " available_at = :available_at,"
    " lease_id = NULL, lease_boot = NULL, lease_expires_ns = NULL, leased_at = NULL WHERE seq = :seq"
)
_ERASE_TEXTS: Final = (
    "UPDATE memory_jobs SET result = NULL, error = CASE WHEN error IS NULL OR error IN (:harmless_1, :harmless_2)"
    " THEN error ELSE :erased END WHERE memory_id = :memory_id"
)
_DELETE_PENDING: Final = "DELETE FROM memory_jobs WHERE memory_id = :memory_id AND status = 'pending'"
_CANDIDATE: Final = "SELECT j.seq, j.id, j.job_type, j.memory_id, j.status, j.requeues FROM memory_jobs j"
_DEAD: Final = (
    f"{_CANDIDATE} WHERE j.status = 'dead' AND j.requeues = 0 AND (:all_kinds = 1 OR j.job_type IN ({{}}))"
    # Skip jobs that would be refused: they would stay the oldest and block the others for ever.
    " AND (j.memory_id IS NULL OR EXISTS (SELECT 1 FROM memories m WHERE m.id = j.memory_id AND m.is_deleted = 0))"
    " AND NOT EXISTS (SELECT 1 FROM memory_jobs w WHERE w.memory_id = j.memory_id AND w.job_type = j.job_type"
    "  AND w.status IN ('pending', 'leased')) ORDER BY j.failed_at, j.job_type LIMIT :limit"
)
_READABLE_BY_IDS: Final = (
    f"{_CANDIDATE} WHERE j.id IN ({{}})"
    " AND (j.memory_id IS NULL OR EXISTS (SELECT 1 FROM memories m WHERE m.id = j.memory_id AND {}))"
    " ORDER BY j.seq LIMIT :limit"
)
_REQUEUE: Final = (
    "UPDATE memory_jobs SET status = :status, attempts = 0, releases = 0, requeues = :requeues, available_at = NULL,"
    " result = NULL, failed_at = NULL, updated_at = :now WHERE seq = :seq"
)
_HAS_DEAD: Final = f"{_OF_MEMORY} j.leased_hash = :hash AND j.status = 'dead' LIMIT 1"
_HAS_EMBEDDED: Final = (
    f"{_OF_MEMORY} j.leased_hash = :hash AND j.status IN ('completed', 'dead')"
    " AND j.result ->> 'model' IS NOT DISTINCT FROM :model"
    " AND CAST(j.result ->> 'dimensions' AS bigint) IS NOT DISTINCT FROM :dimensions LIMIT 1"
)
_MEMORY_COLUMNS: Final = JobMemory.__struct_fields__
_LIVE_MEMORIES: Final = (
    f"SELECT {', '.join(f'm.{name}' for name in _MEMORY_COLUMNS)}"
    " FROM ({}) i CROSS JOIN memories m WHERE m.id = i.value AND m.is_deleted = 0"
)


def has_unfinished(tx: WriteTransaction, memory_id: str, kind: str) -> bool:
    """Return whether a job of the kind is pending or leased for the memory."""
    return tx.one(_HAS_UNFINISHED, {"memory_id": memory_id, "kind": kind}) is not None


def is_classified(tx: WriteTransaction, entity_id: str) -> bool:
    """Return whether a job that classifies the facts of the entity is pending or leased."""
    return tx.one(_CLASSIFIES, {"entity_id": entity_id}) is not None


def result_of(tx: WriteTransaction, job_id: str) -> tuple[str | None, str | None]:
    """Return the result of the job, JSON text, and the hash of the content that it was about."""
    return tx.one(_RESULT, {"id": job_id}) or (None, None)


def pending_more_than(tx: WriteTransaction, kind: str, count: int) -> bool:
    """Return whether more than ``count`` jobs of the kind are pending."""
    return tx.one(_NTH_PENDING, {"kind": kind, "count": count}) is not None


def subject(tx: WriteTransaction, memory_id: str) -> Subject:
    """Return the memory, live or deleted. Raises ``ValueError`` if there is none."""
    (row,) = tx.rows(_SUBJECT_BY_ID, {"id": memory_id})
    return Subject(*row)


def live_subject(tx: WriteTransaction, memory_id: str) -> Subject | None:
    """Return the memory if it is not deleted."""
    row = tx.one(_LIVE_SUBJECT_BY_ID, {"id": memory_id})
    return None if row is None else Subject(*row)


def live_subjects_after(tx: WriteTransaction, seq: int, limit: int) -> list[Subject]:
    """Return the next live memories after row ``seq``, in order."""
    return [Subject(*row) for row in tx.rows(_LIVE_SUBJECTS_AFTER, {"after": seq, "limit": limit})]


def job_memories(reads: Reads, memory_ids: Sequence[str]) -> dict[str, JobMemory]:
    """Return those of the memories that are not deleted, by id, as their workers receive them."""
    rows = reads.rows(_LIVE_MEMORIES.format(reads.dialect.members("ids")), {"ids": reads.dialect.listed(memory_ids)})
    found = (JobMemory(**dict(zip(_MEMORY_COLUMNS, row, strict=True))) for row in rows)
    return {memory.id: msgspec.structs.replace(memory, pinned=bool(memory.pinned)) for memory in found}


def expired(tx: WriteTransaction, boot_id: str, now_ns: int, limit: int) -> list[LostLease]:
    """Return jobs whose lease is of another incarnation of the supervisor or expired before ``now_ns``."""
    found = tx.rows(_EXPIRED, {"boot_id": boot_id, "now_ns": now_ns, "limit": limit})
    return [LostLease(*row) for row in found]


def end_lease(tx: WriteTransaction, seq: int, *, status: str, error: str, now: str, available_at: str | None) -> None:
    """Take the lease from a job whose worker exited."""
    tx.execute(_END_LEASE, {"status": status, "error": error, "now": now, "available_at": available_at, "seq": seq})


def erase_texts(tx: WriteTransaction, memory_id: str, harmless: tuple[str, str], erased: str) -> None:
    """Delete the results of the memory's jobs; errors other than the ``harmless`` ones become ``erased``."""
    first, second = harmless
    tx.execute(_ERASE_TEXTS, {"harmless_1": first, "harmless_2": second, "erased": erased, "memory_id": memory_id})


def delete_pending(tx: WriteTransaction, memory_id: str) -> None:
    tx.execute(_DELETE_PENDING, {"memory_id": memory_id})


def readable_by_ids(
    tx: WriteTransaction, job_ids: Sequence[str], read: ReadScope, limit: int
) -> list[RequeueCandidate]:
    """Return the jobs with these ids; a job whose memory the caller may not read is left out."""
    predicate, bindings = readable_in_any_scope(tx, read)
    bindings |= {"ids": tx.dialect.listed(job_ids), "limit": limit}
    rows = tx.rows(_READABLE_BY_IDS.format(tx.dialect.members("ids"), predicate), bindings)
    return [RequeueCandidate(*row) for row in rows]


def dead(tx: WriteTransaction, kinds: Sequence[str], limit: int) -> list[RequeueCandidate]:
    """Return dead jobs of these kinds (of all kinds if none is given) that can be requeued, longest dead first."""
    bindings = {"all_kinds": int(not kinds), "kinds": tx.dialect.listed(kinds), "limit": limit}
    return [RequeueCandidate(*row) for row in tx.rows(_DEAD.format(tx.dialect.members("kinds")), bindings)]


def requeue(tx: WriteTransaction, seq: int, *, status: str, requeues: int, now: str) -> None:
    """Give the job all its attempts again."""
    tx.execute(_REQUEUE, {"status": status, "requeues": requeues, "now": now, "seq": seq})


def has_dead(tx: WriteTransaction, memory_id: str, kind: str, content_hash: str) -> bool:
    """Return whether a job of the kind for this content is dead."""
    return tx.one(_HAS_DEAD, {"memory_id": memory_id, "kind": kind, "hash": content_hash}) is not None


def has_embedded(
    tx: WriteTransaction, memory_id: str, kind: str, content_hash: str, space: tuple[str, int] | None
) -> bool:
    """Return whether a job for this content has ended, completed or dead, that tried this model and width."""
    model, dimensions = space or (None, None)
    sought = {"memory_id": memory_id, "kind": kind, "hash": content_hash, "model": model, "dimensions": dimensions}
    return tx.one(_HAS_EMBEDDED, sought) is not None
