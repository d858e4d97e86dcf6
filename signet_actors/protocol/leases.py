"""Leases of durable jobs, in the writer's mailbox.

The id of a lease is a fencing token: a report with the id of an expired lease writes nothing.
Source: docs/pipeline.md.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from signet_actors.domain.jobs import PoisonJobs
from signet_actors.protocol.message import Message, Request
from signet_actors.protocol.pipeline import JobMemory


class LeasedJob(msgspec.Struct, frozen=True):
    """A leased job; ``attempt`` counts from 1, ``payload`` is JSON text. ``subject``: its memory at the lease."""

    id: str
    kind: str
    lease_id: str
    attempt: int
    max_attempts: int
    memory_id: str | None = None
    payload: str | None = None
    subject: JobMemory | None = None


class JobsLeased(Message, frozen=True, tag="writer.jobs_leased"):
    """The jobs leased to the caller, perhaps none, until ``expires_ns`` (monotonic) unless renewed."""

    jobs: list[LeasedJob]
    expires_ns: int


class LeaseJobs(Request[JobsLeased], frozen=True, tag="writer.lease_jobs"):
    """Lease up to ``limit`` jobs of these kinds for ``lease_ms``, in the order in which they became ready.

    A job whose memory no longer exists is completed instead.
    ``holding`` lists the leases of these kinds that the caller knows of; None = not stated. Leases that it holds
    without knowing (the reply was lost) are returned first, under the same lease and in the same attempt, whatever the
    limit.
    """

    kinds: tuple[str, ...]
    limit: int
    lease_ms: int
    holding: tuple[str, ...] | None = None
    poison_jobs: PoisonJobs = PoisonJobs.INCLUDED


class LeaseRenewed(Message, frozen=True, tag="writer.lease_renewed"):
    """The lease now lasts until ``expires_ns`` (monotonic)."""

    expires_ns: int


class RenewLease(Request[LeaseRenewed], frozen=True, tag="writer.renew_lease"):
    """Keep the lease for ``lease_ms`` from now, because the job is still in progress."""

    job_id: str
    lease_id: str
    lease_ms: int


class JobEnded(Message, frozen=True, tag="writer.job_ended"):
    """The job's state after the report: completed, pending (to be retried) or dead."""

    state: str


class JobReport(Request[JobEnded], frozen=True, kw_only=True):
    """What a worker found. It is stored in the transaction that completes its job, of the declared ``kind``."""

    kind: ClassVar[str]

    job_id: str
    lease_id: str


class CompleteJob(Request[JobEnded], frozen=True, tag="writer.complete_job"):
    """The job is done; ``result`` is JSON text."""

    job_id: str
    lease_id: str
    result: str | None = None


class FailJob(Request[JobEnded], frozen=True, tag="writer.fail_job"):
    """The attempt failed, for the reason in ``error``; ``code`` is that of the analytics, if there is one."""

    job_id: str
    lease_id: str
    error: str
    code: str | None = None


class LeasesReaped(Message, frozen=True, tag="writer.leases_reaped"):
    """The numbers of expired leases that returned to pending and of jobs that became dead (docs/decisions.md 11)."""

    requeued: int
    dead: int


class ReapLeases(Request[LeasesReaped], frozen=True, tag="writer.reap_leases"):
    """Return expired leases."""

    limit: int = 500


class HighWaterMark(Message, frozen=True, tag="writer.high_water_mark"):
    """The mark and the suspected jump that were stored before this request (ISO); see ``AdvanceHighWaterMark``."""

    previous: str | None
    suspected_jump_since: str | None


class AdvanceHighWaterMark(Request[HighWaterMark], frozen=True, tag="writer.advance_high_water_mark"):
    """Record the retention actor's wall clock; a jump is recorded and must be confirmed (docs/reliability.md R16).

    ``now`` ISO; ``suspected_jump_since`` is stored as given (None clears it).
    """

    now: str
    suspected_jump_since: str | None = None
    accept: bool = True
