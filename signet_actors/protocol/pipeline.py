"""The pipeline's part of the writer's mailbox: jobs, proposals, reviews, budgets, hints and vectors.

Part of the same union as ``protocol.writer``. Each report of a worker carries the lease of its job, which is checked in
the transaction of the report: a report with a lost lease changes nothing and is answered with ``Failure(LEASE_LOST)``.

Source: memory-pipeline.txt "Worker Model", "Controlled Writes"; docs/decisions.md 11-18; docs/reliability.md R6-R8.
"""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.domain.extraction.facts import EntityTriple, RejectedFact
from signet_actors.domain.extraction.proposals import Proposal
from signet_actors.domain.jobs import PoisonJobs
from signet_actors.operations.requeue import NotRequeued
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import KeyedRequest, Message, Principal, Request

REJECTED_COUNTER: Final = "turned_away."
"""What the names of the stored counters of rejected facts begin with, before the reason; a stored name stays."""


class JobMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """The memory of a job at its lease. ``embedding_model``: that of its current vector, None without one."""

    id: str
    content: str
    content_hash: str
    version: int
    type: str
    importance: float
    agent_id: str
    visibility: str
    created_at: str
    project: str | None = None
    scope: str | None = None
    who: str | None = None
    source_type: str | None = None
    source_id: str | None = None
    session_id: str | None = None
    pinned: bool = False
    embedding_model: str | None = None


class JobsReady(Message, frozen=True, tag="writer.jobs_ready"):
    """The kinds of which a job is ready, as a hint; empty when the wait ended without one."""

    kinds: tuple[str, ...] = ()


class WatchJobs(Request[JobsReady], frozen=True, tag="writer.watch_jobs"):
    """Wait until a job of these kinds can be leased, at most ``wait_ms``.

    Replied to as soon as a commit makes one ready or a delayed one becomes due. Nothing is written or stored for it.
    """

    kinds: tuple[str, ...]
    wait_ms: int = 30_000
    poison_jobs: PoisonJobs = PoisonJobs.INCLUDED


class HeldLease(msgspec.Struct, frozen=True):
    """A lease that the sender holds."""

    job_id: str
    lease_id: str


class JobsReleased(Message, frozen=True, tag="writer.jobs_released"):
    """``released`` jobs are pending again and got their attempt back; ``lost`` leases were no longer held."""

    released: int
    lost: int


class ReleaseJobs(Request[JobsReleased], frozen=True, tag="writer.release_jobs"):
    """Give leased jobs back without spending an attempt, because what they need is unavailable (docs/decisions.md 14).

    Each waits longer the more often in a row it was given back, so that an unreliable provider is not called in a loop.
    ``code``: as of ``FailJob``.
    """

    leases: tuple[HeldLease, ...]
    reason: str
    code: str | None = None


class JobsRequeued(Message, frozen=True, tag="writer.jobs_requeued"):
    """The dead jobs that were requeued with all their attempts, and those that were not; ``more`` may be left."""

    requeued: list[str]
    refused: list[NotRequeued]
    more: bool = False


class RequeueJobs(KeyedRequest[JobsRequeued], frozen=True, tag="writer.requeue_jobs"):
    """Requeue dead jobs on request of a user: those named, or up to ``limit`` of ``kinds`` (none = all), oldest first.

    A job that is not named is requeued only once, so that a job that kills its worker does not come back forever. A
    repetition that is too early or too frequent (``memory.pipelineV2.repair``) changes nothing:
    ``Failure(RATE_LIMITED)``. A named job of a memory outside ``read`` is refused as ``not_found``.
    """

    ids: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    limit: int = 50
    principal: Principal = Principal()
    read: ReadScope = ReadScope()


class JobsReconciled(Message, frozen=True, tag="writer.jobs_reconciled"):
    """``enqueued`` memories lacked a job; ``next`` is the ``after`` of the next step, None at the end.

    ``next`` is the same ``after`` again if nothing was checked, because many embed jobs are pending.

    ``space`` is the ``model:dimensions`` that vectors were compared with, empty if there are to be no vectors.
    """

    enqueued: int
    next: int | None
    space: str = ""


