"""Requeue dead jobs, as a pipeline action; ``repair.py`` offers the same as a repair."""

from __future__ import annotations

from signet_actors.errors import InvalidRequest
from signet_actors.features.repairs.rules import REQUEUE as REQUEUE_ACTION
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.operations.requeue import REQUEUE, RequeueReply, RequeueRequest
from signet_actors.protocol.pipeline import JobsRequeued, RequeueJobs


async def requeue(call: Call[RequeueRequest]) -> HttpResponse:
    """Requeue dead jobs with all their attempts."""
    done = await requeue_jobs(call)
    return HttpResponse(
        RequeueReply(
            action=REQUEUE_ACTION,
            affected=len(done.requeued),
            message=requeue_message(done),
            requeued=done.requeued,
            refused=done.refused,
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


async def requeue_jobs(call: Call[RequeueRequest]) -> JobsRequeued:
    """Ask the writer to requeue the jobs that the request selects. Raises InvalidRequest.

    The writer enforces the rate limit (429), because only it recognises a retry with the same ``Idempotency-Key``.
    """
    request = call.request
    if request.ids and request.kinds:
        raise InvalidRequest("give ids or kinds, not both", field="kinds")
    ids = request.ids or ()
    return await call.ask_writer(
        RequeueJobs(
            ids=ids,
            kinds=request.kinds or (),
            limit=max(request.limit, len(ids)),
            principal=call.principal,
            read=call.read,
        )
    )


ROUTES: tuple[Route, ...] = serve(REQUEUE, requeue)
