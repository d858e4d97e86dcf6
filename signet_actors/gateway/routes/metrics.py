"""Metrics of all processes for Prometheus. A scrape uses what this process knows and waits for no other process.

Source: docs/messaging.md rule 20; docs/compatibility.md "Health and status" (``/api/status`` shows the same figures to
people). The metrics are listed in docs/metrics.md.
"""

from __future__ import annotations

import asyncio
import importlib
from types import ModuleType

from signet_actors.domain.permissions import Permission
from signet_actors.gateway.http.route import HttpRequest, HttpResponse, Route

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The Prometheus text format that every scraper reads, whatever its Accept header lists."""

_loaded: list[ModuleType] = []


async def metrics(request: HttpRequest) -> HttpResponse:
    """Return the current metrics; ``signet_store_figures_age_seconds`` is the age of the row and job counts."""
    state = request.state
    if not _loaded:  # import on the first scrape: it saves 4 MB in a daemon that is never scraped
        _loaded.append(await asyncio.to_thread(importlib.import_module, "signet_actors.gateway.status.metrics"))
    text: bytes = _loaded[0].exposition(state)
    state.store_metrics.refresh(state.bus, state.clock, request.trace_id)
    state.pipeline_metrics.refresh(state.bus, state.clock, request.trace_id)
    return HttpResponse(text, media_type=MEDIA_TYPE)


ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/metrics",
        metrics,
        Permission.DIAGNOSTICS,
        "Metrics for Prometheus",
        "status",
        replies={200: str},
        media_types=(MEDIA_TYPE,),
        description="The text exposition format 0.0.4. A process's counters restart at 0 when it restarts.",
    ),
)
