"""Answer what happened to a memory or an entity. Source: docs/compatibility.md "Timeline"."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from signet_actors.domain.timestamps import iso
from signet_actors.features.timeline import api
from signet_actors.gateway.features import ask
from signet_actors.gateway.http.route import Call, Handler, HttpResponse
from signet_actors.operations.operation import Operation
from signet_actors.operations.request_fields import AgentFields


async def timeline(call: Call[api.TimelineRequest]) -> HttpResponse:
    """Return a page of the events."""
    return HttpResponse(await _collected(call, api.GET_TIMELINE))


async def export(call: Call[AgentFields]) -> HttpResponse:
    """Return all events, and from when they are."""
    found = await _collected(call, api.EXPORT_TIMELINE)
    meta = api.ExportMeta(api.FORMAT_VERSION, str(found.generated_at), found.entity_id, truncated=found.has_more)
    return HttpResponse(api.TimelineExport(meta, found))


async def _collected(call: Call[Any], operation: Operation[Any]) -> api.TimelineReply:
    found = (await ask(call, operation, call.request)).read(api.TimelineReply)
    return msgspec.structs.replace(found, generated_at=iso(call.state.clock.wall_ms()))


HANDLERS: Final[dict[Operation[Any], Handler[Any]]] = {api.GET_TIMELINE: timeline, api.EXPORT_TIMELINE: export}
