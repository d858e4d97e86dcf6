"""The status overview: it requests the state of each process, with a short timeout.

Source: docs/compatibility.md "Health and status"; docs/decisions.md 14, 15.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

import signet_actors
from signet_actors.config.schema import Config
from signet_actors.config.workspace import Workspace
from signet_actors.domain.providers import NO_PROVIDER, CircuitState
from signet_actors.domain.timestamps import iso
from signet_actors.gateway.http.endpoints import Call, serve
from signet_actors.gateway.http.route import HttpRequest, HttpResponse, Route
from signet_actors.gateway.status.status_probe import PROBE_TIMEOUT_MS, ask_extractor, probe
from signet_actors.operations.request_fields import NoFields
from signet_actors.operations.status import (
    FEATURES,
    STATUS,
    ActorReport,
    EmbeddingReport,
    HealthScore,
    LogPlaces,
    ProviderChoice,
    ProviderResolution,
    RetentionReport,
    StatusReply,
    StoreReport,
    WriterReport,
)
from signet_actors.protocol.control import UP, ChildState
from signet_actors.protocol.extractor import ExtractorStatus
from signet_actors.protocol.pipeline_queries import GetPipelineStatus, PipelineStatus
from signet_actors.protocol.retention import GetRetentionStatus, RetentionStatus
from signet_actors.protocol.searcher import GetStoreStats, StoreStats
from signet_actors.protocol.writer import GetWriterStatus, WriterStatus
from signet_actors.runtime.logging.configuration import log_path


async def status(call: Call[NoFields]) -> HttpResponse:
    """Report the daemon's status, always with 200.

    A part that does not answer within a second is null, and ``notes`` gives the reason.
    """
    request, state = call.http, call.state
    notes: list[str] = []
    tree, stats, writer, retention, extractor = await asyncio.gather(
        state.bus.ask_tree(),
        probe("searcher", ask_store(request), notes),
        probe(
            "writer",
            state.bus.ask_writer(GetWriterStatus(), trace_id=request.trace_id, timeout_ms=PROBE_TIMEOUT_MS),
            notes,
        ),
        probe(
            "retention",
            state.bus.ask_retention(GetRetentionStatus(), trace_id=request.trace_id, timeout_ms=PROBE_TIMEOUT_MS),
            notes,
        ),
        ask_extractor(request, notes),
    )
    waiting = await _waiting(request, stats, extractor, notes)
    children = tree.children
    found = state.readiness()
    config = state.config
    now_ms = state.clock.wall_ms()
    log_dir = Workspace(state.workspace).log_dir
    pipeline = msgspec.to_builtins(config.memory.pipeline_v2)
    return HttpResponse(
        StatusReply(
            status="stopping" if state.draining else "running",
            version=signet_actors.__version__,
            pid=state.boot.supervisor_pid,
            uptime=max(0, now_ms - state.started_at_ms) / 1000,
            started_at=iso(state.started_at_ms),
            port=state.port,
            host=config.gateway.host,
            bind_host=config.gateway.host,
            agents_dir=state.boot.workspace,
            memory_db="writer" not in found.missing,
            health=HealthScore(score=_fraction_up(children), status=found.status),
            detail=found.detail,
            actors=[_actor(child) for child in children],
            gateway=state.counter_values(),
            bus=dict(state.bus.counters),
            db=_store(stats),
            writer=_writer(writer),
            retention=_retention(retention),
            jobs=stats.jobs if stats else None,
            oldest_pending_job=stats.oldest_pending_job if stats else None,
            waiting=waiting,
            notes=notes,
            embedding=_embedding(request),
            mutations_frozen=config.memory.pipeline_v2.mutations_frozen,
            pipeline_v2=pipeline,
            provider_resolution=_providers(config, extractor),
            logging=LogPlaces(log_dir=str(log_dir), log_file=str(log_path(log_dir, now_ms))),
        )
    )


async def features(call: Call[NoFields]) -> HttpResponse:
    """List the features of this daemon. Departs: the reference daemon returns an empty object."""
    return HttpResponse(
        {
            "memory": True,
            "recall": True,
            "embeddings": call.state.embedder is not None,
            "extraction": call.state.config.memory.pipeline_v2.enabled,
            "graph": False,
            "sessions": False,
            "documents": False,
            "connectors": False,
            "secrets": False,
            "mcp": False,
        }
    )


async def ask_store(request: HttpRequest) -> StoreStats:
    """Return the row counts; raise like ``ask_searcher``."""
    answer, _ = await request.state.bus.ask_searcher(
        GetStoreStats(), trace_id=request.trace_id, timeout_ms=PROBE_TIMEOUT_MS
    )
    return answer


async def _waiting(
    request: HttpRequest, stats: StoreStats | None, extractor: ExtractorStatus | None, notes: list[str]
) -> list[str]:
    """Return the reasons why jobs wait. The counts by kind are requested only if a kind is paused."""
    pending = {} if stats is None else {"": stats.jobs.get("pending", 0)}
    if any(pending.values()) and extractor is not None and any(runner.paused_because for runner in extractor.runners):
        counts = await probe("searcher", ask_queues(request), notes)
        pending = {} if counts is None else {queue.kind: queue.pending for queue in counts.queues}
    return waiting_reasons(pending, request.state.config, extractor)


async def ask_queues(request: HttpRequest) -> PipelineStatus:
    """Return a searcher's counts of the pipeline and keep them for ``/health``; raise like ``ask_searcher``."""
    question = GetPipelineStatus(now=iso(request.state.clock.wall_ms()))
    answer, _ = await request.state.bus.ask_searcher(question, trace_id=request.trace_id, timeout_ms=PROBE_TIMEOUT_MS)
    request.state.pipeline_metrics.set_store(answer, request.state.clock)
    return answer


