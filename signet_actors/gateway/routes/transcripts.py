"""Capture the transcript of a session, read it, search all of them, and forget one.

Source: architecture.txt "session_transcripts"; docs/compatibility.md "Hooks and sessions"; docs/decisions.md 26, 34,
35, 37, 38.
Departs: a transcript that could not be stored (the writer restarts, the disk is full, a defect) is answered with 503,
504, 507 or 500 and not with 200, because a hook must know that it has to keep it. Its time is that of any request.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
from collections.abc import Hashable
from typing import Any, Final, Literal

from msgspec import UNSET, UnsetType

from signet_actors.domain.session_keys import CHECK_PREFIX
from signet_actors.domain.timestamps import epoch_ms
from signet_actors.domain.transcripts.turns import TranscriptTooLong, conversation, turn_key
from signet_actors.errors import ErrorCode, NotFound, SignetError, Unavailable
from signet_actors.gateway import transcript_capture
from signet_actors.gateway.features import named_session
from signet_actors.gateway.http.responses import fill
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.ingest import FieldRedactor, redaction_fields
from signet_actors.gateway.sessions import hook_runner
from signet_actors.gateway.sessions.ledger import Context
from signet_actors.gateway.sessions.table import on_disk
from signet_actors.gateway.transcript_files import TranscriptMissing, TranscriptRefused, read_transcript_file, roots
from signet_actors.gateway.transcript_readers import Check
from signet_actors.operations import transcripts as api
from signet_actors.operations.field_types import MAX_NAME_CHARS, parse_flag
from signet_actors.protocol import transcripts as messages
from signet_actors.protocol.memories import ReadScope

CLEARED: Final = "clear"
"""The reason of an end after which the session's context is not wanted any more."""
BACKFILL: Final = "backfill"
"""The reason of ``signet backfill``, which stores a session of the past."""
STOPPED: Final = "stop"
"""The reason of programs that report each answer of the agent as an end; the session goes on."""
NOT_SUMMARIZED: Final = (CLEARED, BACKFILL, STOPPED)
"""Reasons after which no summary is made: the session is not wanted, is one of hundreds of past ones, or goes on."""
_THEN: Final[dict[str, Literal["goes_on", "dropped"]]] = {CLEARED: "dropped", STOPPED: "goes_on"}
END_BUDGET_MS: Final = 1500
"""For the end of a session without a transcript."""
PAGE_BYTES: Final = 1 << 20
MAX_REPLY_BYTES: Final = 4 << 20
MAX_REPLY_ROWS: Final = 10_000
"""Text and rows of one reply; a longer transcript has a ``nextCursor``."""
_PROMPT_CHARS: Final = 400


async def session_end(call: Call[api.SessionEndRequest]) -> HttpResponse:
    """Store the turns of the session, and note its end. Without a transcript nothing can be lost: 200, as every hook.

    Source: docs/decisions.md 34.
    """
    request, state = call.request, call.state
    if request.transcript is not None or request.transcript_path is not None:
        name = transcript_name(request)
        with state.transcript_readers.capturing(call.agent_id, call.session_key or request.session_id):
            try:
                answer = await _ended(call)
            except SignetError as error:
                if error.code is ErrorCode.STORAGE_FULL or state.bus.health().storage_full:
                    state.skipped_transcripts.without_space(name)
                raise
        state.skipped_transcripts.stored(name)
        return answer
    budget_ms = min(END_BUDGET_MS, hook_runner.REQUEST_SHARE * state.config.gateway.request_timeout_ms)
    try:
        async with asyncio.timeout(budget_ms / 1000):
            return await _ended(call)
    except TimeoutError:
        reason = "timeout"
        state.log.warning("hook_timeout", route=call.route.path, trace=call.trace_id)
    except SignetError as error:
        reason = error.code.value
        state.log.info("hook_skipped", route=call.route.path, code=reason, trace=call.trace_id)
    except Exception:
        reason = "internal"
        state.log.exception("request_failed", route=call.route.path, trace=call.trace_id)
    return _nothing_stored(reason)


