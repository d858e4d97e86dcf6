"""Report the health of the daemon. Source: docs/compatibility.md "Diagnostics and pipeline status"."""

from __future__ import annotations

from typing import Any, Final

from signet_actors.errors import InvalidRequest, Unavailable
from signet_actors.features.diagnostics.api import DOMAIN, REPORT
from signet_actors.features.diagnostics.rules import DOMAINS
from signet_actors.gateway.http.route import Call, Handler, HttpResponse
from signet_actors.gateway.status.diagnostics import MEASURED, diagnostics_of
from signet_actors.gateway.status.snapshot import take_snapshot
from signet_actors.operations.diagnostics import DiagnosticsReport
from signet_actors.operations.operation import Operation
from signet_actors.operations.request_fields import NoFields


async def full(call: Call[NoFields]) -> HttpResponse:
    """Return the health of every domain, and the composite."""
    return HttpResponse(await measured(call, []))


async def domain(call: Call[NoFields]) -> HttpResponse:
    """Return the health of one domain. Raises InvalidRequest, Unavailable."""
    name, notes = call.path["domain"], list[str]()
    if name not in DOMAINS:
        raise InvalidRequest(f"Unknown domain: {name}", field="domain")
    health = getattr(await measured(call, notes), name)
    if health is None:
        raise Unavailable("; ".join(notes) or f"{name} cannot be measured: no model is configured")
    return HttpResponse(health)


async def measured(call: Call[NoFields], notes: list[str]) -> DiagnosticsReport:
    """Return the health; ``notes`` gets why a part could not be measured."""
    replies = await call.state.status_requests.ask(MEASURED, call.trace_id, notes)
    return diagnostics_of(take_snapshot(call.state, replies))


HANDLERS: Final[dict[Operation[Any], Handler[Any]]] = {REPORT: full, DOMAIN: domain}
