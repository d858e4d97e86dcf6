"""The state of a background job.

Source: docs/compatibility.md "Reading memories".
"""

from __future__ import annotations

from signet_actors.domain.permissions import Permission
from signet_actors.errors import NotFound
from signet_actors.gateway.http.request_reader import read_scope_of
from signet_actors.gateway.http.route import HttpRequest, HttpResponse, Route
from signet_actors.gateway.routes.memories import AGENT_PARAMETERS, PROBLEMS
from signet_actors.operations.jobs import JobReply
from signet_actors.operations.problem import Problem
from signet_actors.protocol.searcher import GetJob


async def get_job(request: HttpRequest) -> HttpResponse:
    """Return the job; 404 if it belongs to a memory outside the caller's scope."""
    found, _ = await request.state.bus.ask_searcher(
        GetJob(id=request.path["id"], read=read_scope_of(request)), trace_id=request.trace_id
    )
    job = found.job
    if job is None:
        raise NotFound("Job not found")
    return HttpResponse(
        JobReply(
            id=job.id,
            memory_id=job.memory_id,
            document_id=job.document_id,
            job_type=job.job_type,
            status=job.status,
            attempt_count=job.attempts,
            attempts=job.attempts,
            max_attempts=job.max_attempts,
            next_attempt_at=None,
            last_error=job.error,
            last_error_code=None,
            error=job.error,
            leased_at=job.leased_at,
            completed_at=job.completed_at,
            failed_at=job.failed_at,
            created_at=job.created_at,
            updated_at=job.updated_at,
        )
    )


ROUTES: tuple[Route, ...] = (
    Route(
        method="GET",
        path="/api/memory/jobs/{id}",
        handler=get_job,
        permission=Permission.RECALL,
        summary="State of a background job",
        tag="Jobs",
        query=AGENT_PARAMETERS,
        replies={200: JobReply, 404: Problem, **PROBLEMS},
    ),
)
