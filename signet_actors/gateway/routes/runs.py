"""The runs of the pipeline over HTTP, and undoing one.

Source: memory-pipeline.txt "Worker Model"; architecture.txt "Repair Actions"; docs/decisions.md 14, 16, 18.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec

from signet_actors.errors import NotFound
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.operations.request_fields import AgentFields
from signet_actors.operations.runs import (
    GET_RUN,
    LIST_RUNS,
    UNDO_RUN,
    ListRunsRequest,
    ProposalReport,
    RelationReport,
    RunListReply,
    RunReply,
    UndoReply,
    UndoRequest,
    UndoResult,
)
from signet_actors.protocol.pipeline import UndoRun
from signet_actors.protocol.pipeline_queries import GetRun, ListRuns


async def list_runs(call: Call[ListRunsRequest]) -> HttpResponse:
    """Return a page of the runs over memories that the caller may read, newest first."""
    request = call.request
    listed = await call.ask_searcher(
        ListRuns(read=call.read, memory_id=request.memory_id, limit=request.limit, offset=request.offset)
    )
    return HttpResponse(RunListReply(listed.runs))


async def get_run(call: Call[AgentFields]) -> HttpResponse:
    """Return the run with this id or job id; 404 if it is over a memory outside the caller's scope."""
    found = await call.ask_searcher(GetRun(id=call.path["run"], read=call.read))
    if found.run is None:
        raise NotFound("Run not found")
    return HttpResponse(
        RunReply(
            found.run,
            msgspec.convert(found.proposals, list[ProposalReport], from_attributes=True),
            msgspec.convert(found.entities, list[RelationReport], from_attributes=True),
            found.rejected,
            found.rejected_counts,
            found.warnings,
        )
    )


async def undo_run(call: Call[UndoRequest]) -> HttpResponse:
    """Undo the run's changes, except to memories that were changed since.

    Repeating the request gives the same result.
    """
    done = await call.ask_writer(UndoRun(run_id=call.path["run"], principal=call.principal, read=call.read))
    if done.status == "not_found":
        raise NotFound("Run not found")
    results = [UndoResult(one.ordinal, one.action, one.status, one.memory_id, one.reason) for one in done.results]
    undone = sum(one.status == "undone" for one in results)
    return HttpResponse(
        UndoReply(
            run_id=done.run_id,
            status=cast("Any", done.status),
            undone=undone,
            kept=len(results) - undone,
            results=results,
            reviews_closed=done.reviews_closed,
        )
    )


ROUTES: tuple[Route, ...] = (
    *serve(LIST_RUNS, list_runs),
    *serve(GET_RUN, get_run),
    *serve(UNDO_RUN, undo_run),
)
