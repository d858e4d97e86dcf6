"""Metrics of all processes for Prometheus. A scrape uses what this process knows and waits for no other process.

Source: docs/messaging.md rule 20; docs/compatibility.md "Health and status" (``/api/status`` shows the same figures to
people). The metrics are listed in docs/metrics.md.
"""

from __future__ import annotations

import asyncio
import importlib
from types import ModuleType

from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.status.snapshot import take_snapshot
from signet_actors.operations.metrics import METRICS, METRICS_MEDIA_TYPE
from signet_actors.operations.request_fields import NoFields

_loaded: list[ModuleType] = []


async def metrics(call: Call[NoFields]) -> HttpResponse:
    """Return the current metrics; ``signet_store_figures_age_seconds`` is the age of the row and job counts."""
    state = call.state
    if not _loaded:  # import on the first scrape: it saves 4 MB in a daemon that is never scraped
        _loaded.append(await asyncio.to_thread(importlib.import_module, "signet_actors.gateway.status.metrics"))
    text: bytes = _loaded[0].exposition(take_snapshot(state))
    state.status_requests.refresh(call.trace_id)
    return HttpResponse(text, media_type=METRICS_MEDIA_TYPE)


ROUTES: tuple[Route, ...] = serve(METRICS, metrics)
