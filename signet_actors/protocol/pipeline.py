"""The writer's mailbox, as far as the pipeline goes: jobs, proposals, reviews, budgets, hints and vectors.

Part of the same union as ``protocol.writer``. Whatever a worker reports carries the lease that it holds, which is
checked in the transaction of the report: the report of a worker that lost its lease changes nothing and is answered
``Failure(LEASE_LOST)``.

Source: memory-pipeline.txt "Worker Model", "Controlled Writes"; docs/decisions.md 11-18; docs/reliability.md R6-R8.
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.extraction.facts import EntityTriple
from signet_actors.domain.extraction.proposals import Proposal
from signet_actors.domain.jobs import PoisonCandidates
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Idempotency, Message, Principal, Request


class JobMemory(msgspec.Struct, frozen=True, omit_defaults=True):
    """The memory that a job is about, as it was when the job was handed out.

    ``embedding_model`` is the model of its present vector, None where it has none.
    """

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
    """The kinds of which a job may be leased now; none when the wait was over, or the writer could hold it no longer.

    A hint: somebody else may be faster.
    """

    kinds: tuple[str, ...] = ()


class WatchJobs(Request[JobsReady], frozen=True, tag="writer.watch_jobs"):
    """Wait until a job of these kinds may be leased, at most ``wait_ms``.

    Answered as soon as a commit makes one ready or a delayed one becomes due. Nothing is written or kept for it.
    """

    kinds: tuple[str, ...]
    wait_ms: int = 30_000
    suspects: PoisonCandidates = PoisonCandidates.INCLUDED


class HeldLease(msgspec.Struct, frozen=True):
    """A job in the sender's hands."""

    job_id: str
    lease_id: str


class JobsReleased(Message, frozen=True, tag="writer.jobs_released"):
    """So many wait again with their attempt given back; ``lost`` leases were not held any more."""

    released: int
    lost: int


class ReleaseJobs(Request[JobsReleased], frozen=True, tag="writer.release_jobs"):
    """Give leased jobs back without an attempt spent, because what they need is away (docs/decisions.md 14).

    Each waits longer the more often it was given back in a row, so that a provider that comes and goes is not asked in
    circles.
    """

    leases: tuple[HeldLease, ...]
    reason: str


class RequeueRefused(msgspec.Struct, frozen=True):
    """``reason``: not_found, not_dead, requeued_before, memory_gone, already_waiting."""

    job_id: str
    reason: str


class JobsRequeued(Message, frozen=True, tag="writer.jobs_requeued"):
    """The dead jobs that have all their attempts again, and those that have not; ``more`` may be left."""

    requeued: list[str]
    refused: list[RequeueRefused]
    more: bool = False


class RequeueJobs(Request[JobsRequeued], frozen=True, tag="writer.requeue_jobs"):
    """Revive dead jobs at a person's word: those named, or up to ``limit`` of ``kinds`` (none = all), oldest first.

    Without being named a job is revived once only, so that what kills its worker cannot be revived for ever. Asked too
    soon again, or too often (``memory.pipelineV2.repair``), nothing is: ``Failure(RATE_LIMITED)``.
    """

    ids: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    limit: int = 50
    principal: Principal = Principal()
    idempotency: Idempotency | None = None


class JobsReconciled(Message, frozen=True, tag="writer.jobs_reconciled"):
    """``enqueued`` memories had no job that they should have; ``next`` is the ``after`` of the next step, None at the
    end. ``space`` is the ``model:dimensions`` that vectors were held against, empty where there are to be none."""

    enqueued: int
    next: int | None
    space: str = ""


class ReconcileJobs(Request[JobsReconciled], frozen=True, tag="writer.reconcile_jobs"):
    """Look at up to ``limit`` memories behind ``after`` (a ``seq``): each that should have a job and has none gets
    one."""

    after: int = 0
    limit: int = 500