async def _ended(call: Call[api.SessionEndRequest]) -> HttpResponse:
    """Store the turns of the session that are not stored yet, durably before replying. Raises SignetError.

    A key in ``sessionId`` or in the transcript names no agent, because it is not the caller's own statement.
    """
    request = call.request
    if parse_flag(call.headers.get(hook_runner.NO_HOOKS_HEADER)):
        return _nothing_stored("no_hooks")
    if not call.state.config.hooks.session_end.enabled:
        return _nothing_stored("disabled")
    named = call.session_key or request.session_id
    if named is None and await _is_left_out(call, None):
        return _nothing_stored(hook_runner.OTHER_PROJECT)
    path = hook_runner.runtime_path(call)
    refusal = None if named is None else await _refusal(call, named, path)
    if refusal is not None:
        if refusal.body.bypassed is True:
            await note_left_out(call, named)
        return refusal
    if request.transcript is None and request.transcript_path is None:
        return await _end_without_turns(call, named, path, "there is neither transcript nor transcriptPath")
    try:
        found, key = await captured(call, named)
    except (TranscriptRefused, TranscriptTooLong) as refused:
        if not isinstance(refused, TranscriptMissing) or call.state.checkpoints.has_prompts(named, call.agent_id):
            note_skipped(call, str(refused))
            return await _end_without_turns(call, named, path, str(refused))
        # A program makes the file at the first prompt, and this session had none.
        return await _end_without_turns(call, named, path, str(refused), skipped=UNSET)
    refusal = None if key == named else await _refusal(call, key, path)
    if refusal is not None:
        if refusal.body.bypassed is True:
            await note_left_out(call, key, found)
        return refusal
    if (reason := transcript_capture.without_content(found)) is not None:
        note_skipped(call, reason)
        read = {"format": found.transcript.format, "turns": len(found.transcript.turns), "new_turns": 0}
        return await _end_without_turns(call, key, path, reason, skipped=UNSET, **read)
    stored = await transcript_capture.store_capture(
        call,
        found,
        key,
        harness=request.harness,
        project=await project_of(call, key),
        captured_at=request.captured_at,
        ended=request.reason not in NOT_SUMMARIZED,
        then=_THEN.get(request.reason or ""),
    )
    if stored is None:
        return _nothing_stored(hook_runner.FORGOTTEN)
    await note_losses(call, key, found)
    await _release(call, key, path)
    checkpoint = await _end_checkpoint(call, key)
    return HttpResponse(
        api.SessionEndReply(
            queued=stored.job_id is not None,
            job_id=UNSET if stored.job_id is None else stored.job_id,
            stored=True,
            session_key=key,
            format=found.transcript.format,
            turns=len(found.transcript.turns),
            new_turns=stored.added,
            checkpoint_id=UNSET if checkpoint is None else checkpoint,
            **redaction_fields((*call.redactions, *found.kinds)),
        )
    )


async def _end_without_turns(
    call: Call[api.SessionEndRequest],
    key: str | None,
    path: str | None,
    reason: str,
    *,
    skipped: Literal[True] | UnsetType = True,
    **read: Any,
) -> HttpResponse:
    """End a session of which this report stores no turns, and say why; those that were stored before are summarized.

    ``read``: what was read of a transcript. The summary is not worth a failure of the hook.
    """
    request = call.request
    if key is None:
        return HttpResponse(api.SessionEndReply(skipped=skipped, reason=reason, **read))
    await _release(call, key, path)
    checkpoint = await _end_checkpoint(call, key)
    job_id: str | None = None
    if request.reason != BACKFILL:
        command = messages.StoreTurns(
            session_key=key,
            agent_id=call.agent_id,
            format="text",
            turns=(),
            harness=request.harness,
            captured_at=request.captured_at,
            ended=request.reason not in NOT_SUMMARIZED,
            then=_THEN.get(request.reason or ""),
        )
        with contextlib.suppress(SignetError):
            job_id = (await call.ask_writer_unkeyed(command)).job_id
    return HttpResponse(
        api.SessionEndReply(
            queued=job_id is not None,
            job_id=UNSET if job_id is None else job_id,
            session_key=key,
            checkpoint_id=UNSET if checkpoint is None else checkpoint,
            skipped=skipped,
            reason=reason,
            **read,
        )
    )


