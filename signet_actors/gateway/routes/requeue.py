"""Requeue dead jobs, as a pipeline action; ``repair.py`` offers the same as a repair.

Source: architecture.txt "Repair Actions"; memory-pipeline.txt "Worker Model".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from signet_actors.domain.jobs import JOB_KINDS
from signet_actors.domain.permissions import Permission
from signet_actors.errors import InvalidRequest
from signet_actors.gateway.http.request_reader import RequestReader, read_scope_of
from signet_actors.gateway.http.route import HttpRequest, HttpResponse, Route
from signet_actors.gateway.ingest import FieldRedactor
from signet_actors.gateway.routes.memories import AGENT_PARAMETERS, PROBLEMS
from signet_actors.operations.pipeline import NotRequeued, RequeueReply, RequeueRequest
from signet_actors.operations.problem import Problem
from signet_actors.protocol.pipeline import JobsRequeued, RequeueJobs

MAX_REQUEUED: Final = 50
"""Jobs per request. Source: architecture.txt "Repair Actions" (``requeueDeadJobs``)."""

REQUEUE_DEAD: Final = "requeueDeadJobs"
_KINDS: Final = tuple(kind.name for kind in JOB_KINDS)
CHANGE_PROBLEMS: Final[Mapping[int, Any]] = {409: Problem, 504: Problem, 507: Problem, **PROBLEMS}
REPAIR_PROBLEMS: Final[Mapping[int, Any]] = {429: Problem, **CHANGE_PROBLEMS}


async def requeue(request: HttpRequest) -> HttpResponse:
    """Requeue dead jobs with all their attempts."""
    done = await requeue_jobs(request)
    return HttpResponse(
        RequeueReply(
            action=REQUEUE_DEAD,
            affected=len(done.requeued),
            message=requeue_message(done),
            requeued=done.requeued,
            refused=[NotRequeued(one.job_id, one.reason) for one in done.refused],
            more=done.more,
        )
    )


def requeue_message(done: JobsRequeued) -> str:
    """Return the result as a sentence."""
    count = len(done.requeued)
    message = f"Requeued {count} dead job{'' if count == 1 else 's'}"
    if done.refused:
        message += f"; {len(done.refused)} not requeued: {', '.join(sorted({one.reason for one in done.refused}))}"
    return f"{message}; there are more dead jobs" if done.more else message


async def requeue_jobs(request: HttpRequest) -> JobsRequeued:
    """Ask the writer to requeue the jobs that the body selects; raise InvalidRequest for a body that is not valid.

    The writer enforces the rate limit (429), because only it recognises a retry with the same ``Idempotency-Key``.
    """
    body = request.json_object(required=False)
    ids = _names(body, "ids", max_items=MAX_REQUEUED)
    kinds = _names(body, "kinds", max_items=len(_KINDS))
    if ids and kinds:
        raise InvalidRequest("give ids or kinds, not both", field="kinds")
    unknown = sorted(set(kinds) - set(_KINDS))
    if unknown:
        raise InvalidRequest(f"kinds must be among: {', '.join(_KINDS)}", field="kinds")
    limit = body.get("limit", MAX_REQUEUED)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_REQUEUED:
        raise InvalidRequest(f"limit must be an integer from 1 to {MAX_REQUEUED}", field="limit")
    return await request.state.bus.ask_writer(
        RequeueJobs(
            ids=ids,
            kinds=kinds,
            limit=max(limit, len(ids)),
            principal=FieldRedactor(request.state).principal(request.principal(body)),
            read=read_scope_of(request, body),
            idempotency=request.idempotency(body),
        ),
        trace_id=request.trace_id,
    )


def _names(body: Mapping[str, Any], name: str, *, max_items: int) -> tuple[str, ...]:
    """Return the strings of an array without duplicates; empty if it is absent. An empty array is an error."""
    value = body.get(name)
    if value is None:
        return ()
    if not isinstance(value, list) or not value or len(value) > max_items:
        raise InvalidRequest(f"{name} must be an array of 1 to {max_items} strings", field=name)
    return tuple(dict.fromkeys(RequestReader({name: item}).required(name, max_chars=200) for item in value))


ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path="/api/pipeline/requeue",
        handler=requeue,
        permission=Permission.ADMIN,
        owner=True,
        summary="Requeue dead jobs",
        tag="Pipeline",
        body=RequeueRequest,
        query=AGENT_PARAMETERS,
        replies={200: RequeueReply, **REPAIR_PROBLEMS},
        limit="admin",
        writes=True,
        description="Without ids, a job is requeued at most once. Limited by `repair.requeueCooldownMs` and "
        "`repair.requeueHourlyBudget`.",
    ),
)
