"""The status overview: it requests the state of each process, with a short timeout (docs/decisions.md 14, 15)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import msgspec

import signet_actors
from signet_actors.config.embedding_models import second_space
from signet_actors.config.schema import Config
from signet_actors.config.workspace import Workspace
from signet_actors.domain.providers import NO_PROVIDER, CircuitState, ModelState
from signet_actors.domain.timestamps import iso
from signet_actors.gateway.http.responses import fill
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.status.pipeline_figures import pending_by_kind, waiting_reasons
from signet_actors.gateway.status.replies import Replies
from signet_actors.gateway.status.snapshot import DaemonSnapshot, take_snapshot
from signet_actors.operations import status as api
from signet_actors.operations.request_fields import NoFields
from signet_actors.protocol.control import UP, ChildState
from signet_actors.protocol.extractor import ExtractorStatus
from signet_actors.protocol.searcher import StoreStats
from signet_actors.providers.embedding import Embedder
from signet_actors.runtime.logging.configuration import log_path


async def status(call: Call[NoFields]) -> HttpResponse:
    """Report with 200; a part without an answer within a second is null, and ``notes`` say why."""
    state, trace_id = call.state, call.trace_id
    notes: list[str] = []
    tree, replies = await asyncio.gather(
        state.bus.ask_tree(),
        state.status_requests.ask(("store", "writer", "retention", "extractor"), trace_id, notes),
    )
    if _is_paused(replies) and _pending(replies):
        replies.queues = (await state.status_requests.ask(("queues",), trace_id, notes)).queues
    return HttpResponse(render(take_snapshot(state, replies, notes, tree=tree)))


def render(snapshot: DaemonSnapshot) -> api.StatusReply:
    """Return the status overview."""
    config, replies = snapshot.config, snapshot.replies
    workspace = Workspace(Path(snapshot.workspace))
    store = replies.store
    return api.StatusReply(
        status="stopping" if snapshot.draining else "running",
        version=signet_actors.__version__,
        pid=snapshot.supervisor_pid,
        uptime=snapshot.uptime_s,
        started_at=iso(snapshot.started_at_ms),
        port=snapshot.port,
        host=config.gateway.host,
        bind_host=config.gateway.host,
        agents_dir=snapshot.workspace,
        memory_db="writer" not in snapshot.readiness.missing,
        health=api.HealthScore(score=_fraction_up(snapshot.children), status=snapshot.readiness.status),
        detail=snapshot.readiness.detail,
        actors=msgspec.convert(snapshot.children, list[api.ActorReport], from_attributes=True),
        gateway=dict(snapshot.counters),
        bus=dict(snapshot.bus),
        db=_store(store),
        writer=msgspec.convert(replies.writer, api.WriterReport | None, from_attributes=True),
        retention=msgspec.convert(replies.retention, api.RetentionReport | None, from_attributes=True),
        jobs=store.jobs if store else None,
        oldest_pending_job=store.oldest_pending_job if store else None,
        waiting=_waiting(snapshot),
        notes=list(snapshot.notes),
        embedding=_embedding(snapshot.embedder, config),
        mutations_frozen=config.memory.pipeline_v2.mutations_frozen,
        pipeline_v2=msgspec.to_builtins(config.memory.pipeline_v2),
        provider_resolution=_providers(config, replies.extractor),
        active_sessions=snapshot.active_sessions,
        bypassed_sessions=snapshot.bypassed_sessions,
        logging=api.LogPlaces(
            log_dir=str(workspace.log_dir), log_file=str(log_path(workspace.log_dir, snapshot.now_ms))
        ),
    )


async def features(call: Call[NoFields]) -> HttpResponse:
    """List the features of this daemon. Departs: the reference daemon returns an empty object."""
    pipeline = call.state.config.memory.pipeline_v2
    return HttpResponse(
        {
            "memory": True,
            "recall": True,
            "embeddings": call.state.embedder is not None,
            "extraction": pipeline.enabled and pipeline.extraction.provider != NO_PROVIDER,
            "graph": False,
            "sessions": True,
            "documents": False,
            "connectors": False,
            "secrets": False,
            "mcp": True,
        }
    )


def _is_paused(replies: Replies) -> bool:
    return replies.extractor is not None and any(runner.paused_because for runner in replies.extractor.runners)


def _pending(replies: Replies) -> int:
    return 0 if replies.store is None else replies.store.jobs.get("pending", 0)


def _waiting(snapshot: DaemonSnapshot) -> list[str]:
    """Return the reasons why jobs wait. The counts by kind were requested only if a kind is paused."""
    replies = snapshot.replies
    pending = pending_by_kind(replies.queues) if _is_paused(replies) else {"": _pending(replies)}
    return waiting_reasons(pending, snapshot.config, replies.extractor)


def _fraction_up(children: Sequence[ChildState]) -> float:
    return round(sum(child.state == UP for child in children) / len(children), 2) if children else 0.0


def _store(stats: StoreStats | None) -> api.StoreReport | None:
    if stats is None:
        return None
    return fill(api.StoreReport, stats, bytes=stats.database_bytes)


def _embedding(embedder: Embedder | None, config: Config) -> api.EmbeddingReport:
    if embedder is None:
        return api.EmbeddingReport(provider="none", model="", dimensions=0, available=False)
    return api.EmbeddingReport(
        provider=embedder.provider,
        model=embedder.model,
        dimensions=embedder.dimensions,
        available=True,
        second=second[0] if (second := second_space(config.embedding)) else msgspec.UNSET,
    )


def _providers(config: Config, extractor: ExtractorStatus | None) -> api.ProviderResolution:
    """Return for each task the configured provider, the chosen one, and the one that answers prompts now."""
    pipeline = config.memory.pipeline_v2
    own = pipeline.synthesis.provider
    return api.ProviderResolution(
        extraction=_choice(pipeline.extraction.provider, None if extractor is None else extractor.model),
        synthesis=_choice(
            pipeline.extraction.provider if own == "extraction" else own,
            None if extractor is None else extractor.synthesis,
        ),
    )


def _choice(configured: str, model: ModelState | None) -> api.ProviderChoice:
    if model is None:
        return api.ProviderChoice(configured=configured, resolved=NO_PROVIDER, effective=NO_PROVIDER)
    answers = model.report is not None and model.report.circuit is CircuitState.CLOSED
    name = model.selection.name
    return api.ProviderChoice(configured=configured, resolved=name, effective=name if answers else NO_PROVIDER)


ROUTES: tuple[Route, ...] = (
    *serve(api.STATUS, status),
    *serve(api.FEATURES, features),
)
