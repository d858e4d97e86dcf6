"""Start a backup, list the backups, and report the progress of a running one.

Callers cannot choose a path: backups are written to the workspace, and can be copied from there.

Source: docs/reliability.md R17, R18.
"""

from __future__ import annotations

from signet_actors.domain.permissions import Permission
from signet_actors.domain.timestamps import iso
from signet_actors.gateway.http.route import HttpRequest, HttpResponse, Route
from signet_actors.operations.backup import BackupEnd, BackupEntry, BackupFinding, BackupReply
from signet_actors.protocol.retention import BackUpNow, BackupState, GetBackups

ASK_MS = 5000


async def back_up(request: HttpRequest) -> HttpResponse:
    """Start a backup, or queue one behind the running one, and return at once: a large database takes a while."""
    request.json_object(required=False)
    return HttpResponse(
        _backup_reply(await request.state.bus.ask_retention(BackUpNow(), trace_id=request.trace_id, timeout_ms=ASK_MS))
    )


async def backups(request: HttpRequest) -> HttpResponse:
    """List the backups and report the progress of a running one."""
    return HttpResponse(
        _backup_reply(await request.state.bus.ask_retention(GetBackups(), trace_id=request.trace_id, timeout_ms=ASK_MS))
    )


def _backup_reply(state: BackupState) -> BackupReply:
    last = state.last
    return BackupReply(
        running=state.running,
        phase=state.phase,
        pages=state.pages,
        pages_left=state.remaining,
        last=None
        if last is None
        else BackupEnd(
            name=last.name,
            success=last.ok,
            message=last.detail or "verified",
            findings=[BackupFinding(kind, text) for kind, text in last.findings],
            memories=last.memories,
            ended_at=iso(last.ended_ms),
        ),
        backups=[
            BackupEntry(name=file.name, made_at=iso(file.made_ms), schema_version=file.schema, bytes=file.size_bytes)
            for file in state.backups
        ],
        directory=state.directory,
        queued=state.queued,
    )


ROUTES: tuple[Route, ...] = (
    Route(
        "POST",
        "/api/repair/backup",
        back_up,
        Permission.ADMIN,
        "Back up the database and check the copy",
        "repair",
        replies={200: BackupReply},
        limit="admin",
        owner=True,
        writes=True,
        description="Starts a backup while the daemon runs. One that is running may lack what was stored since it"
        " began, so another one follows it (`queued`). GET reports the result.",
    ),
    Route(
        "GET",
        "/api/repair/backup",
        backups,
        Permission.DIAGNOSTICS,
        "List backups and the progress of a running one",
        "repair",
        replies={200: BackupReply},
        owner=True,
    ),
)
