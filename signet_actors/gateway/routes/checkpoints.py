"""List the checkpoints of sessions, and make one.

Source: memory-pipeline.txt "Session Checkpoints"; docs/compatibility.md "Hooks and sessions"; docs/decisions.md 26, 35.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from signet_actors.domain.checkpoints import normalized_project
from signet_actors.errors import InvalidRequest
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.ingest import FieldRedactor
from signet_actors.gateway.routes.transcripts import agent_of
from signet_actors.operations.checkpoints import (
    LIST,
    LIST_SESSION,
    MAKE,
    Checkpoint,
    CheckpointsReply,
    MakeCheckpointReply,
    MakeCheckpointRequest,
    ProjectCheckpointsRequest,
    SessionCheckpointsRequest,
)
from signet_actors.operations.transcripts import session_key
from signet_actors.protocol.checkpoints import ListCheckpoints, StoredCheckpoint
from signet_actors.protocol.memories import ReadScope


async def of_project(call: Call[ProjectCheckpointsRequest]) -> HttpResponse:
    """Return the checkpoints of a project."""
    request = call.request
    return await _listed(call, ListCheckpoints(call.read, request.limit, project=normalized_project(request.project)))


async def of_session(call: Call[SessionCheckpointsRequest]) -> HttpResponse:
    """Return the checkpoints of a session; none if it is not known."""
    key = FieldRedactor(call.state, for_memories=False).digest(session_key(call.path["key"]))
    read = ReadScope(agent_of(call, key))
    return await _listed(call, ListCheckpoints(read, call.request.limit, session_key=key))


async def _listed(call: Call[Any], query: ListCheckpoints) -> HttpResponse:
    found = await call.ask_searcher(query)
    shown = await asyncio.to_thread(lambda: [_shown(call, each) for each in found.checkpoints])
    return HttpResponse(CheckpointsReply(checkpoints=shown, count=len(shown)))


def _shown(call: Call[Any], stored: StoredCheckpoint) -> Checkpoint:
    """Return the checkpoint without secrets, also those whose form was not known when it was stored."""
    return Checkpoint(
        id=stored.id,
        session_key=stored.session_key,
        agent_id=stored.agent_id,
        harness=stored.harness,
        project=stored.project,
        project_normalized=stored.project_normalized,
        trigger=stored.trigger,
        digest=call.state.redactor.clean(stored.digest)[0],
        prompt_count=stored.prompt_count,
        memory_queries=stored.memory_queries,
        recent_remembers=stored.recent_remembers,
        created_at=stored.created_at,
    )


async def make(call: Call[MakeCheckpointRequest]) -> HttpResponse:
    """Store a checkpoint of the session before replying."""
    request, state, key = call.request, call.state, call.session_key
    if key is None:
        raise InvalidRequest("sessionKey is required", field="sessionKey")
    if not state.checkpoints.enabled:
        return _not_made("disabled")
    await state.ledger.context(key, call.agent_id, trace_id=call.trace_id)
    session = state.sessions.find(key)
    if state.ledger.is_bypassed(key) or (session is not None and session.bypassed):
        return _not_made("bypassed")
    made = await state.checkpoints.make(
        key, call.agent_id, "explicit", harness=request.harness, project=request.project, context=request.context
    )
    return _not_made("forgotten") if made is None else HttpResponse(MakeCheckpointReply(stored=True, id=made))


def _not_made(reason: str) -> HttpResponse:
    return HttpResponse(MakeCheckpointReply(stored=False, skipped=True, reason=reason))


ROUTES: Final[tuple[Route, ...]] = (*serve(LIST, of_project), *serve(LIST_SESSION, of_session), *serve(MAKE, make))
