"""Liveness, readiness and health, from the supervisor's process tree and never from the database, and the metrics.

Source: docs/reliability.md R22; docs/messaging.md rule 20. The metrics are listed in docs/metrics.md.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Final

import msgspec
from msgspec import UNSET

import signet_actors
from signet_actors.domain.extraction.gates import extracts, flags_of, pipeline_mode
from signet_actors.domain.jobs import EXTRACT
from signet_actors.errors import ErrorCode
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.state import GatewayState
from signet_actors.gateway.status.readiness import Readiness
from signet_actors.gateway.status.snapshot import take_snapshot
from signet_actors.operations import health as api
from signet_actors.operations.request_fields import NoFields
from signet_actors.protocol.control import UP, ChildState

MAX_COUNT_AGE_MS: Final = 60_000
"""Age above which a job count is not shown."""


async def health(call: Call[NoFields]) -> HttpResponse:
    """Report the daemon's state in ``status``. Always 200, because clients take any other code for "no daemon"."""
    state = call.state
    children = state.bus.tree.children
    found = state.readiness()
    return HttpResponse(
        api.HealthReply(
            status=found.status,  # type: ignore[arg-type]
            uptime=_uptime(state),
            pid=state.boot.supervisor_pid,
            version=signet_actors.__version__,
            port=state.port,
            agents_dir=state.boot.workspace,
            db="writer" not in found.missing,
            shutting_down=state.draining,
            detail=found.detail,
            actors=msgspec.convert(children, list[api.ActorBrief], from_attributes=True),
            pipeline=_pipeline(state),
            indexing=api.IndexingHealth(_indexing_pending(children)),
            resources=_resources(children),
            synthesis=_synthesis(state),
        )
    )


def _synthesis(state: GatewayState) -> api.SynthesisHealth:
    errors = [report.last_error for report in state.synthesis.reports.values() if report.last_error is not None]
    return api.SynthesisHealth(
        running=state.synthesis.running is not None,
        failing=bool(errors),
        last_error=errors[0] if errors else None,
    )


def _pipeline(state: GatewayState) -> api.PipelineHealth:
    on = extracts(pipeline_mode(flags_of(state.config.memory.pipeline_v2)))
    extractor = next((child for child in state.bus.tree.children if child.role == "extractor"), None)
    running = on and extractor is not None and extractor.state == UP
    counters = extractor.counters if running and extractor is not None else {}
    pause_s = counters.get(f"{EXTRACT}_pause_seconds")
    return api.PipelineHealth(
        extraction_running=running,
        extraction_stalled=on and (not running or pause_s is not None),
        extraction_pending=_pending_extractions(state),
        extraction_backoff_ms=round(1000 * (pause_s or 0)),
    )


def _pending_extractions(state: GatewayState) -> int | None:
    """Return the number of pending extraction jobs at the last count; None if that count is too old."""
    counted = state.status_requests.latest.queues
    if counted is None or state.status_requests.age_ms("queues") > MAX_COUNT_AGE_MS:
        return None
    return sum(queue.pending for queue in counted.queues if queue.kind == EXTRACT)


def _indexing_pending(children: Sequence[ChildState]) -> int:
    return max((int(child.counters.get("index_pending", 0)) for child in children), default=0)


def _resources(children: Sequence[ChildState]) -> api.ResourcesHealth:
    def total(name: str) -> float:
        return sum(child.counters.get(name, 0) for child in children)

    return api.ResourcesHealth(
        processes=sum(child.pid is not None for child in children),
        cpu_seconds=round(total("cpu_seconds"), 2),
        rss_bytes=int(total("rss_bytes")),
        rss_peak_bytes=int(total("rss_peak_bytes")),
    )


async def live(call: Call[NoFields]) -> HttpResponse:
    """Return 200 while this process serves requests."""
    return HttpResponse(api.LiveReply(status="live", uptime=_uptime(call.state)))


async def ready(call: Call[NoFields]) -> HttpResponse:
    """Return 200 if memories can be written and read, else 503 with the processes that are not up."""
    found = call.state.readiness()
    return HttpResponse(
        api.ReadyReply(
            ready=found.ready,
            status=found.status,  # type: ignore[arg-type]
            not_up=list(found.not_up),
            detail=found.detail,
            error=UNSET if found.ready else f"Not ready: {found.detail}",
            code=UNSET if found.ready else _code(found).value,
        ),
        status=200 if found.ready else 503,
        headers={} if found.ready else {"retry-after": "1"},
    )


def _code(found: Readiness) -> ErrorCode:
    only_full = found.storage_full and not found.missing
    return ErrorCode.STORAGE_FULL if only_full else ErrorCode.UNAVAILABLE


def _uptime(state: GatewayState) -> float:
    return max(0, state.clock.wall_ms() - state.started_at_ms) / 1000


_loaded: list[ModuleType] = []


async def metrics(call: Call[NoFields]) -> HttpResponse:
    """Return the metrics of all processes. A scrape uses what this process knows and waits for no other.

    ``signet_store_figures_age_seconds`` is the age of the row and job counts.
    """
    state = call.state
    if not _loaded:  # import on the first scrape: it saves 4 MB in a daemon that is never scraped
        _loaded.append(await asyncio.to_thread(importlib.import_module, "signet_actors.gateway.status.metrics"))
    text: bytes = _loaded[0].exposition(take_snapshot(state))
    state.status_requests.refresh(call.trace_id)
    return HttpResponse(text, media_type=api.METRICS_MEDIA_TYPE)


ROUTES: tuple[Route, ...] = (
    *serve(api.HEALTH, health),
    *serve(api.LIVE, live),
    *serve(api.READY, ready),
    *serve(api.METRICS, metrics),
)
