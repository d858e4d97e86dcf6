"""The state of a background job.

Source: docs/compatibility.md "Reading memories".
"""

from __future__ import annotations

from signet_actors.errors import NotFound
from signet_actors.gateway.http.endpoints import Call, serve
from signet_actors.gateway.http.route import HttpResponse, Route
from signet_actors.operations.jobs import GET_JOB, JobReply
from signet_actors.operations.request_fields import AgentFields
from signet_actors.protocol.searcher import GetJob


async def get_job(call: Call[AgentFields]) -> HttpResponse:
    """Return the job; 404 if it belongs to a memory outside the caller's scope."""
    found = await call.ask_searcher(GetJob(id=call.path["id"], read=call.read))
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


ROUTES: tuple[Route, ...] = serve(GET_JOB, get_job)