async def _release(call: Call[api.SessionEndRequest], key: str, path: str | None) -> None:
    """End the session for other hooks, unless it goes on, went on after a report that is late, or is past."""
    captured_at = call.request.captured_at
    is_late = parse_flag(call.headers.get(hook_runner.LATE_HEADER, "")) and captured_at is not None
    ended_ms = epoch_ms(captured_at or "") if is_late else None
    if call.request.reason not in (BACKFILL, STOPPED):
        await on_disk(call.state.sessions.end(key, path, ended_ms=ended_ms).stored)


async def _end_checkpoint(call: Call[api.SessionEndRequest], key: str) -> str | None:
    """Note the end of the session in a checkpoint; return its id if it is on disk."""
    request = call.request
    return await call.state.checkpoints.end(
        key,
        call.agent_id,
        harness=request.harness,
        project=await project_of(call, key),
        cleared=request.reason == CLEARED,
        ended_at=request.captured_at,
    )


async def project_of(call: Call[Any], key: str) -> str | None:
    """Return the project where the session began, else what the request names. Raises SignetError."""
    context = await call.state.ledger.context(key, call.agent_id, trace_id=call.trace_id)
    if context.began_in is not None:
        return await call.state.projects.project_of(context.began_in)
    context.project = context.project or call.request.project or getattr(call.request, "cwd", None)
    return context.project


async def _refusal(call: Call[api.SessionEndRequest], key: str, path: str | None) -> HttpResponse | None:
    """Return the response to a hook that may not end the session: bypassed, of another path, or ended before.

    Raises SignetError if it cannot be read whether the session is bypassed.
    """
    state = call.state
    try:
        async with asyncio.timeout(hook_runner.CONTEXT_WAIT_S):
            context = await state.ledger.context(key, call.agent_id, trace_id=call.trace_id)
    except TimeoutError:
        raise Unavailable("it is not known yet whether memory is switched off for this session") from None
    if await _is_left_out(call, context):
        return _nothing_stored(hook_runner.OTHER_PROJECT)
    session = state.sessions.find(key, ended=True)
    if state.ledger.is_bypassed(key) or (session is not None and session.bypassed):
        return HttpResponse(api.SessionEndReply(skipped=True, reason="bypassed", bypassed=True))
    if session is None or path is None:
        return None
    if session.ended_by is not None:
        ended_by = session.ended_by or UNSET
        reply = api.SessionEndReply(skipped=True, reason="ended", duplicate_session_end=True, ended_by=ended_by)
    elif session.path not in (None, path):
        claimed_by = session.path or UNSET
        reply = api.SessionEndReply(skipped=True, reason="claimed", duplicate_runtime_path=True, claimed_by=claimed_by)
    else:
        return None
    return HttpResponse(reply)


async def note_left_out(
    call: Call[api.SessionEndRequest], key: str | None, found: transcript_capture.Capture | None = None
) -> None:
    """Have copies of what is said while memory is off known, so that no session that has them stores them.

    Nothing of the text is stored. Raises SignetError.
    """
    if call.request.transcript is None and call.request.transcript_path is None:
        return
    with contextlib.suppress(TranscriptRefused, TranscriptTooLong):
        if found is None:
            found, key = await captured(call, key)
        assert key is not None, "the transcript or the request names it"
        await transcript_capture.store_capture(
            call, found, key, harness=None, project=None, captured_at=None, is_off=True
        )


async def _is_left_out(call: Call[api.SessionEndRequest], context: Context | None) -> bool:
    """Return whether ``projects.only`` leaves the session out. It restricts hooks, not a command of the user.

    That one begins no session, but its transcript tells where one began of which hooks have told.
    """
    if call.request.reason == BACKFILL and (context is None or context.began_in is None):
        return False
    return await hook_runner.is_elsewhere(call, context) and call.request.reason != BACKFILL


def note_skipped(call: Call[api.SessionEndRequest], reason: str) -> None:
    """Log and count a transcript that is not stored; the reason names no path."""
    state = call.state
    state.counters.transcripts_skipped += 1
    state.log.warning("transcript_skipped", reason=reason, harness=call.request.harness, trace=call.trace_id)


def _nothing_stored(reason: str) -> HttpResponse:
    return HttpResponse(api.SessionEndReply(skipped=True, reason=reason))