def waiting_reasons(pending: Mapping[str, int], config: Config, extractor: ExtractorStatus | None) -> list[str]:
    """Return why pending jobs (by kind) wait; empty if none do, or if they only wait for a free slot.

    Source: docs/decisions.md 14.
    """
    if extractor is None:
        count = sum(pending.values())
        if not count:
            return []
        if not config.memory.pipeline_v2.enabled:
            why = "the pipeline is switched off (memory.pipelineV2.enabled)"
        else:
            why = "the extractor does not respond"
        return [f"{_jobs_wait(count)}: {why}; memories stay searchable"]
    paused = [runner for runner in extractor.runners if runner.paused_because and pending.get(runner.kind)]
    if not paused:
        return []
    reasons = "; ".join(f"{runner.kind}: {runner.paused_because}" for runner in paused)
    count = sum(pending[runner.kind] for runner in paused)
    return [f"{_jobs_wait(count)}; waiting uses no attempts, and memories stay searchable. {reasons}"]


def _jobs_wait(count: int) -> str:
    return "1 job waits" if count == 1 else f"{count} jobs wait"


def _actor(child: ChildState) -> ActorReport:
    return ActorReport(
        name=child.name,
        role=child.role,
        state=child.state,
        incarnation=child.incarnation,
        restarts=child.restarts,
        detail=child.detail,
        pid=child.pid,
        counters=child.counters,
    )


def _fraction_up(children: list[ChildState]) -> float:
    return round(sum(child.state == UP for child in children) / len(children), 2) if children else 0.0


def _store(stats: StoreStats | None) -> StoreReport | None:
    if stats is None:
        return None
    return StoreReport(
        memories=stats.memories,
        tombstones=stats.tombstones,
        embeddings=stats.embeddings,
        agents=stats.agents,
        entities=0,
        schema_version=stats.schema_version,
        bytes=stats.database_bytes,
    )


def _writer(writer: WriterStatus | None) -> WriterReport | None:
    if writer is None:
        return None
    return WriterReport(
        commits=writer.commits,
        rows=writer.rows,
        largest_batch=writer.largest_batch,
        wal_bytes=writer.wal_bytes,
        storage_full=writer.storage_full,
        schema_version=writer.schema_version,
        sqlite_version=writer.sqlite_version,
        damage=writer.damage,
    )


def _retention(retention: RetentionStatus | None) -> RetentionReport | None:
    if retention is None:
        return None
    return RetentionReport(
        last_sweep_at=retention.last_sweep_at,
        next_sweep_in_ms=retention.next_sweep_in_ms,
        last_counts=retention.last_counts,
        suspended_reason=retention.suspended_reason,
        last_backup_at=retention.last_backup_at,
        backup_problem=retention.backup_problem,
        scrub_findings=retention.scrub_findings,
    )


def _embedding(request: HttpRequest) -> EmbeddingReport:
    embedder = request.state.embedder
    if embedder is None:
        return EmbeddingReport(provider="none", model="", dimensions=0, available=False)
    return EmbeddingReport(
        provider=embedder.provider, model=embedder.model, dimensions=embedder.dimensions, available=True
    )


def _providers(config: Config, extractor: ExtractorStatus | None) -> ProviderResolution:
    """Return for each stage the configured provider, the chosen one, and the one that answers prompts now."""
    configured = config.memory.pipeline_v2.extraction.provider
    resolved = effective = NO_PROVIDER
    if extractor is not None:
        selection = extractor.model.selection
        resolved = selection.name
        report = extractor.model.report
        effective = selection.name if report is not None and report.circuit is CircuitState.CLOSED else NO_PROVIDER
    return ProviderResolution(
        extraction=ProviderChoice(configured=configured, resolved=resolved, effective=effective),
        synthesis=ProviderChoice(configured=NO_PROVIDER, resolved=NO_PROVIDER, effective=NO_PROVIDER),
    )


ROUTES: tuple[Route, ...] = (
    *serve(STATUS, status),
    *serve(FEATURES, features),
)