class ReconcileJobs(Request[JobsReconciled], frozen=True, tag="writer.reconcile_jobs"):
    """Check up to ``limit`` memories after ``after`` (a ``seq``) and enqueue the jobs that they lack."""

    after: int = 0
    limit: int = 500


class AttributesSettled(Message, frozen=True, tag="writer.attributes_settled"):
    """``changed`` attributes got another status or were proposed for one; ``next`` is None after the last aspect."""

    changed: int
    next: str | None


class SettleAttributes(Request[AttributesSettled], frozen=True, tag="writer.settle_attributes"):
    """Compare the attributes of the next aspects of the graph after this one, in the order of their ids."""

    after: str = ""
    limit: int = 50


class AppliedProposal(msgspec.Struct, frozen=True, omit_defaults=True):
    """The outcome of one proposal. ``memory_id`` is the memory that was created, changed, or found to say the same."""

    ordinal: int
    outcome: str
    reason: str | None = None
    memory_id: str | None = None
    version: int | None = None


class ProposalsApplied(Message, frozen=True, tag="writer.proposals_applied"):
    """The job is completed and all of this is on disk.

    ``mode`` is the one that was applied. ``run_id`` is None if nothing was recorded because the memory no longer
    exists.
    """

    run_id: str | None
    mode: str
    results: list[AppliedProposal]


class ApplyProposals(Request[ProposalsApplied], frozen=True, tag="writer.apply_proposals"):
    """Write the results of one extract job and complete it, in one transaction.

    At most 20 proposals. ``vectors`` holds for each proposal the index of the raw frame with the embedding of its fact,
    -1 without one; empty = none at all. ``token_codes`` holds the codes of each frame. ``shown`` holds for each
    proposal the memories that the model saw; empty = none.
    ``mode`` is a name of ``domain.extraction.gates.PipelineMode``. The writer's own configuration may be stricter,
    never more permissive. ``mode`` and ``autonomous_frozen`` are those at the start of the run.
    ``repaired`` and ``dropped`` are the parser's counts. ``rejected_counts`` counts by reason what never became a
    proposal (echoes, questions, boilerplate); ``rejected`` are the facts among it, and those that no model decided on.
    """

    job_id: str
    lease_id: str
    run_id: str
    mode: str
    provider: str
    model: str
    proposals: tuple[Proposal, ...]
    entities: tuple[EntityTriple, ...] = ()
    warnings: tuple[str, ...] = ()
    shown: tuple[tuple[str, ...], ...] = ()
    vectors: tuple[int, ...] = ()
    token_codes: tuple[bytes | None, ...] = ()
    vector_model: str = ""
    dimensions: int = 0
    repaired: int = 0
    dropped: int = 0
    rejected_counts: dict[str, int] = {}
    rejected: tuple[RejectedFact, ...] = ()
    autonomous_frozen: bool = False


class HintsStored(Message, frozen=True, tag="writer.hints_stored"):
    """The job is completed; its memory now has ``count`` hints, 0 if its content changed meanwhile."""

    count: int


class StoreHints(Request[HintsStored], frozen=True, tag="writer.store_hints"):
    """Replace the hints of a prospective_index job's memory and complete the job."""

    job_id: str
    lease_id: str
    hints: tuple[str, ...]


class VectorStored(Message, frozen=True, tag="writer.vector_stored"):
    """The job is completed. ``stored`` is false if the memory is missing or has changed, or the frame is unusable."""

    stored: bool


class StoreVector(Request[VectorStored], frozen=True, tag="writer.store_vector"):
    """Store the vector (frame 0) of the text with ``content_hash``, and complete the embed job."""

    job_id: str
    lease_id: str
    content_hash: str
    model: str
    dimensions: int
    token_codes: bytes | None = None


class UnembeddedText(msgspec.Struct, frozen=True):
    """A memory with a vector of its first model and none of its second. ``content`` is cut."""

    memory_id: str
    content: str
    content_hash: str