async def note_losses(call: Call[api.SessionEndRequest], key: str, found: transcript_capture.Capture) -> None:
    """Begin a context epoch if the transcript tells that the model has lost a part of it. Raises SignetError.

    A past session begins none, so it does not count as active now. Nor does one of a late report, because it may have
    received something since.
    """
    losses = found.transcript.losses
    if losses is None or call.request.reason == BACKFILL or parse_flag(call.headers.get(hook_runner.LATE_HEADER, "")):
        return
    context = await call.state.ledger.context(key, call.agent_id, trace_id=call.trace_id)
    async with context.lock:
        call.state.ledger.note_losses(context, losses)


def transcript_name(request: api.SessionEndRequest) -> Hashable:
    """Return by what a transcript is known when it comes again."""
    return request.transcript_path if request.transcript is None else hash(request.transcript)


async def captured(call: Call[api.SessionEndRequest], named: str | None) -> tuple[transcript_capture.Capture, str]:
    """Read and parse the transcript in a thread, as long as the request may take; see ``read_capture``.

    Raises SignetError, TranscriptRefused, TranscriptTooLong.
    """
    seconds = hook_runner.REQUEST_SHARE * call.state.config.gateway.request_timeout_ms / 1000
    readers, name = call.state.transcript_readers, transcript_name(call.request)
    skipped, about = call.state.skipped_transcripts, (call.request.harness, call.request.transcript_path)
    try:
        found, key = await readers.run(lambda check: read_capture(call, named, check), name, seconds)
        if found.off_in is not None:  # its prompt switched that one off, but the user may have switched it on again
            ledger = call.state.ledger
            await ledger.context(found.off_in, call.agent_id, trace_id=call.trace_id)
            found.is_off = found.is_off and (ledger.is_bypassed(found.off_in) or not ledger.was_bypassed(found.off_in))
        if found.is_off and call.request.reason != BACKFILL:
            call.state.ledger.switch_off_unless_known(key, call.agent_id, call.state.clock.wall_ms())
    except (TranscriptRefused, TranscriptTooLong) as refused:
        if isinstance(refused, TranscriptMissing):  # one in this folder would be read
            skipped.end(*about)
        elif not (named or "").startswith(CHECK_PREFIX):
            skipped.add(*about, str(refused))
        raise
    else:
        skipped.end(*about)
        return found, key
    finally:
        if readers.was_given_up(name):
            call.state.log.warning("transcript_given_up", harness=call.request.harness, trace=call.trace_id)


def read_capture(
    call: Call[api.SessionEndRequest], named: str | None, check: Check
) -> tuple[transcript_capture.Capture, str]:
    """Read and parse the transcript; return it with its session, which is ``named`` or follows from it.

    Blocks. Raises TranscriptRefused, TranscriptTooLong.
    """
    state, request = call.state, call.request
    if request.transcript is not None:
        raw = request.transcript.encode("utf-8", "replace")
    else:
        assert request.transcript_path is not None, "one of both is given"
        allowed = roots(state.workspace, os.environ)
        most = state.config.transcripts.max_file_bytes
        raw = read_transcript_file(request.transcript_path, allowed, most, workspace=state.workspace)
    found = transcript_capture.capture_for(call, raw, check)
    key = named or call.told_session(_session_of(call, found))
    transcript_capture.replace_known(found, state.session_secrets.of(key), check)
    state.session_secrets.add(key, found.known)
    state.session_secrets.note_last(key, found.transcript.turns[-1].text if found.transcript.turns else "")
    return found, key


def _session_of(call: Call[api.SessionEndRequest], found: transcript_capture.Capture) -> str:
    """Return the session that the transcript names, or a name made from what is captured."""
    request = call.request
    if found.transcript.session_key is not None:
        named = FieldRedactor(call.state, for_memories=False).digest(
            api.session_key(found.transcript.session_key)[:MAX_NAME_CHARS]
        )
        if named:
            return named
    basis = hashlib.sha256(request.harness.encode())
    if request.idempotency_key is not None:
        basis.update(request.idempotency_key.encode())
    else:
        for part in found.parts:
            for turn in part:
                basis.update(turn_key(turn.basis, turn.number))
    return f"capture-{basis.hexdigest()[:32]}"


