"""Statements about leased jobs of ``memory_jobs``, and about those that may be leased.

A poison job has the error ``poison_error``: its worker exited while it held the lease. It always has a due time.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from signet_actors.store.engine import Reads, WriteTransaction
from signet_actors.store.writes.jobs import LOST_LEASE_COLUMNS, LostLease


class ReadyJob(NamedTuple):
    """A job that may be leased. ``since``: when it became due, or was created if it has no due time or no real one."""

    since: str
    seq: int
    id: str
    memory_id: str | None
    payload: str | None
    attempts: int
    max_attempts: int
    is_poison: int


class ActiveLease(NamedTuple):
    """The job that a lease holds."""

    seq: int
    attempts: int
    max_attempts: int
    kind: str
    memory_id: str | None
    leased_hash: str | None
    releases: int
    is_poison: bool


class HeldJob(NamedTuple):
    """A leased job as it is delivered again."""

    seq: int
    id: str
    kind: str
    attempts: int
    max_attempts: int
    memory_id: str | None
    payload: str | None


class Bounds(NamedTuple):
    """Which jobs are ready at ``now``: poison jobs if ``poison``, the other jobs if ``others``.

    A job that is due after ``never`` is ready too: its due time is not real, because the wall clock was set back.
    """

    now: str
    never: str
    poison_error: str
    others: bool
    poison: bool

    def bindings(self, kind: str, limit: int) -> dict[str, Any]:
        """Return the values of a statement about ready jobs of the kind."""
        return {
            "now": self.now,
            "never": self.never,
            "poison_error": self.poison_error,
            "others": int(self.others),
            "poison": int(self.poison),
            "kind": kind,
            "limit": limit,
        }


_PENDING: Final = (
    "j.status = 'pending' AND j.job_type = :kind AND j.attempts < j.max_attempts"
    " AND (:poison = 1 OR j.error IS DISTINCT FROM :poison_error)"
    " AND (:others = 1 OR j.error IS NOT DISTINCT FROM :poison_error)"
)
_ROW: Final = (
    "j.seq, j.id, j.memory_id, j.payload, j.attempts, j.max_attempts, j.error IS NOT DISTINCT FROM :poison_error"
)
_READY = f"""
    SELECT * FROM (SELECT j.created_at AS since, {_ROW} FROM memory_jobs j
                   WHERE :others = 1 AND {_PENDING} AND j.available_at IS NULL
                   ORDER BY j.seq {{}} LIMIT :limit) AS waiting
    UNION ALL
    SELECT * FROM (SELECT j.available_at AS since, {_ROW} FROM memory_jobs j
                   WHERE {_PENDING} AND j.available_at IS NOT NULL AND j.available_at <= :now
                   ORDER BY j.available_at LIMIT :limit) AS due
    UNION ALL
    SELECT * FROM (SELECT j.created_at AS since, {_ROW} FROM memory_jobs j
                   WHERE {_PENDING} AND j.available_at IS NOT NULL AND j.available_at > :never
                   ORDER BY j.available_at LIMIT :limit) AS ahead