class UnembeddedFound(Message, frozen=True, tag="writer.unembedded_found"):
    """Memories without a second vector; ``next`` is ``after`` of the next request, ``more``: others may be left."""

    texts: list[UnembeddedText]
    next: int
    more: bool


class FindUnembedded(Request[UnembeddedFound], frozen=True, tag="writer.find_unembedded"):
    """Find memories that have no vector of the second model, whose first one follows ``after`` (``embeddings.seq``)."""

    after: int
    limit: int


class SecondVector(msgspec.Struct, frozen=True):
    """A vector in the frame with the same place. ``content_hash`` is that of the embedded text."""

    memory_id: str
    content_hash: str
    token_codes: bytes | None


class SecondVectorsStored(Message, frozen=True, tag="writer.second_vectors_stored"):
    """How many vectors were stored; those of memories that are gone or have changed were not."""

    stored: int


class StoreSecondVectors(Request[SecondVectorsStored], frozen=True, tag="writer.store_second_vectors"):
    """Store vectors of the second model beside the first ones of their memories. Repeating it changes nothing."""

    vectors: list[SecondVector]


class ReviewDecided(Message, frozen=True, tag="writer.review_decided", omit_defaults=True):
    """Outcome of a review.

    ``status``: approved, rejected (now or before, see ``already``), not_found, not_reviewable, decided_otherwise,
    content_gone, autonomous_denied (the request did not come from an operator), source_gone (the memory that it came
    from was forgotten).
    Or why it could not be applied: version_conflict, target_gone, pinned, other_scope, own_source, constraint,
    duplicate_content, unchanged, frozen. Then it stays in the queue.
    ``memory_id`` is the proposal's target, or the memory that an addition created.
    """

    id: str
    status: str
    already: bool = False
    memory_id: str | None = None
    current_version: int | None = None
    new_version: int | None = None


class ApproveProposal(KeyedRequest[ReviewDecided], frozen=True, tag="writer.approve_proposal"):
    """Apply a proposal from the review queue, if its target is unchanged since the model saw it.

    ``content``: the text to store instead of the proposed one.
    """

    id: str
    principal: Principal
    reason: str = ""
    read: ReadScope = ReadScope()
    content: str | None = None


class RejectProposal(KeyedRequest[ReviewDecided], frozen=True, tag="writer.reject_proposal"):
    """Reject a proposal from the review queue for good."""

    id: str
    principal: Principal
    reason: str = ""
    read: ReadScope = ReadScope()


class CallsReserved(Message, frozen=True, tag="writer.calls_reserved"):
    """Whether the calls may be made.

    ``calls`` and ``tokens`` are the provider's totals of the day, these calls included if granted. ``day`` (UTC) is to
    be sent back with ``RecordUsage``.
    """

    granted: bool
    day: str
    calls: int
    tokens: int


class ReserveCalls(Request[CallsReserved], frozen=True, tag="writer.reserve_calls"):
    """Count calls (and their maximum tokens) against the day's limits before they are made; None = no limit.

    Calls reserved by a process that crashes stay counted: usage may be overestimated, never underestimated.
    """

    provider: str
    calls: int = 1
    tokens: int = 0
    call_limit: int | None = None
    token_limit: int | None = None
    model: str = ""


class UsageRecorded(Message, frozen=True, tag="writer.usage_recorded"):
    """The usage is on disk."""


class RecordUsage(Request[UsageRecorded], frozen=True, tag="writer.record_usage"):
    """The actual usage of reserved calls.

    ``reserved_tokens`` is what was reserved for them, ``unused_calls`` were never made, ``calls`` were made without a
    reservation. ``failures`` of all calls failed, and ``took_ms`` is the time of them. ``day`` is UTC, ``2026-01-31``.
    """

    provider: str
    model: str
    day: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost_microusd: int = 0
    reserved_tokens: int = 0
    unused_calls: int = 0
    calls: int = 0
    failures: int = 0
    took_ms: int = 0


SecondVectorCommand = FindUnembedded | StoreSecondVectors
