"""The status of the pipeline, and the state of a job.

``workers``, ``queues``, ``diagnostics``, ``latency``, ``errorSummary``, ``mode``, ``feedback``, ``traversal`` and
``predictor`` are the reference's; the rest of the status is ours. What this daemon does not have is reported as
``running: false`` or null, never as an invented number.

Source: docs/compatibility.md "Diagnostics and pipeline status"; memory-pipeline.txt "Worker Model", "Aspect Feedback";
docs/decisions.md 14, 16, 18.
"""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.domain.permissions import Permission
from signet_actors.operations.diagnostics import DiagnosticsReport
from signet_actors.operations.operation import BY_AGENT, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import AgentFields, NoFields


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
    """Dead jobs of one kind with the same error, the latest at ``lastAt``."""

    kind: str
    cause: str
    count: int
    last_at: str


class JobRunnerReport(msgspec.Struct, frozen=True, rename="camel"):
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
    """The usage of one model on one UTC day; ``tokensReserved`` are those of calls that have not ended."""

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
    rejected: int
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


class LatencyReport(msgspec.Struct, frozen=True):
    """Milliseconds."""

    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    count: int = 0
    mean: float = 0.0


class LatencyReports(msgspec.Struct, frozen=True):
    """Requests since the gateway started, with quantiles interpolated within the buckets of a histogram.

    ``jobs``: the last 1,000 completed jobs, from their last lease on, by nearest rank; null if they could not be read.
    """

    remember: LatencyReport
    recall: LatencyReport
    mutate: LatencyReport
    jobs: LatencyReport | None = None


class TraversalReport(msgspec.Struct, frozen=True, rename="camel"):
    """Whether recalls follow the knowledge graph. ``lastRun`` is null: each recall does it anew."""

    enabled: bool = False
    last_run: str | None = None


class FeedbackFigures(msgspec.Struct, frozen=True):
    """What sessions and ratings changed in the weights of aspects, over the days for which counters are kept.

    Aspects that gained weight, memories that sessions searched for, aspects that lost some, ratings that moved one.
    """

    feedback_aspects_updated: int = msgspec.field(name="feedbackAspectsUpdated", default=0)
    feedback_fts_confirmations: int = msgspec.field(name="feedbackFtsConfirmations", default=0)
    feedback_decayed_aspects: int = msgspec.field(name="feedbackDecayedAspects", default=0)
    feedback_propagated_attributes: int = msgspec.field(name="feedbackPropagatedAttributes", default=0)


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
    lanes: list[JobRunnerReport] | None
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
    feedback: FeedbackFigures | None = None
    traversal: TraversalReport = TraversalReport()
    predictor: None = None


PIPELINE_STATUS: Final[Operation[NoFields, PipelineStatusReply]] = Operation(
    name="pipeline.status",
    summary="Pipeline status: jobs, models, budgets, and why jobs wait",
    tag="Pipeline",
    paths=("/api/pipeline/status",),
    replies={200: PipelineStatusReply},
    permission=Permission.DIAGNOSTICS,
)


class JobReply(msgspec.Struct, frozen=True):
    """A job's state; ``attempts`` and ``error`` are also given under their older names."""

    id: str
    memory_id: str | None
    document_id: str | None
    job_type: str
    status: str
    attempt_count: int
    attempts: int
    max_attempts: int
    next_attempt_at: str | None
    last_error: str | None
    last_error_code: str | None
    error: str | None
    leased_at: str | None
    completed_at: str | None
    failed_at: str | None
    created_at: str
    updated_at: str


GET_JOB: Final[Operation[AgentFields, JobReply]] = Operation(
    name="jobs.get",
    summary="State of a background job",
    tag="Jobs",
    paths=("/api/memory/jobs/{id}", "/api/hooks/transcript-capture/{id}"),
    request=AgentFields,
    example={"id": "0b0d7c1e-13f0-4d7f-8a54-2f6d6c1d7d50"},
    replies={200: JobReply, 404: Problem, **PROBLEMS},
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
    owner_parts="jobs about sessions",
    served_by="searcher",
)
OPERATIONS: Final = (GET_JOB, PIPELINE_STATUS)