class AppliedProposal(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of one proposal. ``memory_id`` is the memory that was made, changed, or found to say the same."""

    ordinal: int
    outcome: str
    reason: str | None = None
    memory_id: str | None = None
    version: int | None = None


class ProposalsApplied(Message, frozen=True, tag="writer.proposals_applied"):
    """The job is completed and all of this is on disk. ``mode`` is the one that held; ``run_id`` None when nothing was
    recorded, because the memory is gone."""

    run_id: str | None
    mode: str
    results: list[AppliedProposal]


class ApplyProposals(Request[ProposalsApplied], frozen=True, tag="writer.apply_proposals"):
    """Write what one extract job came to, and complete it, in one transaction.

    At most 20 proposals. ``vectors`` holds for each proposal the index of the raw frame with the embedding of its fact,
    -1 where there is none; empty = none at all. ``mode`` is a name of ``domain.extraction.gates.PipelineMode``; the
    writer's own configuration may be stricter, never more permissive. ``repaired`` and ``dropped`` are the parser's
    counts, ``turned_away`` counts by reason what never became a proposal (echoes, questions, boilerplate). ``shown``
    holds for each proposal the memories that the model had before it when it gave its reason; empty = none at all.
    ``mode`` and ``autonomous_frozen`` are of the moment at which the run began.
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
    vector_model: str = ""
    dimensions: int = 0
    repaired: int = 0
    dropped: int = 0
    turned_away: dict[str, int] = {}
    autonomous_frozen: bool = False


class HintsStored(Message, frozen=True, tag="writer.hints_stored"):
    """The job is completed; ``count`` hints belong to its memory now, 0 when that says something else meanwhile."""

    count: int


class StoreHints(Request[HintsStored], frozen=True, tag="writer.store_hints"):
    """Replace the hints of a prospective_index job's memory and complete the job."""

    job_id: str
    lease_id: str
    hints: tuple[str, ...]


class VectorStored(Message, frozen=True, tag="writer.vector_stored"):
    """The job is completed. ``stored`` is false when the memory is gone, says something else, or the frame was
    unusable."""

    stored: bool


class StoreVector(Request[VectorStored], frozen=True, tag="writer.store_vector"):
    """Give an embed job's memory its vector (frame 0) and complete the job.

    ``content_hash`` is of what was embedded.
    """

    job_id: str
    lease_id: str
    content_hash: str
    model: str
    dimensions: int


class ReviewDecided(Message, frozen=True, tag="writer.review_decided", omit_defaults=True):
    """Outcome of a review.

    ``status``: approved, rejected (now or before, see ``already``), not_found, not_reviewable, decided_otherwise,
    content_gone, autonomous_denied (no operator asked), source_gone (the memory that it came from is forgotten), or why
    it could not be carried out (version_conflict, target_gone, pinned, other_scope, own_source, constraint,
    duplicate_content, unchanged, frozen): it waits on then. ``memory_id`` is the proposal's target, or the memory that
    an addition became.
    """

    id: str
    status: str
    already: bool = False
    memory_id: str | None = None
    current_version: int | None = None
    new_version: int | None = None


class ApproveProposal(Request[ReviewDecided], frozen=True, tag="writer.approve_proposal"):
    """Apply a proposal that waits for a person, if its target is still what the model saw."""

    id: str
    principal: Principal
    reason: str = ""
    read: ReadScope = ReadScope()
    idempotency: Idempotency | None = None


class RejectProposal(Request[ReviewDecided], frozen=True, tag="writer.reject_proposal"):
    """Put a proposal that waits for a person aside for good."""

    id: str
    principal: Principal
    reason: str = ""
    read: ReadScope = ReadScope()
    idempotency: Idempotency | None = None


class UndoneProposal(msgspec.Struct, frozen=True, omit_defaults=True):
    """``status``: undone, or kept with the ``reason``: changed_since, remembered_since, gone, recovered_since,
    duplicate_content_hash, retention_expired, history_purged, approved_by_a_person."""

    ordinal: int
    action: str
    status: str
    memory_id: str | None = None
    reason: str | None = None


class RunUndone(Message, frozen=True, tag="writer.run_undone", omit_defaults=True):
    """``status``: undone, already_undone, not_found. One result for each proposal that had changed something;
    ``reviews_closed`` others waited for a person and do so no more."""

    run_id: str
    status: str
    results: list[UndoneProposal] = []
    reviews_closed: int = 0


class UndoRun(Request[RunUndone], frozen=True, tag="writer.undo_run"):
    """Take back what a run changed and nobody has changed since, and close its reviews that wait."""

    run_id: str
    principal: Principal
    read: ReadScope = ReadScope()
    idempotency: Idempotency | None = None


class CallsReserved(Message, frozen=True, tag="writer.calls_reserved"):
    """Whether the calls may be made; ``calls`` and ``tokens`` are the day's sums for the provider, these included where
    granted. ``day`` (UTC) goes back with ``RecordUsage``."""

    granted: bool
    day: str
    calls: int
    tokens: int


class ReserveCalls(Request[CallsReserved], frozen=True, tag="writer.reserve_calls"):
    """Count calls (and what they may cost in tokens) against the day's caps before they are made; None = no cap.

    Reserved by a process that dies they stay counted: a cap may be kept too well, never broken.
    """

    provider: str
    calls: int = 1
    tokens: int = 0
    call_limit: int | None = None
    token_limit: int | None = None
    model: str = ""


class UsageRecorded(Message, frozen=True, tag="writer.usage_recorded"):
    """It is on disk."""


class RecordUsage(Request[UsageRecorded], frozen=True, tag="writer.record_usage"):
    """What reserved calls really took. ``reserved_tokens`` is what the reservation had put aside for them,
    ``unused_calls`` were never made, ``calls`` were made without a reservation. ``day`` is UTC, ``2026-01-31``."""

    provider: str
    model: str
    day: str
    tokens_in: int = 0
    tokens_out: int = 0
    cost_microusd: int = 0
    reserved_tokens: int = 0
    unused_calls: int = 0
    calls: int = 0


PipelineCommand = (
    WatchJobs
    | ReleaseJobs
    | RequeueJobs
    | ReconcileJobs
    | ApplyProposals
    | StoreHints
    | StoreVector
    | ApproveProposal
    | RejectProposal
    | UndoRun
    | ReserveCalls
    | RecordUsage
)
PipelineReply = (
    JobsReady
    | JobsReleased
    | JobsRequeued
    | JobsReconciled
    | ProposalsApplied
    | HintsStored
    | VectorStored
    | ReviewDecided
    | RunUndone
    | CallsReserved
    | UsageRecorded
)
