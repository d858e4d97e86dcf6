"""Runs, jobs and proposals by the first characters of their ids, over HTTP.

Source: docs/compatibility.md "Diagnostics and pipeline status".
"""

from __future__ import annotations

from signet_actors.errors import InvalidRequest
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.operations.memories import MIN_PREFIX_CHARS
from signet_actors.operations.pipeline_ids import (
    FIND_PIPELINE_IDS,
    FindPipelineIdsRequest,
    PipelineIdsReply,
)
from signet_actors.protocol.pipeline_queries import FindPipelineIds


async def find_pipeline_ids(call: Call[FindPipelineIdsRequest]) -> HttpResponse:
    """Return the runs, jobs or proposals whose ids begin with the prefix."""
    kind, prefix, limit = call.request.kind, call.request.prefix, call.request.limit
    if len(prefix) < MIN_PREFIX_CHARS:
        raise InvalidRequest(f"prefix must have at least {MIN_PREFIX_CHARS} characters", field="prefix")
    found = await call.ask_searcher(FindPipelineIds(kind=kind, prefix=prefix, read=call.read, limit=limit))
    return HttpResponse(PipelineIdsReply(found.found))


ROUTES: tuple[Route, ...] = serve(FIND_PIPELINE_IDS, find_pipeline_ids)
