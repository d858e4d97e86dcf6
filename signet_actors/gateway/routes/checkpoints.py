"""List the checkpoints of sessions, and make one.

Source: memory-pipeline.txt "Session Checkpoints"; docs/compatibility.md "Hooks and sessions"; docs/decisions.md 26, 35.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import msgspec
from msgspec import UNSET

from signet_actors.domain.transcripts.turns import TranscriptTooLong
from signet_actors.errors import InvalidRequest
from signet_actors.features.checkpoints import api
from signet_actors.gateway.features import ask
from signet_actors.gateway.http.route import Call, Handler, HttpResponse
from signet_actors.gateway.ingest import redaction_fields
from signet_actors.gateway.routes import transcripts
from signet_actors.gateway.sessions.hook_runner import FORGOTTEN, LATE_HEADER, HookSession, Skipped, run_hook
from signet_actors.gateway.transcript_capture import Capture, store_capture, without_content
from signet_actors.gateway.transcript_files import TranscriptRefused
from signet_actors.operations.field_types import parse_flag
from signet_actors.operations.operation import Operation
from signet_actors.operations.transcripts import SessionEndRequest

KeptT = TypeVar("KeptT")

KEEP_BUDGET_MS: Final = 900
"""Less than the time limit of the hook command."""
TURN: Final = "turn"
"""The reason of our own hooks, which report each turn: its job is made at the end, or when it falls silent."""
LATE_BUDGET_MS: Final = 8_000
"""The same for a report that waited, for which no harness waits."""


async def listed(call: Call[Any]) -> HttpResponse:
    """Return the checkpoints of a project or a session, without secrets, also new forms of them."""
    found = (await ask(call, call.route.operation, call.request)).read(api.CheckpointsReply)
    clean, replace = call.state.redactor.clean, msgspec.structs.replace
    shown = await asyncio.to_thread(lambda: [replace(each, digest=clean(each.digest)[0]) for each in found.checkpoints])
    return HttpResponse(replace(found, checkpoints=shown))


async def make(call: Call[api.MakeCheckpointRequest]) -> HttpResponse:
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
    project = await transcripts.project_of(call, key)
    made = await state.checkpoints.make(
        key, call.agent_id, "explicit", harness=request.harness, project=project, context=request.context
    )
    return _not_made(FORGOTTEN) if made is None else HttpResponse(api.MakeCheckpointReply(stored=True, id=made))


async def keep(call: Call[SessionEndRequest]) -> HttpResponse:
    """Store the turns that are not stored yet, with a checkpoint and a job if they are long enough; it goes on."""
    if call.session_key is None:
        raise InvalidRequest("harness and sessionKey are required", field="sessionKey")

    key = call.session_key

    async def work(session: HookSession) -> api.KeepCheckpointReply:
        assert session.key == key, "the request names its session"
        if not call.state.config.hooks.session_end.enabled:
            raise Skipped("disabled")
        return await asyncio.shield(keep_soon(call, key))  # a long one is stored after the hook was answered

    budget_ms = LATE_BUDGET_MS if parse_flag(call.headers.get(LATE_HEADER, "")) else KEEP_BUDGET_MS
    answer = await run_hook(call, budget_ms, work, api.KeepCheckpointReply(), stores=True)
    if answer.body.bypassed is True and (key, call.agent_id) not in call.state.captures:
        await asyncio.wait({_begin(call, key, transcripts.note_left_out(call, key))}, timeout=budget_ms / 1000)
    return answer


def keep_soon(call: Call[SessionEndRequest], key: str, *, noted: bool = True) -> asyncio.Task[api.KeepCheckpointReply]:
    """Begin to store the new turns of the session, ``noted`` in a checkpoint. Raises Skipped if that is going on."""
    if (key, call.agent_id) in call.state.captures:
        raise Skipped("busy")
    return _begin(call, key, _kept(call, key, noted=noted))


def _begin(call: Call[SessionEndRequest], key: str, work: Coroutine[Any, Any, KeptT]) -> asyncio.Task[KeptT]:
    captures, at = call.state.captures, (key, call.agent_id)
    task = captures[at] = asyncio.ensure_future(work)
    task.add_done_callback(lambda done: _on_kept(captures, at, done))
    return task


def _on_kept(captures: dict[tuple[str, str], asyncio.Task[Any]], at: tuple[str, str], done: asyncio.Task[Any]) -> None:
    del captures[at]
    if not done.cancelled():
        done.exception()  # marks it as retrieved if the hook was answered before


async def _kept(call: Call[SessionEndRequest], key: str, *, noted: bool) -> api.KeepCheckpointReply:
    """Return what was stored. Raises SignetError."""
    request = call.request
    if request.transcript is None and request.transcript_path is None:
        return api.KeepCheckpointReply(skipped=True, reason="there is neither transcript nor transcriptPath")
    is_late = parse_flag(call.headers.get(LATE_HEADER, ""))
    if not is_late and call.state.transcript_readers.was_given_up(transcripts.transcript_name(request)):
        return api.KeepCheckpointReply(
            skipped=True, reason="reading the transcript took too long; its end tries once more"
        )
    with call.state.transcript_readers.capturing(call.agent_id, key):
        return await _kept_of(call, key, noted=noted)


async def _kept_of(call: Call[SessionEndRequest], key: str, *, noted: bool) -> api.KeepCheckpointReply:
    """Read the transcript and return what was stored of it. Raises SignetError."""
    request = call.request
    try:
        found, _ = await transcripts.captured(call, key)
    except (TranscriptRefused, TranscriptTooLong) as refused:
        transcripts.note_skipped(call, str(refused))
        return api.KeepCheckpointReply(skipped=True, reason=str(refused))
    if (reason := without_content(found)) is not None:
        transcripts.note_skipped(call, reason)
        return api.KeepCheckpointReply(
            session_key=key,
            format=found.transcript.format,
            turns=len(found.transcript.turns),
            new_turns=0,
            reason=reason,
        )
    project = await transcripts.project_of(call, key)
    stored = await store_capture(
        call,
        found,
        key,
        harness=request.harness,
        project=project,
        captured_at=request.captured_at,
        then="goes_on" if request.reason == TURN else "extract",
    )
    if stored is None:
        return api.KeepCheckpointReply(skipped=True, reason=FORGOTTEN)
    await transcripts.note_losses(call, key, found)
    made: str | None = None
    if noted:
        made = await call.state.checkpoints.turned(
            key, call.agent_id, _last_chars(found, stored.added), harness=request.harness, project=project
        )
    return api.KeepCheckpointReply(
        queued=stored.job_id is not None,
        job_id=UNSET if stored.job_id is None else stored.job_id,
        stored=True,
        session_key=key,
        format=found.transcript.format,
        turns=len(found.transcript.turns),
        new_turns=stored.added,
        checkpoint_id=UNSET if made is None else made,
        **redaction_fields((*call.redactions, *found.kinds)),
    )


def _last_chars(found: Capture, rows: int) -> int:
    """Return the length of the last ``rows`` turns of the capture, which are the new ones."""
    turns = [turn for part in found.parts for turn in part]
    return sum(len(turn.content) for turn in turns[len(turns) - rows :])


def _not_made(reason: str) -> HttpResponse:
    return HttpResponse(api.MakeCheckpointReply(stored=False, skipped=True, reason=reason))


HANDLERS: Final[dict[Operation[Any], Handler[Any]]] = {
    api.LIST: listed,
    api.LIST_SESSION: listed,
    api.MAKE: make,
    api.KEEP: keep,
}
