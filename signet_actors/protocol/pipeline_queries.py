"""Queries about the pipeline: its queue, its runs, and the review queue.

Part of the same union as ``protocol.searcher``. Counts cover the whole store, regardless of scope. Text is shown only
to callers that may read the memory that it came from.

Source: docs/compatibility.md "Diagnostics and pipeline status"; docs/decisions.md 14, 16, 35.
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.extraction.facts import EntityTriple
from signet_actors.operations.pipeline import DeadReport, UsageReport
from signet_actors.operations.runs import ProposalReport, RejectedReport, RunReport
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Message, Request


class KindQueue(msgspec.Struct, frozen=True):
    """The jobs of one kind by state.

    ``delayed`` of the pending ones are not due yet, the first at ``next_due_at``; ``oldest_pending_at`` is when the
    oldest of them was created. ``completed``: those that are kept. ``stale_leases`` of the leased ones are overdue.
    """

    kind: str
    pending: int = 0
    delayed: int = 0
    leased: int = 0
    completed: int = 0
    dead: int = 0
    oldest_pending_at: str | None = None
    next_due_at: str | None = None
    oldest_lease_at: str | None = None
    stale_leases: int = 0


class PipelineStatus(Message, frozen=True, tag="searcher.pipeline_status"):
    """The queue, the ten most frequent causes of dead jobs, the runs, and counters of today and of all days kept.

    Counters are named ``outcome.…``, ``reason.…``, ``turned_away.…``, ``review.…``, ``facts``, ``runs``, ``fenced`` …;
    the junk rate is the share of what was turned away in that plus ``facts``.
    """

    queues: list[KindQueue]
    dead_causes: list[DeadReport]
    runs: int
    runs_undone: int
    last_run_at: str | None
    reviews_pending: int
    today: dict[str, int]
    total: dict[str, int]
    usage_today: list[UsageReport]


class GetPipelineStatus(Request[PipelineStatus], frozen=True, tag="searcher.get_pipeline_status"):
    """Ask for the status; ``now`` is the caller's wall clock (ISO), which defines today and what is due."""

    now: str


class ProposalRow(ProposalReport, frozen=True):
    """A row of ``memory_proposals``."""

    run_id: str
    job_id: str
    memory_id: str
    created_at: str


class ReviewItem(msgspec.Struct, frozen=True):
    """A proposal with its current target; None if that does not exist or the caller may not read it."""

    proposal: ProposalRow
    current_content: str | None
    current_version: int | None


class ReviewsListed(Message, frozen=True, tag="searcher.reviews_listed"):
    """A page, oldest first; ``total`` counts the proposals in that state that the caller may read."""

    items: list[ReviewItem]
    total: int


class ListReviews(Request[ReviewsListed], frozen=True, tag="searcher.list_reviews"):
    """List the review queue. ``state``: pending, approved, rejected, or all."""

    read: ReadScope
    state: str = "pending"
    limit: int = 50
    offset: int = 0


class RunFound(Message, frozen=True, tag="searcher.run_found"):
    """The run with its proposals in order; None if it does not exist or the caller may not read its memory.

    ``entities``, ``rejected``, ``rejected_counts`` (what never became a proposal, by reason) and ``warnings`` (about
    the model's answers) are also empty when the job was purged, and while the memory is forgotten.
    """

    run: RunReport | None
    proposals: list[ProposalRow] = []
    entities: list[EntityTriple] = []
    rejected: list[RejectedReport] = []
    rejected_counts: dict[str, int] = {}
    warnings: list[str] = []


class GetRun(Request[RunFound], frozen=True, tag="searcher.get_run"):
    """Read one run by its id or its job's id."""

    id: str
    read: ReadScope


class RunsListed(Message, frozen=True, tag="searcher.runs_listed"):
    """A page, newest first."""

    runs: list[RunReport]


class ListRuns(Request[RunsListed], frozen=True, tag="searcher.list_runs"):
    """List the runs over memories that the caller may read, or over one of them."""

    read: ReadScope
    memory_id: str | None = None
    limit: int = 50
    offset: int = 0


PipelineQuery = GetPipelineStatus | ListReviews | GetRun | ListRuns
PipelineAnswer = PipelineStatus | ReviewsListed | RunFound | RunsListed
