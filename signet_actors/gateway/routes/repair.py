"""Repairs on demand.

Source: docs/compatibility.md "Diagnostics and pipeline status"; memory-pipeline.txt "Retention Worker";
architecture.txt "Repair Actions".
"""

from __future__ import annotations

from signet_actors.domain.permissions import Permission
from signet_actors.errors import InvalidRequest
from signet_actors.gateway.http.route import HttpRequest, HttpResponse, Route
from signet_actors.gateway.routes.memories import AGENT_PARAMETERS
from signet_actors.gateway.routes.requeue import REPAIR_PROBLEMS, REQUEUE_DEAD, requeue_jobs, requeue_message
from signet_actors.operations.pipeline import RequeueRequest
from signet_actors.operations.repair import RepairReply, RepairStep, SweepRequest
from signet_actors.protocol.retention import SweepNow, Swept


async def retention_sweep(request: HttpRequest) -> HttpResponse:
    """Run one sweep of the retention actor, or report why it was skipped."""
    body = request.json_object(required=False)
    confirm = body.get("confirmClock", body.get("confirm_clock", False))
    if not isinstance(confirm, bool):
        raise InvalidRequest("confirmClock must be a boolean", field="confirmClock")
    swept = await request.state.bus.ask_retention(SweepNow(confirm_clock=confirm), trace_id=request.trace_id)
    return HttpResponse(_result(swept))


async def requeue_dead(request: HttpRequest) -> HttpResponse:
    """Do the same as ``/api/pipeline/requeue``, with the reply of a repair."""
    done = await requeue_jobs(request)
    count = len(done.requeued)
    return HttpResponse(
        RepairReply(
            action=REQUEUE_DEAD,
            success=True,
            affected=count,
            message=requeue_message(done),
            steps=[RepairStep(step="requeue", count=count, more=done.more)],
        )
    )


def _result(swept: Swept) -> RepairReply:
    affected = sum(step.count for step in swept.steps)
    if swept.skipped_reason is not None:
        message = swept.skipped_reason
    elif any(step.more for step in swept.steps):
        message = f"Purged {affected} rows; the next sweep continues"
    else:
        message = f"Purged {affected} rows"
    if swept.requeued or swept.dead:
        message += f"; {swept.requeued} expired leases requeued, {swept.dead} jobs dead"
    return RepairReply(
        action="retention_sweep",
        success=swept.skipped_reason is None,
        affected=affected,
        message=message,
        steps=[RepairStep(step=step.step, count=step.count, more=step.more) for step in swept.steps],
    )


ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/api/repair/retention-sweep",
        retention_sweep,
        Permission.ADMIN,
        "Purge data past its retention now",
        "repair",
        body=SweepRequest,
        replies={200: RepairReply},
        limit="admin",
        owner=True,
        mutates=True,
        description="Runs one sweep of the retention steps in their order, instead of waiting for the next interval.",
    ),
    Route(
        "POST",
        "/api/repair/requeue-dead",
        requeue_dead,
        Permission.ADMIN,
        "Requeue dead jobs",
        "repair",
        body=RequeueRequest,
        query=AGENT_PARAMETERS,
        replies={200: RepairReply, **REPAIR_PROBLEMS},
        limit="admin",
        owner=True,
        writes=True,
        description="Same as `/api/pipeline/requeue`.",
    ),
)
