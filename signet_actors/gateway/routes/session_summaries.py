"""Read a summary of a session; a warning tells of the texts that the reply has no room for."""

from __future__ import annotations

from typing import Any, Final

from signet_actors.features.session_summaries.api import EXPAND, ExpandSummaryReply, ExpandSummaryRequest
from signet_actors.gateway.features import ask
from signet_actors.gateway.http.route import Call, Handler, HttpResponse
from signet_actors.gateway.routes.memories import left_out
from signet_actors.operations.operation import Operation


async def expand(call: Call[ExpandSummaryRequest]) -> HttpResponse:
    """Return a summary with the memories made from it, and the beginning of its transcript."""
    found = (await ask(call, EXPAND, call.request)).read(ExpandSummaryReply)
    call.warnings += left_out((memory.id, memory.content) for memory in found.linked_memories)
    return HttpResponse(found)


HANDLERS: Final[dict[Operation[Any], Handler[Any]]] = {EXPAND: expand}
