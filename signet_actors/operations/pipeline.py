"""Public bodies of the pipeline: its status, its runs, and the requeueing of dead jobs.

``workers``, ``queues``, ``diagnostics``, ``latency``, ``errorSummary``, ``mode``, ``feedback``, ``traversal`` and
``predictor`` are the reference's; the rest of the status is ours. What this daemon does not have is reported as
``running: false`` or null, never as an invented number.

Source: docs/compatibility.md "Diagnostics and pipeline status"; memory-pipeline.txt "Worker Model", "Aspect Feedback";
docs/decisions.md 14, 16, 18.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class WorkerState(msgspec.Struct, frozen=True):
    """Whether a worker does this work now."""

    running: bool


class QueueCounts(msgspec.Struct, frozen=True):
    """Jobs of a queue by state.

    ``failed`` is always 0: a failed job waits for its next attempt or is dead.
    """

    pending: int
    leased: int
    completed: int
    dead: int
    failed: int = 0


class Queues(msgspec.Struct, frozen=True):
    """``summary`` counts the jobs that summarise sessions, ``memory`` all others; null if they could not be counted."""

    memory: QueueCounts | None
    summary: QueueCounts | None


class KindReport(msgspec.Struct, frozen=True, rename="camel"):
    """The jobs of one kind.

    ``delayed`` of the pending ones are not due yet. Ages are in seconds, null without a job.
    """

    kind: str
    pending: int
    delayed: int
    leased: int
    completed: int
    dead: int
    oldest_pending_at: str | None
    oldest_pending_age_sec: float | None
    next_due_at: str | None
    oldest_lease_at: str | None
    oldest_lease_age_sec: float | None


class DeadReport(msgspec.Struct, frozen=True, rename="camel"):
    """Dead jobs of one kind with the same error."""

    kind: str
    cause: str
    count: int
    last_at: str


class LaneReport(msgspec.Struct, frozen=True, rename="camel"):
    """What the extractor does with one kind of job; ``pausedBecause`` is null while it takes jobs.

    The counters start at zero when the extractor starts.
    """

    kind: str
    slots: int
    running: int
    paused_because: str | None
    done: int
    failed: int
    returned: int
    fenced: int


class RecentCalls(msgspec.Struct, frozen=True, rename="camel"):
    """The outcomes of the last calls."""

    total: int
    successes: int
    failures: int
    timeouts: int
    availability_rate: float


class CallsReport(msgspec.Struct, frozen=True, rename="camel"):
    """One process's calls since it started.

    ``circuit``: closed, open or half_open; ``waitsMs`` is how long no call will be made, and ``waitsFor`` why.
    ``errors`` counts by kind of error.
    """

    circuit: str
    waits_ms: int
    waits_for: str
    recent: RecentCalls
    calls: int
    in_flight: int
    tokens_in: int
    tokens_out: int
    cost_microusd: int
    errors: dict[str, int]
    last_error: str


class ModelReport(msgspec.Struct, frozen=True, rename="camel"):
    """The chosen provider and the reason for it; ``name`` is ``none`` and ``calls`` null if there is none.

    ``available`` and ``detail`` are the result of the check when it was chosen.
    """

    configured: str
    name: str
    model: str
    reason: str
    available: bool
    detail: str
    endpoint: str | None
    may_cost: bool
    calls: CallsReport | None


class ModelReports(msgspec.Struct, frozen=True):
    """By stage; null if its process did not answer or does not exist."""

    extraction: ModelReport | None
    decision: ModelReport | None


class BudgetReport(msgspec.Struct, frozen=True, rename="camel"):
    """The provider's limits for the current UTC day; null is no limit.

    ``usageToday`` lists what counts towards them.
    """

    provider: str
    calls_a_day: int | None
    tokens_a_day: int | None
    calls_today: int | None
    tokens_today: int | None


class UsageReport(msgspec.Struct, frozen=True, rename="camel"):
    """Today's usage of one model; ``tokensReserved`` are those of calls that have not ended."""

    day: str
    provider: str
    model: str
    calls: int
    tokens_in: int
    tokens_out: int
    tokens_reserved: int
    cost_microusd: int


