"""Start a backup, list the backups, and report the progress of a running one.

Callers cannot choose a path: backups are written to the workspace, and can be copied from there.

Source: docs/reliability.md R17, R18.
"""

from __future__ import annotations

from signet_actors.gateway.http.responses import fill
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.operations.backup import BACK_UP, LIST_BACKUPS, BackupReply
from signet_actors.operations.request_fields import NoFields
from signet_actors.protocol.message import Request
from signet_actors.protocol.retention import BackUpNow, BackupState, GetBackups

ASK_MS = 5000


async def back_up(call: Call[NoFields]) -> HttpResponse:
    """Start a backup, or queue one behind the running one, and return at once: a large database takes a while."""
    return await _ask(call, BackUpNow())


async def backups(call: Call[NoFields]) -> HttpResponse:
    """List the backups and report the progress of a running one."""
    return await _ask(call, GetBackups())


async def _ask(call: Call[NoFields], question: Request[BackupState]) -> HttpResponse:
    state = await call.state.bus.ask_retention(question, trace_id=call.trace_id, timeout_ms=ASK_MS)
    return HttpResponse(fill(BackupReply, state))


ROUTES: tuple[Route, ...] = (
    *serve(BACK_UP, back_up),
    *serve(LIST_BACKUPS, backups),
)