async def get_transcript(call: Call[api.GetTranscriptRequest]) -> HttpResponse:
    """Return the conversation of a session, from ``after`` on, as far as one reply may be long."""
    (key, agent_id), after = named_session(call), call.request.after
    turns: list[messages.TranscriptTurn] = []
    size = 0
    while True:
        page = await call.ask_searcher(messages.GetTranscript(key, ReadScope(agent_id), after, PAGE_BYTES))
        if page.transcript is None:
            raise NotFound("Transcript not found")
        turns += page.turns
        size += sum(len(turn.content) for turn in page.turns)
        if page.next is None or size >= MAX_REPLY_BYTES or len(turns) >= MAX_REPLY_ROWS:
            break
        after = page.next
    found = page.transcript
    return HttpResponse(
        fill(
            api.TranscriptReply,
            found,
            content=conversation([(turn.role, turn.content, turn.continues) for turn in turns]),
            turn_count=found.turns,
            next_cursor=UNSET if page.next is None else page.next,
            turns=_bodies(turns) if call.request.view == "turns" else UNSET,
        )
    )


def _bodies(turns: list[messages.TranscriptTurn]) -> list[api.TurnBody]:
    """Return the turns, each with its pieces joined."""
    joined: list[list[messages.TranscriptTurn]] = []
    for turn in turns:
        if turn.continues and joined:
            joined[-1].append(turn)
        else:
            joined.append([turn])
    return [
        api.TurnBody(rows[0].role, "".join(row.content for row in rows), rows[0].said_at, rows[0].copy_of or UNSET)
        for rows in joined
    ]


async def search_sessions(call: Call[api.SearchSessionsRequest]) -> HttpResponse:
    """Return the sessions whose turns match the query best."""
    request = call.request
    asks = call.session_key if call.headers.get("x-signet-session-key") else request.current_session_key
    await call.refuse_if_off(asks)  # `sessionKey` is where it searches
    found = await call.ask_searcher(
        messages.SearchSessions(
            query=request.query,
            read=call.read,
            limit=request.limit,
            session_key=request.session_key,
            without=request.current_session_key,
            project=request.project,
        )
    )
    hits = [
        fill(api.SessionHit, session, rank=rank, at=session.said_at, copy_of=session.copy_of or UNSET)
        for rank, session in enumerate(found.sessions, 1)
    ]
    return HttpResponse(api.SearchSessionsReply(query=request.query, hits=hits, count=len(hits)))


async def list_past(call: Call[api.ListPastRequest]) -> HttpResponse:
    """Return a page of the sessions whose transcripts are kept."""
    asked = call.request
    found = await call.ask_searcher(
        messages.ListPastSessions(call.read, asked.limit, _PROMPT_CHARS, asked.offset, asked.project, asked.prefix)
    )
    return HttpResponse(api.PastSessionsReply(found.sessions, found.total))


_erasures: Final[set[asyncio.Task[api.ForgetTranscriptReply]]] = set()


async def forget_transcript(call: Call[api.ForgetTranscriptRequest]) -> HttpResponse:
    """Erase the caller's transcript of the session, and its checkpoints, for good. It goes on if it takes too long."""
    key, agent_id = named_session(call)
    call.state.checkpoints.forget(key, agent_id)
    with contextlib.suppress(SignetError):  # what was asked and is not stored yet would be stored with its words
        await call.state.searches.flush()
    erasure = asyncio.create_task(_erase(call, key, agent_id))
    _erasures.add(erasure)
    erasure.add_done_callback(_erasures.discard)
    return HttpResponse(await asyncio.shield(erasure))


async def _erase(call: Call[api.ForgetTranscriptRequest], key: str, agent_id: str) -> api.ForgetTranscriptReply:
    erased = part = 0
    while True:
        is_captured = (agent_id, key) in call.state.transcript_readers.sessions
        done = await call.ask_writer(messages.ForgetTranscript(key, agent_id, call.principal, is_captured), part=part)
        if not done.found:
            raise NotFound("Transcript not found")
        erased, part = erased + done.turns, part + 1
        if not done.more:
            return api.ForgetTranscriptReply(session_key=key, turns=erased, said_by=done.summaries or UNSET)


ROUTES: Final[tuple[Route, ...]] = (
    *serve(api.SESSION_END, session_end),
    *serve(api.GET_TRANSCRIPT, get_transcript),
    *serve(api.SEARCH_SESSIONS, search_sessions),
    *serve(api.LIST_PAST, list_past),
    *serve(api.FORGET_TRANSCRIPT, forget_transcript),
)
