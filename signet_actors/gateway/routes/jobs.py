"""The state of a background job.

Source: docs/compatibility.md "Reading memories".
"""

from __future__ import annotations

from signet_actors.errors import NotFound
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.operations.jobs import GET_JOB
from signet_actors.operations.request_fields import AgentFields
from signet_actors.protocol.searcher import GetJob


async def get_job(call: Call[AgentFields]) -> HttpResponse:
    """Return the job; 404 if it is about a memory that the caller may not read, or about the session of another."""
    found = await call.ask_searcher(GetJob(id=call.path["id"], read=call.read))
    job = found.job
    if job is None or (job.memory_id is None and not await call.is_owner()):
        raise NotFound("Job not found")
    return HttpResponse(job)


ROUTES: tuple[Route, ...] = serve(GET_JOB, get_job)
