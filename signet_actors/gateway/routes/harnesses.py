"""List the connected harnesses, and have their files brought up to date."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from signet_actors.domain.timestamps import iso
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.operations import harnesses as api
from signet_actors.operations.request_fields import NoFields
from signet_actors.protocol.retention import SyncHarnessFiles
from signet_actors.runtime.connected_harnesses import ConnectedHarness, Target, read_connected, targets_of, wanted_block
from signet_actors.runtime.harness_file import NotOurs, found_block

ASK_MS = 8000


async def list_harnesses(call: Call[NoFields]) -> HttpResponse:
    """Return the harnesses, with the state of their files."""
    return HttpResponse(await asyncio.to_thread(_listed, call.state.workspace, dict(call.state.harnesses_seen)))


async def regenerate(call: Call[NoFields]) -> HttpResponse:
    """Have the files brought up to date, and return what was changed."""
    done = await call.state.bus.ask_retention(SyncHarnessFiles(), trace_id=call.trace_id, timeout_ms=ASK_MS)
    problems = [api.FileProblem(path, reason) for path, reason in done.problems.items()]
    message = f"{len(done.written)} changed, {len(problems)} not possible"
    return HttpResponse(api.RegenerateReply(not problems, message, done.written, problems))


def _listed(workspace: Path, seen: Mapping[str, int]) -> api.HarnessesReply:
    return api.HarnessesReply([_entry(workspace, row, seen.get(row.harness)) for row in read_connected(workspace)])


def _entry(workspace: Path, row: ConnectedHarness, seen_ms: int | None) -> api.HarnessEntry:
    return api.HarnessEntry(
        name=row.title,
        id=row.harness,
        path=row.settings,
        exists=Path(row.settings).exists(),
        last_seen=None if seen_ms is None else iso(seen_ms),
        identity_files=[_file(workspace, target) for target in targets_of(workspace, row)],
    )


def _file(workspace: Path, target: Target) -> api.HarnessIdentityFile:
    wanted = wanted_block(workspace, target)
    try:
        return api.HarnessIdentityFile(str(target.path), target.agent_id, found_block(target.path) == wanted, None)
    except NotOurs as error:
        return api.HarnessIdentityFile(str(target.path), target.agent_id, synced=False, problem=str(error))


ROUTES: tuple[Route, ...] = (*serve(api.LIST_HARNESSES, list_harnesses), *serve(api.REGENERATE, regenerate))
