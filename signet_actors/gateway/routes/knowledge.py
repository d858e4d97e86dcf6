"""Answer what is known about an entity. Source: docs/compatibility.md "Knowledge graph"."""

from __future__ import annotations

from typing import Any, Final

from msgspec import UNSET

from signet_actors.features.knowledge import api
from signet_actors.gateway.features import ask
from signet_actors.gateway.http.route import Call, Handler, HttpResponse
from signet_actors.operations.operation import Operation


async def expand(call: Call[api.ExpandRequest]) -> HttpResponse:
    """Return what is known; if there is no such entity, the same members without anything, as 404."""
    found = (await ask(call, api.EXPAND, call.request)).read(api.ExpandReply)
    return HttpResponse(found, 200 if found.error is UNSET else 404)


HANDLERS: Final[dict[Operation[Any], Handler[Any]]] = {api.EXPAND: expand}
