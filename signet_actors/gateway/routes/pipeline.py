"""The status of the pipeline over HTTP, why jobs wait, and the state of one job.

Source: docs/decisions.md 14.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from signet_actors.config.schema import Config
from signet_actors.domain.extraction.gates import PipelineMode, flags_of, pipeline_mode
from signet_actors.domain.jobs import JOB_KINDS, SCORE_SESSION, SUMMARIZE
from signet_actors.domain.providers import ModelState, ProviderReport
from signet_actors.errors import NotFound
from signet_actors.features.session_memories.api import FEEDBACK_COUNTER
from signet_actors.gateway.http.responses import fill
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.status import pipeline_figures
from signet_actors.gateway.status.diagnostics import MEASURED, diagnostics_of
from signet_actors.gateway.status.pipeline_health import latency
from signet_actors.gateway.status.replies import Part
from signet_actors.gateway.status.snapshot import DaemonSnapshot, take_snapshot
from signet_actors.operations import pipeline as api
from signet_actors.operations.request_fields import AgentFields, NoFields
from signet_actors.protocol.control import UP, ChildState
from signet_actors.protocol.pipeline_queries import KindQueue
from signet_actors.protocol.searcher import GetJob

_OF_SESSIONS: Final = (SUMMARIZE, SCORE_SESSION)
_MODES: Final = {
    PipelineMode.OFF: "disabled",
    PipelineMode.FROZEN: "frozen",
    PipelineMode.SHADOW: "shadow",
    PipelineMode.CONTROLLED_WRITE: "controlled-write",
    PipelineMode.FULL: "controlled-write",
}
"""The documented mode names. ``paused`` is not used, because only the configuration can pause the pipeline."""
_KINDS: Final = tuple(kind.name for kind in JOB_KINDS)
_UNIMPLEMENTED_WORKERS: Final = ("document",)


async def pipeline_status(call: Call[NoFields]) -> HttpResponse:
    """Report with 200; a part without an answer within a second is null, and ``notes`` say why."""
    notes: list[str] = []
    parts: tuple[Part, ...] = ("queues", "jobs", *MEASURED)
    replies = await call.state.status_requests.ask(parts, call.trace_id, notes)
    return HttpResponse(render(take_snapshot(call.state, replies, notes)))


def render(snapshot: DaemonSnapshot) -> api.PipelineStatusReply:
    """Return the pipeline's status."""
    config, replies, now_ms = snapshot.config, snapshot.replies, snapshot.now_ms
    pipeline = config.memory.pipeline_v2
    status, extractor, decider = replies.queues, replies.extractor, replies.decider
    writes = pipeline_mode(flags_of(config.memory.pipeline_v2)) if extractor is None else PipelineMode(extractor.mode)
    models = {
        "extraction": None if extractor is None else extractor.model,
        "decision": None if decider is None else decider.model,
    }
    jobs = None if status is None else pipeline_figures.all_kinds(status.queues)
    queues = _queues(jobs)
    usage = None if status is None else status.usage_today
    return api.PipelineStatusReply(
        mode=_MODES[writes],
        writes=writes.value,
        workers=_workers(snapshot.children, writes, config),
        queues=queues,
        error_summary={
            stage: sum(model.report.errors.values())
            for stage, model in models.items()
            if model is not None and model.report is not None
        },
        jobs=None if jobs is None else [_kind(queue, now_ms) for queue in jobs],
        dead=None if status is None else status.dead_causes,
        lanes=None if extractor is None else extractor.runners,
        providers=api.ModelReports(extraction=_model(models["extraction"]), decision=_model(models["decision"])),
        budgets=_budgets(models, usage),
        usage_today=usage,
        figures=None if status is None else api.Figures(today=_figures(status.today), kept=_figures(status.total)),
        decisions=None if decider is None else decider.decisions,
        runs=None if status is None else api.RunCounts(status.runs, status.runs_undone, status.last_run_at),
        reviews_pending=None if status is None else status.reviews_pending,
        waiting=pipeline_figures.waiting_reasons(pipeline_figures.pending_by_kind(status), config, extractor),
        notes=list(snapshot.notes),
        diagnostics=diagnostics_of(snapshot),
        latency=latency(snapshot.requests, replies.jobs),
        traversal=api.TraversalReport(pipeline.graph.enabled and pipeline.traversal.enabled),
        feedback=None if status is None else _feedback(pipeline_figures.with_prefix(status.total, FEEDBACK_COUNTER)),
    )


