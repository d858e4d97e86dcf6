"""Undo a run of the pipeline over HTTP.

Source: memory-pipeline.txt "Worker Model"; architecture.txt "Repair Actions"; docs/decisions.md 14, 16, 18.
"""

from __future__ import annotations

from typing import Any, Final, cast

from signet_actors.errors import NotFound
from signet_actors.features.runs.api import UNDO_RUN, UndoReply, UndoRequest, UndoResult
from signet_actors.gateway.http.route import Call, Handler, HttpResponse
from signet_actors.operations.operation import Operation
from signet_actors.protocol.pipeline import UndoRun


async def undo_run(call: Call[UndoRequest]) -> HttpResponse:
    """Undo the run's changes, except to memories that were changed since; repeating it gives the same result."""
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


HANDLERS: Final[dict[Operation[Any], Handler[Any]]] = {UNDO_RUN: undo_run}
