"""The status of the pipeline over HTTP, and why jobs wait.

Source: docs/compatibility.md "Diagnostics and pipeline status"; memory-pipeline.txt "Worker Model";
docs/decisions.md 14.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final

from signet_actors.domain.extraction.gates import PipelineMode, flags_of, pipeline_mode
from signet_actors.domain.jobs import JOB_KINDS
from signet_actors.domain.providers import ModelState, ProviderReport
from signet_actors.domain.timestamps import epoch_ms, iso
from signet_actors.gateway.http.endpoints import Call, serve
from signet_actors.gateway.http.route import HttpResponse, Route
from signet_actors.gateway.routes.status import ask_queues, ask_store, waiting_reasons
from signet_actors.gateway.status.pipeline_health import diagnostics, latency
from signet_actors.gateway.status.pipeline_metrics import junk_counts, with_prefix
from signet_actors.gateway.status.status_probe import ask_decider, ask_extractor, probe
from signet_actors.operations.pipeline import (
    PIPELINE_STATUS,
    BudgetReport,
    CallsReport,
    DeadReport,
    FactFigures,
    Figures,
    JobRunnerReport,
    JunkReport,
    KindReport,
    ModelReport,
    ModelReports,
    PipelineStatusReply,
    QueueCounts,
    Queues,
    RecentCalls,
    RunCounts,
    UsageReport,
    WorkerState,
)
from signet_actors.operations.request_fields import NoFields
from signet_actors.protocol.control import UP, ChildState
from signet_actors.protocol.extractor import JobRunnerState
from signet_actors.protocol.pipeline_queries import (
    DeadCause,
    KindQueue,
    ProviderUsage,
)

_SUMMARY: Final = "summary"
_MODES: Final = {
    PipelineMode.OFF: "disabled",
    PipelineMode.FROZEN: "frozen",
    PipelineMode.SHADOW: "shadow",
    PipelineMode.CONTROLLED_WRITE: "controlled-write",
    PipelineMode.FULL: "controlled-write",
}
"""The documented mode names. ``paused`` is not used, because only the configuration can pause the pipeline."""
_KINDS: Final = tuple(kind.name for kind in JOB_KINDS)
_UNIMPLEMENTED_WORKERS: Final = (
    "summary",
    "document",
    "maintenance",
    "synthesis",
    "structuralClassify",
    "structuralDependency",
)


async def pipeline_status(call: Call[NoFields]) -> HttpResponse:
    """Report the pipeline's status, always with 200.

    A part that does not answer within a second is null, and ``notes`` gives the reason.
    """
    request, state = call.http, call.state
    notes: list[str] = []
    now_ms = state.clock.wall_ms()
    store, stats, extractor, decider = await asyncio.gather(
        probe("searcher", ask_queues(request), notes),
        probe("searcher", ask_store(request), notes),
        ask_extractor(request, notes),
        ask_decider(request, notes),
    )
    notes = list(dict.fromkeys(notes))
    config = state.config
    writes = pipeline_mode(flags_of(config.memory.pipeline_v2)) if extractor is None else PipelineMode(extractor.mode)
    models = {
        "extraction": None if extractor is None else extractor.model,
        "decision": None if decider is None else decider.model,
    }
    jobs = None if store is None else _by_kind(store.queues)
    queues = _queues(jobs)
    return HttpResponse(
        PipelineStatusReply(
            mode=_MODES[writes],
            writes=writes.value,
            workers=_workers(state.bus.tree.children, writes),
            queues=queues,
            error_summary={
                stage: sum(model.report.errors.values())
                for stage, model in models.items()
                if model is not None and model.report is not None
            },
            jobs=None if jobs is None else [_kind(queue, now_ms) for queue in jobs],
            dead=None if store is None else [_dead(cause) for cause in store.dead_causes],
            lanes=None if extractor is None else [_runner(runner) for runner in extractor.runners],
            providers=ModelReports(extraction=_model(models["extraction"]), decision=_model(models["decision"])),
            budgets=_budgets(models, None if store is None else store.usage_today),
            usage_today=None if store is None else [_usage(row) for row in store.usage_today],
            figures=None if store is None else Figures(today=_figures(store.today), kept=_figures(store.total)),
            decisions=None if decider is None else decider.decisions,
            runs=None if store is None else RunCounts(store.runs, store.runs_undone, store.last_run_at),
            reviews_pending=None if store is None else store.reviews_pending,
            waiting=waiting_reasons({queue.kind: queue.pending for queue in jobs or []}, config, extractor),
            notes=notes,
            diagnostics=diagnostics(
                queues.memory,
                _oldest_age_s([queue.oldest_pending_at for queue in jobs or []], now_ms),
                sum(queue.stale_leases for queue in jobs or []),
                stats,
                models.values(),
                iso(now_ms),
            ),
            latency=latency(state.request_metrics),
        )
    )


def _workers(children: list[ChildState], mode: PipelineMode) -> dict[str, WorkerState]:
    up = {child.role for child in children if child.state == UP}
    working = mode != PipelineMode.OFF
    return {
        "extraction": WorkerState(working and "extractor" in up),
        "decision": WorkerState(working and "decider" in up),
        "retention": WorkerState("retention" in up),
        **{name: WorkerState(False) for name in _UNIMPLEMENTED_WORKERS},
    }


def _by_kind(queues: list[KindQueue]) -> list[KindQueue]:
    """Return the queue of every known job kind, empty ones included, and of unknown kinds that have jobs."""
    counted = {queue.kind: queue for queue in queues}
    known = [counted.get(name, KindQueue(name)) for name in _KINDS]
    return known + [queue for queue in queues if queue.kind not in _KINDS]


def _queues(jobs: list[KindQueue] | None) -> Queues:
    if jobs is None:
        return Queues(None, None)
    summaries = [queue for queue in jobs if queue.kind == _SUMMARY]
    return Queues(_sum_queues([queue for queue in jobs if queue.kind != _SUMMARY]), _sum_queues(summaries))


def _oldest_age_s(moments: Iterable[str | None], now_ms: int) -> float | None:
    """Return the age in seconds of the oldest of ``moments``; None if there is none."""
    ages = [age for moment in moments if (age := age_s(moment, now_ms)) is not None]
    return max(ages, default=None)


def _sum_queues(jobs: list[KindQueue]) -> QueueCounts:
    return QueueCounts(
        pending=sum(queue.pending for queue in jobs),
        leased=sum(queue.leased for queue in jobs),
        completed=sum(queue.completed for queue in jobs),
        dead=sum(queue.dead for queue in jobs),
    )


def _kind(queue: KindQueue, now_ms: int) -> KindReport:
    return KindReport(
        kind=queue.kind,
        pending=queue.pending,
        delayed=queue.delayed,
        leased=queue.leased,
        completed=queue.completed,
        dead=queue.dead,
        oldest_pending_at=queue.oldest_pending_at,
        oldest_pending_age_sec=age_s(queue.oldest_pending_at, now_ms),
        next_due_at=queue.next_due_at,
        oldest_lease_at=queue.oldest_lease_at,
        oldest_lease_age_sec=age_s(queue.oldest_lease_at, now_ms),
    )


def age_s(moment: str | None, now_ms: int) -> float | None:
    """Return the seconds since ``moment``, at least 0; None without a moment."""
    then_ms = None if moment is None else epoch_ms(moment)
    return None if then_ms is None else max(0, now_ms - then_ms) / 1000


def _dead(cause: DeadCause) -> DeadReport:
    return DeadReport(kind=cause.kind, cause=cause.cause, count=cause.count, last_at=cause.last_at)


def _runner(runner: JobRunnerState) -> JobRunnerReport:
    return JobRunnerReport(
        kind=runner.kind,
        slots=runner.slots,
        running=runner.running,
        paused_because=runner.paused_because or None,
        done=runner.done,
        failed=runner.failed,
        returned=runner.returned,
        fenced=runner.fenced,
    )


def _model(model: ModelState | None) -> ModelReport | None:
    if model is None:
        return None
    chosen = model.selection
    return ModelReport(
        configured=chosen.configured,
        name=chosen.name,
        model=chosen.model,
        reason=chosen.reason,
        available=chosen.available,
        detail=chosen.detail,
        endpoint=chosen.endpoint,
        may_cost=chosen.may_cost,
        calls=None if model.report is None else _calls(model.report),
    )


def _calls(report: ProviderReport) -> CallsReport:
    recent = report.recent
    return CallsReport(
        circuit=report.circuit.value,
        waits_ms=report.waits_ms,
        waits_for=report.waits_for,
        recent=RecentCalls(
            recent.total, recent.successes, recent.failures, recent.timeouts, round(recent.availability_rate, 3)
        ),
        calls=report.calls,
        in_flight=report.in_flight,
        tokens_in=report.tokens_in,
        tokens_out=report.tokens_out,
        cost_microusd=report.cost_microusd,
        errors=report.errors,
        last_error=report.last_error,
    )


def _budgets(models: Mapping[str, ModelState | None], usage: list[ProviderUsage] | None) -> list[BudgetReport]:
    """Return one budget for each provider; extraction and decision share the daily budget of a provider."""
    limits = {
        model.selection.name: model.limits
        for model in models.values()
        if model is not None and model.limits is not None
    }
    budgets = []
    for provider, limit in limits.items():
        rows = None if usage is None else [row for row in usage if row.provider == provider]
        budgets.append(
            BudgetReport(
                provider=provider,
                calls_a_day=limit.calls or None,
                tokens_a_day=limit.tokens or None,
                calls_today=None if rows is None else sum(row.calls for row in rows),
                tokens_today=(
                    None if rows is None else sum(row.tokens_in + row.tokens_out + row.tokens_reserved for row in rows)
                ),
            )
        )
    return budgets


def _usage(row: ProviderUsage) -> UsageReport:
    return UsageReport(
        day=row.day,
        provider=row.provider,
        model=row.model,
        calls=row.calls,
        tokens_in=row.tokens_in,
        tokens_out=row.tokens_out,
        tokens_reserved=row.tokens_reserved,
        cost_microusd=row.cost_microusd,
    )


def _figures(counters: Mapping[str, int]) -> FactFigures:
    turned_away = junk_counts(counters)
    return FactFigures(
        facts=counters.get("facts", 0),
        entities=counters.get("entities", 0),
        outcomes=with_prefix(counters, "outcome."),
        reasons=with_prefix(counters, "reason."),
        repaired=counters.get("repaired", 0),
        dropped=counters.get("dropped", 0),
        fenced=counters.get("fenced", 0),
        junk=JunkReport(
            rate=turned_away.rate,
            turned_away=turned_away.turned_away,
            facts=turned_away.facts,
            by_reason=turned_away.by_reason,
        ),
    )


ROUTES: tuple[Route, ...] = serve(PIPELINE_STATUS, pipeline_status)