class JunkReport(msgspec.Struct, frozen=True, rename="camel"):
    """What was filtered out before it became a proposal.

    ``rate`` is its share of that plus ``facts``; null before the first fact.
    """

    rate: float | None
    turned_away: int
    facts: int
    by_reason: dict[str, int]


class FactFigures(msgspec.Struct, frozen=True, rename="camel"):
    """The outcomes of facts: proposals by outcome, and by the reason for which they were not applied."""

    facts: int
    entities: int
    outcomes: dict[str, int]
    reasons: dict[str, int]
    repaired: int
    dropped: int
    fenced: int
    junk: JunkReport


class Figures(msgspec.Struct, frozen=True):
    """Counters of today (UTC) and of all days that are kept (``retention.historyRetentionMs``)."""

    today: FactFigures
    kept: FactFigures


class RunCounts(msgspec.Struct, frozen=True, rename="camel"):
    """The runs that are kept."""

    total: int
    undone: int
    last_at: str | None


class CompositeHealth(msgspec.Struct, frozen=True):
    """The weighted mean of the scores of the parts."""

    score: float
    status: str


class QueueHealth(msgspec.Struct, frozen=True, rename="camel"):
    """Pending jobs. ``leaseAnomalies`` counts overdue leases.

    ``deadRate`` is the share of dead jobs among the ended ones that are kept.
    """

    score: float
    status: str
    depth: int
    oldest_age_sec: float
    dead_rate: float
    lease_anomalies: int


class StorageHealth(msgspec.Struct, frozen=True, rename="camel"):
    """Rows and the size of the database file."""

    score: float
    status: str
    total_memories: int
    deleted_tombstones: int
    db_size_bytes: int


class IndexHealth(msgspec.Struct, frozen=True, rename="camel"):
    """``embeddingCoverage`` is the share of the memories that have a vector."""

    score: float
    status: str
    memories_row_count: int
    embedding_coverage: float


class ProviderHealth(msgspec.Struct, frozen=True, rename="camel"):
    """The last calls of both stages."""

    score: float
    status: str
    recent_total: int
    recent_successes: int
    recent_failures: int
    recent_timeouts: int
    availability_rate: float


class DiagnosticsReport(msgspec.Struct, frozen=True):
    """Scores from 0 to 1, each with a status: healthy, degraded or unhealthy.

    A part that could not be queried is null and does not count.
    """

    timestamp: str
    composite: CompositeHealth | None
    queue: QueueHealth | None
    storage: StorageHealth | None
    index: IndexHealth | None
    provider: ProviderHealth | None


class LatencyReport(msgspec.Struct, frozen=True):
    """Milliseconds; quantiles are interpolated within the buckets of a histogram."""

    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    count: int = 0
    mean: float = 0.0


class LatencyReports(msgspec.Struct, frozen=True):
    """Requests since the gateway started; ``jobs`` is null, because the duration of jobs is not measured."""

    remember: LatencyReport
    recall: LatencyReport
    mutate: LatencyReport
    jobs: None = None


class TraversalReport(msgspec.Struct, frozen=True, rename="camel"):
    """Always off: there is no graph yet."""

    enabled: bool = False
    last_run: str | None = None


class PipelineStatusReply(msgspec.Struct, frozen=True, rename="camel"):
    """A summary of the pipeline. A part that could not be queried in time is null, and ``notes`` says why.

    ``mode`` is the documented word: disabled, frozen, shadow, paused or controlled-write. ``writes`` is more exact:
    off, frozen, shadow, controlled_write or full. ``errorSummary``: failed calls by stage since the stage's process
    started. ``waiting`` describes in words what waits for what.
    """

    mode: str
    writes: str
    workers: dict[str, WorkerState]
    queues: Queues
    error_summary: dict[str, int]
    jobs: list[KindReport] | None
    dead: list[DeadReport] | None
    lanes: list[LaneReport] | None
    providers: ModelReports
    budgets: list[BudgetReport]
    usage_today: list[UsageReport] | None
    figures: Figures | None
    decisions: dict[str, int] | None
    runs: RunCounts | None
    reviews_pending: int | None
    waiting: list[str]
    notes: list[str]
    diagnostics: DiagnosticsReport
    latency: LatencyReports
    feedback: None = None
    traversal: TraversalReport = TraversalReport()
    predictor: None = None


class RunReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of one extract job; ``counts`` maps outcomes to proposals, as of when the run was written."""

    id: str
    job_id: str
    memory_id: str
    agent_id: str
    mode: str
    provider: str
    model: str
    proposals: int
    counts: dict[str, int]
    created_at: str
    undone_at: str | None
    undone_by: str | None


class ProposalReport(msgspec.Struct, frozen=True, rename="camel"):
    """One proposal of a run. ``reason`` says why it was not applied; ``rationale`` is the model's.

    Text is null once a memory that it came from, is about or may quote was erased, and while that memory is forgotten.
    """

    id: str
    ordinal: int
    action: str
    outcome: str
    reason: str | None
    rationale: str | None
    fact_content: str | None
    fact_type: str
    fact_confidence: float
    confidence: float
    target_id: str | None
    target_version: int | None
    result_memory_id: str | None
    result_version: int | None
    syntactic_contradiction: bool
    semantic_contradiction: bool | None
    review_state: str | None
    reviewed_by: str | None
    reviewed_at: str | None
    undo_note: str | None


class RunListReply(msgspec.Struct, frozen=True):
    """A page, newest first."""

    runs: list[RunReport]


class RelationReport(msgspec.Struct, frozen=True, rename="camel"):
    """``source`` has the ``relationship`` to ``target``; types may be unknown."""

    source: str
    relationship: str
    target: str
    confidence: float
    source_type: str | None
    target_type: str | None


class RunReply(msgspec.Struct, frozen=True):
    """A run with its proposals in order, and the relations between entities that it found.

    The relations are kept as long as its job, and hidden while its memory is forgotten.
    """

    run: RunReport
    proposals: list[ProposalReport]
    entities: list[RelationReport]


class UndoRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The author of the undo; the header ``x-signet-actor`` sets the same."""

    changed_by: str | None = None


class UndoResult(msgspec.Struct, frozen=True, rename="camel"):
    """One proposal that had changed something. ``status``: undone, or kept for the ``reason``."""

    ordinal: int
    action: str
    status: str
    memory_id: str | None
    reason: str | None


class UndoReply(msgspec.Struct, frozen=True, rename="camel"):
    """What the run changed is restored, except what is ``kept``.

    ``reviewsClosed`` counts its proposals that were removed from the review queue.
    """

    run_id: str
    status: Literal["undone", "already_undone"]
    undone: int
    kept: int
    results: list[UndoResult]
    reviews_closed: int = 0
    success: Literal[True] = True


class RequeueRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which dead jobs: at most 50 ``ids``, or those of ``kinds`` (none = every kind), oldest first, up to ``limit``."""

    ids: list[str] | None = None
    kinds: list[str] | None = None
    limit: int | None = None
    changed_by: str | None = None


class NotRequeued(msgspec.Struct, frozen=True, rename="camel"):
    """Why a job was not requeued. ``reason``: not_found, not_dead, memory_gone, already_waiting.

    A job of a memory that the caller may not read is ``not_found``.
    """

    job_id: str
    reason: str


class RequeueReply(msgspec.Struct, frozen=True):
    """The jobs that were requeued with all their attempts, and those that were not; ``more`` dead jobs may be left.

    ``action``, ``affected`` and ``message`` are those of every repair.
    """

    action: str
    affected: int
    message: str
    requeued: list[str]
    refused: list[NotRequeued]
    more: bool
    success: Literal[True] = True
