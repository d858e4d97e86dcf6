"""The runs of the pipeline over HTTP, and undoing one.

Source: memory-pipeline.txt "Worker Model"; architecture.txt "Repair Actions"; docs/decisions.md 14, 16, 18.
"""

from __future__ import annotations

from typing import Any, cast

from signet_actors.errors import NotFound
from signet_actors.gateway.http.endpoints import Call, serve
from signet_actors.gateway.http.route import HttpResponse, Route
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
    RunReport,
    UndoReply,
    UndoRequest,
    UndoResult,
)
from signet_actors.protocol.pipeline import UndoRun
from signet_actors.protocol.pipeline_queries import GetRun, ListRuns, ProposalRow, RunRow


async def list_runs(call: Call[ListRunsRequest]) -> HttpResponse:
    """Return a page of the runs over memories that the caller may read, newest first."""
    request = call.request
    listed = await call.ask_searcher(
        ListRuns(read=call.read, memory_id=request.memory_id, limit=request.limit, offset=request.offset)
    )
    return HttpResponse(RunListReply([_run(row) for row in listed.runs]))


async def get_run(call: Call[AgentFields]) -> HttpResponse:
    """Return the run with this id or job id; 404 if it is over a memory outside the caller's scope."""
    found = await call.ask_searcher(GetRun(id=call.path["run"], read=call.read))
    if found.run is None:
        raise NotFound("Run not found")
    return HttpResponse(
        RunReply(
            _run(found.run),
            [_proposal(row) for row in found.proposals],
            [
                RelationReport(
                    source=one.source,
                    relationship=one.relationship,
                    target=one.target,
                    confidence=one.confidence,
                    source_type=one.source_type,
                    target_type=one.target_type,
                )
                for one in found.entities
            ],
        )
    )


async def undo_run(call: Call[UndoRequest]) -> HttpResponse:
    """Undo the run's changes, except to memories that were changed since.

    Repeating the request gives the same result.
    """
    done = await call.ask_writer(
        UndoRun(run_id=call.path["run"], principal=call.principal, read=call.read, idempotency=call.idempotency)
    )
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


def _run(row: RunRow) -> RunReport:
    return RunReport(
        id=row.id,
        job_id=row.job_id,
        memory_id=row.memory_id,
        agent_id=row.agent_id,
        mode=row.mode,
        provider=row.provider,
        model=row.model,
        proposals=row.proposals,
        counts=row.counts,
        created_at=row.created_at,
        undone_at=row.undone_at,
        undone_by=row.undone_by,
    )


def _proposal(row: ProposalRow) -> ProposalReport:
    return ProposalReport(
        id=row.id,
        ordinal=row.ordinal,
        action=row.action,
        outcome=row.outcome,
        reason=row.reason,
        rationale=row.rationale,
        fact_content=row.fact_content,
        fact_type=row.fact_type,
        fact_confidence=row.fact_confidence,
        confidence=row.confidence,
        target_id=row.target_id,
        target_version=row.target_version,
        result_memory_id=row.result_memory_id,
        result_version=row.result_version,
        syntactic_contradiction=row.syntactic_contradiction,
        semantic_contradiction=row.semantic_contradiction,
        review_state=row.review_state,
        reviewed_by=row.reviewed_by,
        reviewed_at=row.reviewed_at,
        undo_note=row.undo_note,
    )


ROUTES: tuple[Route, ...] = (
    *serve(LIST_RUNS, list_runs),
    *serve(GET_RUN, get_run),
    *serve(UNDO_RUN, undo_run),
)
