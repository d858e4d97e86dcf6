"""The figures of all processes for Prometheus. Nobody is asked while the scraper waits.

Source: docs/messaging.md rule 20; docs/compatibility.md "Health and status" (``/api/status``, the same figures for
people). The metrics are listed in docs/metrics.md.
"""

from __future__ import annotations

import asyncio
import importlib
from types import ModuleType

from signet_actors.domain.permissions import Permission
from signet_actors.gateway.http.route import HttpRequest, HttpResponse, Route

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The text format of Prometheus that every scraper reads, whatever it says that it accepts."""

_loaded: list[ModuleType] = []


async def metrics(request: HttpRequest) -> HttpResponse:
    """What is known now; row and job counts are as old as ``signet_store_figures_age_seconds`` says."""
    state = request.state
    if not _loaded:  # 4 MB that a daemon nobody scrapes does not carry
        _loaded.append(await asyncio.to_thread(importlib.import_module, "signet_actors.gateway.status.metrics"))
    text: bytes = _loaded[0].exposition(state)
    state.store.refresh(state.bus, state.clock, request.trace_id)
    state.pipeline.refresh(state.bus, state.clock, request.trace_id)
    return HttpResponse(text, media_type=MEDIA_TYPE)


ROUTES: tuple[Route, ...] = (
    Route(
        "GET",
        "/metrics",
        metrics,
        Permission.DIAGNOSTICS,
        "Figures for Prometheus",
        "status",
        replies={200: str},
        media_types=(MEDIA_TYPE,),
        description="The text exposition format 0.0.4. Counters of a process begin anew with each of its lives.",
    ),
)