"""
_NEXT_DUE: Final = (
    "SELECT min(j.available_at) FROM memory_jobs j"
    " WHERE j.status = 'pending' AND j.job_type = :kind AND j.available_at IS NOT NULL AND j.available_at > :now"
    " AND (:poison = 1 OR j.error IS DISTINCT FROM :poison_error)"
    " AND (:others = 1 OR j.error IS NOT DISTINCT FROM :poison_error)"
)
_LEASE: Final = (
    "UPDATE memory_jobs SET status = :status, attempts = :attempts, lease_id = :lease_id, lease_boot = :boot_id,"
    " lease_expires_ns = :expires_ns, leased_at = :now, updated_at = :now, available_at = NULL,"
    " leased_version = :version, leased_hash = :hash, result = :result WHERE seq = :seq"
)
_RENEW: Final = "UPDATE memory_jobs SET lease_expires_ns = :expires_ns WHERE seq = :seq"
_COMPLETE: Final = (
    "UPDATE memory_jobs SET status = :status, result = :result, error = NULL, completed_at = :now, updated_at = :now,"
    " lease_id = NULL, lease_boot = NULL, lease_expires_ns = NULL WHERE seq = :seq"
)
_ACTIVE: Final = (
    "SELECT j.seq, j.attempts, j.max_attempts, j.job_type, j.memory_id, j.leased_hash, j.releases,"
    " j.error IS NOT DISTINCT FROM :poison_error FROM memory_jobs j"
    " WHERE j.id = :id AND j.status = 'leased' AND j.lease_id = :lease_id AND j.lease_boot = :boot_id"
    " AND j.lease_expires_ns > :now_ns"
)
# SQLite would read all jobs in order of `seq`; of the sum it knows no order and reads the index of leased jobs.
_HELD_BY: Final = (
    "FROM memory_jobs j WHERE j.status = 'leased' AND j.lease_boot = :boot_id"
    " AND substr(j.lease_id, 1, :length) = :prefix ORDER BY j.seq + 0"
)
_LOST_OF: Final = f"SELECT j.lease_id, {LOST_LEASE_COLUMNS} {_HELD_BY}"
_HELD_OF: Final = (
    f"SELECT j.lease_id, j.seq, j.id, j.job_type, j.attempts, j.max_attempts, j.memory_id, j.payload {_HELD_BY}"
)
_POISON_JOB_LEASED: Final = "SELECT 1 FROM memory_jobs j WHERE j.status = 'leased' AND j.error = :poison_error LIMIT 1"
_PAYLOAD: Final = "SELECT j.payload FROM memory_jobs j WHERE j.seq = :seq"
_SET_MEMORY: Final = "UPDATE memory_jobs SET memory_id = :memory_id WHERE seq = :seq"
_DROP: Final = (
    "UPDATE memory_jobs SET status = :status, result = :result, completed_at = :now, updated_at = :now,"
    " available_at = NULL WHERE seq = :seq"
)
_RETURN: Final = (
    "UPDATE memory_jobs SET status = :status, error = :error, failed_at = coalesce(:failed_at, failed_at),"
    " updated_at = :now, available_at = :available_at, attempts = :attempts, releases = :releases,"
    " lease_id = NULL, lease_boot = NULL, lease_expires_ns = NULL, leased_at = NULL WHERE seq = :seq"
)


def ready(reads: Reads, kind: str, bounds: Bounds, limit: int, *, newest_first: bool = False) -> list[ReadyJob]:
    """Return jobs of the kind that may be leased: at most ``limit`` without and with a due time each.

    Those without one are the oldest, or the newest. The result has no order.
    """
    found = reads.rows(_READY.format("DESC" if newest_first else "ASC"), bounds.bindings(kind, limit))
    return [ReadyJob(*row) for row in found]


def is_any_ready(reads: Reads, kind: str, bounds: Bounds) -> bool:
    return reads.one(_READY.format("ASC"), bounds.bindings(kind, 1)) is not None


def next_due(reads: Reads, kind: str, now: str, poison_error: str, *, others: bool, poison: bool) -> str | None:
    """Return when the first delayed job of the kind becomes due after ``now``, or None if there is none."""
    bindings = {"kind": kind, "now": now, "poison_error": poison_error, "others": int(others), "poison": int(poison)}
    due: str | None = reads.value(_NEXT_DUE, bindings)
    return due


def is_poison_job_leased(reads: Reads, poison_error: str) -> bool:
    return reads.one(_POISON_JOB_LEASED, {"poison_error": poison_error}) is not None


def lease(
    tx: WriteTransaction,
    seq: int,
    *,
    status: str,
    attempts: int,
    lease_id: str,
    boot_id: str,
    expires_ns: int,
    now: str,
    version: int | None,
    content_hash: str | None,
    result: str | None,
) -> None:
    """Hand the job out; ``version`` and ``content_hash`` are of the memory as it is handed out."""
    tx.execute(
        _LEASE,
        {
            "status": status,
            "attempts": attempts,
            "lease_id": lease_id,
            "boot_id": boot_id,
            "expires_ns": expires_ns,
            "now": now,
            "version": version,
            "hash": content_hash,
            "result": result,
            "seq": seq,
        },
    )


def renew(tx: WriteTransaction, seq: int, expires_ns: int) -> None:
    tx.execute(_RENEW, {"expires_ns": expires_ns, "seq": seq})


def complete(tx: WriteTransaction, seq: int, *, status: str, result: str | None, now: str) -> None:
    """End the leased job with its result."""
    tx.execute(_COMPLETE, {"status": status, "result": result, "now": now, "seq": seq})


def payload_of(tx: WriteTransaction, seq: int) -> str:
    """Return the job's payload, JSON text. Raises ValueError if it has none."""
    payload: str | None = tx.value(_PAYLOAD, {"seq": seq})
    if payload is None:
        raise ValueError("the job has no payload")
    return payload


def set_memory(tx: WriteTransaction, seq: int, memory_id: str) -> None:
    """Make a memory the subject of the leased job, which had none."""
    tx.execute(_SET_MEMORY, {"memory_id": memory_id, "seq": seq})


def drop(tx: WriteTransaction, seq: int, *, status: str, result: str, now: str) -> None:
    """End the pending job without a lease."""
    tx.execute(_DROP, {"status": status, "result": result, "now": now, "seq": seq})


def give_back(
    tx: WriteTransaction,
    seq: int,
    *,
    status: str,
    error: str,
    failed_at: str | None,
    now: str,
    available_at: str | None,
    attempts: int,
    releases: int,
) -> None:
    """Take the lease from the job; ``failed_at`` None keeps when it failed last."""
    tx.execute(
        _RETURN,
        {
            "status": status,
            "error": error,
            "failed_at": failed_at,
            "now": now,
            "available_at": available_at,
            "attempts": attempts,
            "releases": releases,
            "seq": seq,
        },
    )


def active(
    tx: WriteTransaction, job_id: str, lease_id: str, boot_id: str, now_ns: int, poison_error: str
) -> ActiveLease | None:
    """Return the job that this lease holds; None if the lease has expired or was lost."""
    row = tx.one(
        _ACTIVE,
        {"poison_error": poison_error, "id": job_id, "lease_id": lease_id, "boot_id": boot_id, "now_ns": now_ns},
    )
    return None if row is None else ActiveLease(*row)


def lost_of(tx: WriteTransaction, boot_id: str, process: str) -> list[tuple[str, LostLease]]:
    """Return ``(lease id, job)`` of every job that any incarnation of this process holds."""
    return [(lease_id, LostLease(*row)) for lease_id, *row in _held_by(tx, _LOST_OF, boot_id, process)]


def held_of(tx: WriteTransaction, boot_id: str, process: str) -> list[tuple[str, HeldJob]]:
    """Return ``(lease id, job)`` of every job that any incarnation of this process holds."""
    return [(lease_id, HeldJob(*row)) for lease_id, *row in _held_by(tx, _HELD_OF, boot_id, process)]


def _held_by(tx: WriteTransaction, sql: str, boot_id: str, process: str) -> list[tuple[Any, ...]]:
    return tx.rows(sql, {"boot_id": boot_id, "length": len(process) + 1, "prefix": f"{process}."})
