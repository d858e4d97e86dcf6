"""Repairs on demand, and backups. Callers choose no path: backups can be copied from the workspace."""

from __future__ import annotations

from functools import partial

from signet_actors.features.repairs import rules
from signet_actors.features.repairs.api import EnterRepair, RecordRepair
from signet_actors.gateway.http.responses import fill
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.routes.repairs import gated
from signet_actors.gateway.routes.requeue import requeue_jobs, requeue_message
from signet_actors.gateway.sessions.hook_runner import REQUEST_SHARE
from signet_actors.operations import repair as api
from signet_actors.operations.request_fields import NoFields
from signet_actors.operations.requeue import RequeueRequest
from signet_actors.protocol.message import Request
from signet_actors.protocol.retention import BackUpNow, BackupState, GetBackups, SweepNow, Swept


async def retention_sweep(call: Call[api.SweepRequest]) -> HttpResponse:
    """Run one sweep of the retention actor, or report why it was skipped. Raises SignetError if the gate refuses it.

    One that takes longer than the request may goes on after the reply, which says what it has done so far. One that
    left rows for the next sweep does not count for the limits of the gate.
    """
    await call.ask_writer_unkeyed(EnterRepair(action=rules.SWEEP, principal=call.principal))
    swept = await call.state.bus.ask_retention(
        SweepNow(confirm_clock=call.request.confirm_clock),
        trace_id=call.trace_id,
        timeout_ms=int(REQUEST_SHARE * call.state.config.gateway.request_timeout_ms),
    )
    result = _result(swept)
    if result.success and result.affected and not any(step.more for step in result.steps):
        record = RecordRepair(action=rules.SWEEP, affected=result.affected, principal=call.principal)
        await call.ask_writer(record)
    return HttpResponse(result)


async def requeue_dead(call: Call[RequeueRequest]) -> HttpResponse:
    """Do the same as ``/api/pipeline/requeue``, with the reply of a repair."""
    done = await requeue_jobs(call)
    count = len(done.requeued)
    return HttpResponse(
        api.RepairReply(
            action=rules.REQUEUE,
            success=True,
            affected=count,
            message=requeue_message(done),
            steps=[api.RepairStep(step="requeue", count=count, more=done.more)],
        )
    )


def _result(swept: Swept) -> api.RepairReply:
    affected = sum(step.count for step in swept.steps)
    if swept.skipped_reason is not None:
        message = swept.skipped_reason
    elif any(step.more for step in swept.steps):
        message = f"Purged {affected} rows; the next sweep continues"
    else:
        message = f"Purged {affected} rows"
    if swept.requeued or swept.dead:
        message += f"; {swept.requeued} expired leases requeued, {swept.dead} jobs dead"
    return api.RepairReply(
        action=rules.SWEEP,
        success=swept.skipped_reason is None,
        affected=affected,
        message=message,
        steps=[api.RepairStep(step=step.step, count=step.count, more=step.more) for step in swept.steps],
    )


ASK_MS = 5000


async def back_up(call: Call[NoFields]) -> HttpResponse:
    """Start a backup, or queue one behind the running one, and return at once: a large database takes a while."""
    return await _ask(call, BackUpNow())


async def backups(call: Call[NoFields]) -> HttpResponse:
    """List the backups and report the progress of a running one."""
    return await _ask(call, GetBackups())


async def _ask(call: Call[NoFields], question: Request[BackupState]) -> HttpResponse:
    state = await call.state.bus.ask_retention(question, trace_id=call.trace_id, timeout_ms=ASK_MS)
    return HttpResponse(fill(api.BackupReply, state))


ROUTES: tuple[Route, ...] = (
    *serve(api.SWEEP, partial(gated, rules.SWEEP, retention_sweep)),
    *serve(api.REQUEUE_DEAD, partial(gated, rules.REQUEUE, requeue_dead)),
    *serve(api.BACK_UP, back_up),
    *serve(api.LIST_BACKUPS, backups),
)
