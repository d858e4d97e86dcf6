"""Report the health of the daemon. Source: docs/compatibility.md "Diagnostics and pipeline status"."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from signet_actors.config.workspace import Workspace
from signet_actors.domain.timestamps import iso
from signet_actors.errors import InvalidRequest, SignetError, Unavailable
from signet_actors.features.diagnostics.api import DOMAIN, FINDINGS, REPORT, FindingsReply
from signet_actors.features.diagnostics.rules import DOMAINS
from signet_actors.features.searches.api import FindLastPrompts, LastPrompts
from signet_actors.gateway.http.route import Call, Handler, HttpResponse
from signet_actors.gateway.status import findings as rules
from signet_actors.gateway.status.diagnostics import MEASURED, diagnostics_of
from signet_actors.gateway.status.snapshot import take_snapshot
from signet_actors.operations.diagnostics import DiagnosticsReport
from signet_actors.operations.operation import Operation
from signet_actors.operations.request_fields import NoFields
from signet_actors.operations.transcripts import OwnAgent
from signet_actors.runtime.connected_harnesses import read_connected


async def full(call: Call[NoFields]) -> HttpResponse:
    """Return the health of every domain, and the composite."""
    return HttpResponse(await measured(call, []))


async def findings(call: Call[OwnAgent]) -> HttpResponse:
    """Return whether memory works, and what is wrong."""
    state, notes = call.state, list[str]()
    harnesses, installed_ms = await asyncio.to_thread(_installed, state.workspace, dict(state.harnesses_seen))
    unseen = tuple({one.id for one in harnesses if one.seen_ms is None})
    replies, prompts = await asyncio.gather(
        state.status_requests.ask(rules.ASKED, call.trace_id, notes), _last_prompts(call, unseen)
    )
    snapshot = take_snapshot(state, replies, notes)
    found = rules.findings(snapshot, harnesses, installed_ms, prompts)
    return HttpResponse(FindingsReply(verdict=rules.verdict(snapshot, prompts), findings=found))


async def _last_prompts(call: Call[OwnAgent], harnesses: tuple[str, ...]) -> LastPrompts | None:
    """Return the last prompts of the agent; None if the caller may not know of them, or no process knows.

    ``harnesses``: those of which it is wanted, too, when they were heard.
    """
    if not await call.is_owner():
        return None
    since = iso(call.state.clock.wall_ms() - rules.DAY_MS)
    with contextlib.suppress(SignetError):
        await call.state.searches.flush()
    with contextlib.suppress(SignetError):
        query = FindLastPrompts(read=call.read, since=since, harnesses=harnesses)
        return (await call.ask_searcher(query)).read(LastPrompts)
    return None


def _installed(workspace: Path, seen: Mapping[str, int]) -> tuple[list[rules.SeenHarness], int]:
    """Return the connected harnesses, and when the workspace was made: its secret is made once."""
    try:
        installed_ms = int(Workspace(workspace).secret_file.stat().st_mtime * 1000)
    except OSError:
        installed_ms = 0
    connected = read_connected(workspace)
    return [rules.SeenHarness(row.harness, row.title, seen.get(row.harness)) for row in connected], installed_ms


async def domain(call: Call[NoFields]) -> HttpResponse:
    """Return the health of one domain. Raises InvalidRequest, Unavailable."""
    name, notes = call.path["domain"], list[str]()
    if name not in DOMAINS:
        raise InvalidRequest(f"Unknown domain: {name}", field="domain")
    health = getattr(await measured(call, notes), name)
    if health is None:
        raise Unavailable("; ".join(notes) or f"{name} cannot be measured: no model is configured")
    return HttpResponse(health)


async def measured(call: Call[NoFields], notes: list[str]) -> DiagnosticsReport:
    """Return the health; ``notes`` gets why a part could not be measured."""
    replies = await call.state.status_requests.ask(MEASURED, call.trace_id, notes)
    return diagnostics_of(take_snapshot(call.state, replies))


HANDLERS: Final[dict[Operation[Any], Handler[Any]]] = {REPORT: full, FINDINGS: findings, DOMAIN: domain}
