"""Answer with the map of the memories, and have it made if there is none.

Source: docs/compatibility.md "Embeddings".
"""

from __future__ import annotations

import contextlib
from typing import Any, Final

from signet_actors.errors import SignetError, Unavailable
from signet_actors.features.projection import api
from signet_actors.gateway.http.route import Call, Handler, HttpResponse, filters_of
from signet_actors.operations.operation import Operation
from signet_actors.protocol.retention import MakeProjection

ASK_MS: Final = 5000


async def projection(call: Call[api.ProjectionRequest]) -> HttpResponse:
    """Return a page of the map; 202 while the first one is made, and the last one while a newer one is.

    Raises Unavailable if the first one cannot be made.
    """
    wanted = call.request
    query = api.FindProjection(
        *(call.read, filters_of(wanted, call.former_project), wanted.dimensions, wanted.limit, wanted.offset),
        *(wanted.q, wanted.types, wanted.source_types, wanted.importance_max, wanted.harness),
    )
    answer = (await call.ask_searcher(query)).read(api.FoundProjection)
    if answer.found is not None and answer.is_current:
        return HttpResponse(answer.found)
    request = MakeProjection(call.agent_id, wanted.dimensions)
    if answer.found is not None:
        with contextlib.suppress(SignetError):  # the last map is shown whether a newer one can be made or not
            await call.state.bus.ask_retention(request, trace_id=call.trace_id, timeout_ms=ASK_MS)
        return HttpResponse(answer.found)
    begun = await call.state.bus.ask_retention(request, trace_id=call.trace_id, timeout_ms=ASK_MS)
    if begun.problem is not None:
        raise Unavailable(f"the map cannot be made: {begun.problem}", retry_after_ms=ASK_MS)
    return HttpResponse(api.ComputingReply("computing", wanted.dimensions, 0, answer.total), 202)


HANDLERS: Final[dict[Operation[Any], Handler[Any]]] = {api.GET_PROJECTION: projection}