def _workers(children: Sequence[ChildState], mode: PipelineMode, config: Config) -> dict[str, api.WorkerState]:
    up = {child.role for child in children if child.state == UP}
    working = mode != PipelineMode.OFF
    may_write = mode in {PipelineMode.CONTROLLED_WRITE, PipelineMode.FULL}
    pipeline = config.memory.pipeline_v2
    return {
        "extraction": api.WorkerState(working and "extractor" in up),
        "summary": api.WorkerState(working and pipeline.summary.enabled and "extractor" in up),
        "decision": api.WorkerState(working and "decider" in up),
        "retention": api.WorkerState("retention" in up),
        "maintenance": api.WorkerState(
            pipeline.autonomous.enabled and not pipeline.autonomous.frozen and "retention" in up
        ),
        "synthesis": api.WorkerState(pipeline.enabled and pipeline.synthesis.enabled and "extractor" in up),
        "structuralClassify": api.WorkerState(may_write and pipeline.graph.enabled and "extractor" in up),
        "structuralDependency": api.WorkerState(may_write and pipeline.graph.enabled and "writer" in up),
        **{name: api.WorkerState(False) for name in _UNIMPLEMENTED_WORKERS},
    }


def _queues(jobs: list[KindQueue] | None) -> api.Queues:
    if jobs is None:
        return api.Queues(None, None)
    summaries = [queue for queue in jobs if queue.kind in _OF_SESSIONS]
    return api.Queues(_sum_queues([queue for queue in jobs if queue.kind not in _OF_SESSIONS]), _sum_queues(summaries))


def _sum_queues(jobs: list[KindQueue]) -> api.QueueCounts:
    return api.QueueCounts(
        pending=sum(queue.pending for queue in jobs),
        leased=sum(queue.leased for queue in jobs),
        completed=sum(queue.completed for queue in jobs),
        dead=sum(queue.dead for queue in jobs),
    )


def _kind(queue: KindQueue, now_ms: int) -> api.KindReport:
    return fill(
        api.KindReport,
        queue,
        oldest_pending_age_sec=pipeline_figures.age_s(queue.oldest_pending_at, now_ms),
        oldest_lease_age_sec=pipeline_figures.age_s(queue.oldest_lease_at, now_ms),
    )


def _model(model: ModelState | None) -> api.ModelReport | None:
    if model is None:
        return None
    return api.ModelReport(
        **msgspec.structs.asdict(model.selection), calls=None if model.report is None else _calls(model.report)
    )


def _calls(report: ProviderReport) -> api.CallsReport:
    calls = msgspec.convert(report, api.CallsReport, from_attributes=True)
    recent = msgspec.structs.replace(calls.recent, availability_rate=round(calls.recent.availability_rate, 3))
    return msgspec.structs.replace(calls, recent=recent)


def _budgets(models: Mapping[str, ModelState | None], usage: list[api.UsageReport] | None) -> list[api.BudgetReport]:
    """Return one budget for each provider; extraction and decision share the daily budget of a provider."""
    limits = {
        model.selection.name: model.limits
        for model in models.values()
        if model is not None and model.limits is not None
    }
    budgets = []
    for provider, limit in limits.items():
        calls, tokens = (None, None) if usage is None else pipeline_figures.used(usage, provider)
        budgets.append(
            api.BudgetReport(
                provider=provider,
                calls_a_day=limit.calls or None,
                tokens_a_day=limit.tokens or None,
                calls_today=calls,
                tokens_today=tokens,
            )
        )
    return budgets


def _feedback(counters: Mapping[str, int]) -> api.FeedbackFigures:
    return api.FeedbackFigures(
        *(counters.get(name, 0) for name in ("aspects", "confirmations", "decayed", "propagated"))
    )


def _figures(counters: Mapping[str, int]) -> api.FactFigures:
    return api.FactFigures(
        facts=counters.get("facts", 0),
        entities=counters.get("entities", 0),
        outcomes=pipeline_figures.with_prefix(counters, "outcome."),
        reasons=pipeline_figures.with_prefix(counters, "reason."),
        repaired=counters.get("repaired", 0),
        dropped=counters.get("dropped", 0),
        fenced=counters.get("fenced", 0),
        junk=pipeline_figures.junk_report(counters),
    )


async def get_job(call: Call[AgentFields]) -> HttpResponse:
    """Return the job; 404 if it is about a memory that the caller may not read, or about the session of another."""
    found = await call.ask_searcher(GetJob(id=call.path["id"], read=call.read))
    job = found.job
    if job is None or (job.memory_id is None and not await call.is_owner()):
        raise NotFound("Job not found")
    return HttpResponse(job)


ROUTES: tuple[Route, ...] = (
    *serve(api.GET_JOB, get_job),
    *serve(api.PIPELINE_STATUS, pipeline_status),
)
