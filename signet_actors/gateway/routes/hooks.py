"""The hooks of harnesses. Each is answered with 200 within its time, even if its work fails.

Source: docs/compatibility.md "Hooks and sessions"; docs/decisions.md 34, 35, 39, 49; docs/guides/hooks.md.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import msgspec
from msgspec import UNSET

from signet_actors.domain.extraction.injected_text import without_injected
from signet_actors.domain.memories import COMPACTION
from signet_actors.domain.near_duplicates import repeats, search_text
from signet_actors.domain.program_text import planned_in, summary_of
from signet_actors.domain.prompt_terms import SWITCHED_OFF, PromptTerms, switches_off
from signet_actors.domain.session_inject import Line, memory_lines
from signet_actors.domain.timestamps import iso
from signet_actors.errors import ErrorCode, InvalidRequest, SignetError
from signet_actors.features.session_memories.api import ACCEPTANCE_RULE, FEEDBACK, FeedbackReply, FeedbackRequest
from signet_actors.gateway.features import ask
from signet_actors.gateway.http.responses import fill, joined_tags
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.ingest import (
    PreparedMemory,
    chunks_of,
    prepare_remembered_text,
    prepare_text,
    redaction_fields,
)
from signet_actors.gateway.routes.checkpoints import TURN, keep_soon
from signet_actors.gateway.routes.recall import recall_memories
from signet_actors.gateway.routes.remember import name_project, note_remembered, store_text
from signet_actors.gateway.sessions.explained import as_of, explained, recorded
from signet_actors.gateway.sessions.hook_runner import (
    FORGOTTEN,
    LATE_HEADER,
    SWITCHED_OFF_UNSTORED,
    HookSession,
    Skipped,
    run_hook,
    runtime_path,
)
from signet_actors.gateway.sessions.ledger import Context
from signet_actors.gateway.sessions.prompt_memories import Offered, offered_memories, sessions_of_day
from signet_actors.gateway.sessions.prompt_text import terms_of_prompt
from signet_actors.gateway.sessions.searches import note_search, note_skipped
from signet_actors.gateway.sessions.session_start import start_reply, start_with_prompt
from signet_actors.gateway.transcript_capture import is_erased
from signet_actors.operations import hooks as api
from signet_actors.operations.field_types import MAX_CONTENT_BYTES, parse_flag
from signet_actors.operations.remember import RememberChunksReply, RememberReply, RememberRequest
from signet_actors.operations.transcripts import SessionEndRequest
from signet_actors.protocol.memories import Wording
from signet_actors.protocol.searcher import FindCandidates, GetMemory
from signet_actors.protocol.sessions import FindSessionStart, FindWordings

READ_BUDGET_MS: Final = 1500
PROMPT_BUDGET_MS: Final = 700
RECALL_BUDGET_MS: Final = 2500
WRITE_BUDGET_MS: Final = 4000
COMPACTION_BUDGET_MS: Final = 1500
"""Less than the time limits of the hook command and of existing clients."""
MAX_PROMPTS: Final = 8
"""Prompts that are served at once; further ones get nothing."""
SUMMARY_TYPE: Final = "session_summary"
SUMMARY_IMPORTANCE: Final = 0.8
SUMMARY_VISIBILITY: Final = "private"
"""As that of the session's transcript and of the summary at its end."""
REFERENCE_CHARS: Final = 1500
REFERENCE_WAIT_S: Final = 0.5
TURNS_WAIT_S: Final = 1.0
"""For the turns of the transcript; a longer one is stored after the answer."""
FEEDBACK_WAIT_S: Final = 0.3
DUPLICATES: Final = 20
"""Memories that are compared with what a hook wants to store."""
DUPLICATE_WAIT_S: Final = 0.5
NOTHING_FOUND: Final = "No matching memories found."
GUIDELINES: Final = """\
- Store what a later session needs and cannot read from the code: decisions and their reasons, preferences, rules,
  causes of problems, and facts about systems and people.
- One memory is one or two sentences that can be understood alone. Name what it is about.
- Leave out what is stored already, what is only true for this task, secrets, and text that memory itself supplied."""
SUMMARY_PROMPT: Final = "Pre-compaction memory flush. Store durable memories now."


async def session_start(call: Call[api.SessionStartRequest]) -> HttpResponse:
    """Return what the session should know, or only claim the session."""
    request = call.request
    if request.claim_only:
        if runtime_path(call) is None:
            raise InvalidRequest("runtimePath is required", field="runtimePath")
        return await run_hook(call, READ_BUDGET_MS, _claim, api.SessionStartReply(identity=api.HookIdentity()))

    async def work(session: HookSession) -> api.SessionStartReply:
        _skip_unless(call.state.config.hooks.session_start.enabled)
        return await start_reply(call, session)

    response = await run_hook(call, READ_BUDGET_MS, work, api.SessionStartReply(identity=api.HookIdentity()))
    await note_skipped(call, "start", response)
    return response


def _skip_unless(enabled: bool) -> None:
    """Do nothing in a hook that the configuration switches off. Raises Skipped."""
    if not enabled:
        raise Skipped("disabled")


async def _claim(session: HookSession) -> api.SessionStartReply:  # noqa: ARG001 - entering the session has claimed it
    return api.SessionStartReply(session_known=True)


async def user_prompt_submit(call: Call[api.UserPromptRequest]) -> HttpResponse:
    """Return the memories that are relevant to the prompt and that the session has not received."""
    request = call.request
    prompt, is_whole = request.user_message or request.user_prompt or request.prompt, False
    if prompt is None and request.dry_run and request.as_of is not None:
        call.request, is_whole = await recorded(call, request.as_of)
        request, prompt = call.request, call.request.prompt
    elif prompt is None and request.as_of is not None:
        raise InvalidRequest("asOf without a prompt needs dryRun: true", field="dryRun")
    elif not request.harness:
        raise InvalidRequest("harness and userMessage or userPrompt are required", field="harness")
    if prompt is None:
        raise InvalidRequest("harness and userMessage or userPrompt are required", field="userMessage")

    call.observes = call.observes or request.dry_run
    planned, ledger = planned_in(prompt), call.state.ledger
    plan = None if planned is None else call.told_session(planned[1])
    is_switch = switches_off(prompt) or (plan is not None and ledger.is_bypassed(plan))
    until_s = asyncio.get_running_loop().time() + PROMPT_BUDGET_MS / 1000
    until_ns = call.state.clock.monotonic_ns() + PROMPT_BUDGET_MS * 1_000_000

    async def work(session: HookSession) -> api.UserPromptReply:
        async with asyncio.timeout_at(until_s) as limit:
            if is_switch or (request.with_start and session.context is not None and not session.context.started):
                limit.reschedule(None)  # that of ``run_hook`` counts
            elif call.until_ns is not None:
                call.until_ns = min(call.until_ns, until_ns)
            return await answered(session)

    async def answered(session: HookSession) -> api.UserPromptReply:
        known = session.known if session.key is not None else UNSET
        if is_switch and session.key is None:
            raise Skipped("no_session")
        if is_switch:
            is_stored = session.is_switch_stored
            told = SWITCHED_OFF if is_stored else SWITCHED_OFF_UNSTORED
            reply = api.UserPromptReply(inject=told, dynamic_context=told, engine="disabled")
            return msgspec.structs.replace(reply, bypassed=True) if is_stored else reply
        if session.context is not None:
            session.context.awaits_summary = False
            if request.dry_run and request.as_of is not None:
                await as_of(call, session.context, request.as_of)
        was_off = session.key is not None and call.state.ledger.was_bypassed(session.key)
        last = "" if was_off else request.last_assistant_message or ""  # it may be from then, and terms are stored
        secrets = call.state.session_secrets.of(session.key)
        asked = last or call.state.session_secrets.last(session.key)
        terms = await terms_of_prompt(call.state.redactor, prompt, last, secrets, asked)
        if not call.observes:
            call.state.session_secrets.add(session.key, secrets)
            await _rate(call, session)
        given = await start_with_prompt(call, session) if request.with_start else None
        checkpoints = call.state.checkpoints  # from here on: a start does not tell the session of this prompt
        project = session.project(request.project)
        is_kept = plan is None or not ledger.was_bypassed(plan)  # the plan tells of what was said there
        if is_kept and not call.observes:
            checkpoints.prompted(session.key, call.agent_id, harness=request.harness, project=project, text=prompt)
            checkpoints.searched(session.key, call.agent_id, " ".join(terms.terms))
        start, rows = given or (None, [])
        found = await offered(session, terms, tuple(wording for _, wording in rows))
        reply = await explained(call, session, found, is_whole=is_whole)
        await note_search(
            call,
            "prompt",
            session,
            found.considered,
            text=prompt if is_kept else None,
            known=secrets,
            project=project,
            skipped="disabled" if reply.engine == "disabled" else None,
            characters=len(reply.inject),
            answered=bool(last),
        )
        if start is not None:
            text = f"{start.inject}\n\n{reply.inject}".strip()
            reply = msgspec.structs.replace(reply, inject=text, dynamic_context=text)
        return msgspec.structs.replace(reply, session_known=known)

    async def offered(session: HookSession, terms: PromptTerms, given: tuple[Wording, ...]) -> Offered:
        if not call.state.config.hooks.user_prompt_submit.enabled:
            return Offered(api.UserPromptReply(engine="disabled"))
        of_day = await sessions_of_day(call, prompt, terms)
        if of_day is not None:
            return Offered(of_day)
        if not terms.searches:
            return Offered(api.UserPromptReply(query_terms=list(terms.terms)))
        if session.context is not None and not request.with_start:  # first: it takes no other session's place
            await call.hold(session.context.lock)
        if call.state.prompts_in_flight >= MAX_PROMPTS:
            raise Skipped("busy")
        counted = not call.observes
        call.state.prompts_in_flight += counted
        try:
            return await offered_memories(call, terms, session, given)
        finally:
            call.state.prompts_in_flight -= counted

    switches = is_switch and not call.observes
    if request.explain_id is not None:
        full = await call.full_ids((request.explain_id,))
        call.request = msgspec.structs.replace(request, explain_id=full.of(request.explain_id, "explainId"))
    nothing = api.UserPromptReply(dry_run=True if request.dry_run else UNSET)
    response = await run_hook(call, READ_BUDGET_MS, work, nothing, switches_off=switches)
    await note_skipped(call, "prompt", response)
    return response


async def _rate(call: Call[api.UserPromptRequest], session: HookSession) -> None:
    """Store the feedback that came with the prompt; a warning says if it could not be."""
    ratings = call.request.memory_feedback
    if not ratings:
        return
    if FEEDBACK.permission not in call.identity.permissions:
        call.warnings.append(f"memory_feedback needs the permission {FEEDBACK.permission}; it is ignored")
        return
    if session.key is None:
        call.warnings.append("memory_feedback needs a sessionKey; it is ignored")
        return
    try:
        async with asyncio.timeout(FEEDBACK_WAIT_S):
            full = (await call.full_ids(ratings)).within(ratings, "memory_feedback")
            answered = await ask(call, FEEDBACK, FeedbackRequest(session_key=session.key, ratings=full))
    except TimeoutError:
        call.warnings.append("memory_feedback may not be stored")
    except SignetError as error:
        call.warnings.append(f"memory_feedback is not known to be stored: {error.detail}")
    else:
        if rejected := answered.read(FeedbackReply).rejected:
            call.warnings.append(f"memory_feedback: {rejected} not counted; {ACCEPTANCE_RULE}")


async def remember(call: Call[api.HookRememberRequest]) -> HttpResponse:
    """Store a memory, as ``/api/memory/remember`` does."""
    if not call.request.content.strip():
        raise InvalidRequest("harness and content are required", field="content")

    async def work(session: HookSession) -> api.HookRememberReply | api.HookRememberChunksReply:
        call.refuse_if_frozen()
        await name_project(call)
        request = call.request
        if len(request.content.encode()) > MAX_CONTENT_BYTES:
            call.warnings.append(f"content must be at most {MAX_CONTENT_BYTES} bytes; it is not stored")
            raise Skipped(ErrorCode.PAYLOAD_TOO_LARGE.value)
        fields = RememberRequest(
            content=request.content,
            type=request.type,
            who=request.who or request.harness,
            project=request.project,
            tags=request.tags,
            importance=request.importance,
            idempotency_key=request.idempotency_key,
        )
        text = await prepare_remembered_text(call.state, fields.content)
        stored: RememberReply | RememberChunksReply | None = await _repeated(call, text)
        if stored is None:
            stored = await store_text(call.with_request(fields, session_id=session.key), text, may_repeat=True)
        await note_remembered(call, stored)
        return _saved(stored)

    return await run_hook(call, WRITE_BUDGET_MS, work, api.HookRememberSkipped(), stores=True)


async def _repeated(call: Call[api.HookRememberRequest], text: PreparedMemory) -> RememberReply | None:
    """Return the reply with the memory of the same agent and project that the text repeats, None if there is none.

    None too for a retry, whose first reply the writer has, and if it cannot be found out in time.
    """
    request = call.request
    searched = search_text(text.content)
    if text.chunks or not searched or (call.idempotency is not None and request.idempotency_key is None):
        return None
    query = FindCandidates(searched, call.agent_id, "global", request.project, limit=DUPLICATES)
    try:
        async with asyncio.timeout(DUPLICATE_WAIT_S):
            candidates = (await call.ask_searcher(query)).candidates
            found = next((one.id for one in candidates if repeats(text.content, one.content)), None)
            memory = None if found is None else (await call.ask_searcher(GetMemory(found, call.read))).memory
    except (SignetError, TimeoutError):
        return None
    if memory is None or (memory.idempotency_key is not None and memory.idempotency_key == request.idempotency_key):
        return None
    return fill(
        RememberReply,
        memory,
        tags=joined_tags(memory.tags),
        pinned=bool(memory.pinned),
        embedded=memory.embedding_model is not None,
        deduped=True,
        **redaction_fields(text.redactions + call.redactions),
    )


def _saved(stored: RememberReply | RememberChunksReply) -> api.HookRememberReply | api.HookRememberChunksReply:
    if isinstance(stored, RememberChunksReply):
        return api.HookRememberChunksReply(**msgspec.structs.asdict(stored), id=stored.group_id)
    return api.HookRememberReply(**msgspec.structs.asdict(stored))


async def recall(call: Call[api.HookRecallRequest]) -> HttpResponse:
    """Recall, as ``/api/memory/recall`` does."""

    async def work(session: HookSession) -> api.HookRecallReply:  # noqa: ARG001 - the recall finds the session itself
        found = await recall_memories(call, call.request.query, call.request, None)
        return api.HookRecallReply(
            **msgspec.structs.asdict(found),
            memories=found.results,
            count=len(found.results),
            message=UNSET if found.results else NOTHING_FOUND,
        )

    return await run_hook(call, RECALL_BUDGET_MS, work, api.HookRecallSkipped(query=call.request.query))


async def pre_compaction(call: Call[api.PreCompactionRequest]) -> HttpResponse:
    """Return what to tell the model, with the memories that need not be stored again."""

    settings = call.state.config.hooks.pre_compaction

    async def work(session: HookSession) -> api.PreCompactionReply:
        if call.observes:
            raise Skipped("observed")  # it begins an epoch and makes a checkpoint
        context = session.context
        if context is not None:
            context.awaits_summary = False
            if call.request.begins_epoch:
                async with context.lock:
                    call.state.ledger.expect_loss(context)
        _skip_unless(settings.enabled)
        made, stored, _ = await asyncio.gather(
            _checkpoint(call, session), _stored_already(call, session), _store_turns(call, session)
        )
        guidelines = settings.summary_guidelines or GUIDELINES
        if stored:
            guidelines = f"{guidelines}\n\nStored already, for reference:\n{stored}"
        return api.PreCompactionReply(
            summary_prompt=f"{SUMMARY_PROMPT}\n\n<guidelines>\n{guidelines}\n</guidelines>",
            guidelines=guidelines,
            instructions=guidelines,
            checkpoint_id=UNSET if made is None else made,
            session_known=session.known if session.key is not None else UNSET,
        )

    return await run_hook(call, READ_BUDGET_MS, work, api.PreCompactionReply())


async def _checkpoint(call: Call[api.PreCompactionRequest], session: HookSession) -> str | None:
    """Make the checkpoint with which the session goes on after the compaction; return its id if it is on disk."""
    request = call.request
    context = request.session_context or ""
    if request.message_count is not None:
        context = f"{request.message_count} messages. {context}"
    return await call.state.checkpoints.make_soon(
        session.key,
        call.agent_id,
        "pre_compaction",
        harness=request.harness,
        project=session.project(request.project),
        context=context or None,
    )


async def _store_turns(call: Call[api.PreCompactionRequest], session: HookSession) -> None:
    """Store what the transcript has so far, for the recovery; wait for it for a moment only."""
    request, context, key = call.request, session.context, session.key
    path, is_wanted = request.transcript_path, call.state.config.hooks.session_end.enabled
    if path is None or context is None or key is None or not is_wanted:
        return
    project = session.project(request.project)
    turn = SessionEndRequest(harness=request.harness, transcript_path=path, project=project, reason=TURN)
    with contextlib.suppress(Skipped):
        await asyncio.wait({keep_soon(call.with_request(turn), key, noted=False)}, timeout=TURNS_WAIT_S)


async def _stored_already(call: Call[api.PreCompactionRequest], session: HookSession) -> str:
    """Return lines with important memories of the project, empty if they cannot be read or are not wanted."""
    settings = call.state.config.hooks.pre_compaction
    if not settings.include_recent_memories:
        return ""
    query = FindSessionStart(
        read=call.read,
        now_ms=call.state.clock.wall_ms(),
        project=call.request.project or (None if session.context is None else session.context.project),
        limit=settings.memory_limit,
        max_constraints=0,
        decay_rate=call.state.config.memory.decay_rate,
        of_all_types=True,
    )
    try:
        async with asyncio.timeout(REFERENCE_WAIT_S):
            found = await call.ask_searcher(query)
    except (SignetError, TimeoutError):
        return ""
    lines = [Line(memory.id, memory.content, memory.tags, memory.said_at) for memory in found.memories]
    shown = memory_lines(lines, REFERENCE_CHARS)
    if shown.ids and not call.state.config.memory.pipeline_v2.mutations_frozen:
        # The summary may repeat them in other words: the pipeline then knows that the model was shown them.
        call.state.access_counts.add(shown.ids, "injected", trace_id=call.trace_id)
    return shown.text


async def compaction_complete(call: Call[api.CompactionCompleteRequest]) -> HttpResponse:
    """Begin a new context epoch if the session's start has not done so, and store the summary as a memory.

    The session has the summary then. A late report begins none: the session may have received something since, or be in
    a newer epoch.
    """

    async def work(session: HookSession) -> api.CompactionCompleteReply:
        context = session.context
        is_late = parse_flag(call.headers.get(LATE_HEADER, ""))
        if context is not None and not is_late:
            async with context.lock:
                call.state.ledger.complete_compaction(context, call.request_key)
        _skip_unless(call.state.config.hooks.compaction_complete.enabled)
        if session.key is not None and call.state.ledger.was_bypassed(session.key):
            raise Skipped("bypassed")  # the summary tells what was said then, too
        if call.state.config.memory.pipeline_v2.confirm == "review":
            raise Skipped("review")  # a model wrote the summary, and no person has seen it
        call.refuse_if_frozen()
        if session.key is not None and await is_erased(call, session.key):
            raise Skipped(FORGOTTEN)  # the summary tells what was said
        stored = await _store_summary(call, session)
        if context is not None and stored is not None and not is_late:
            await _note_received(call, context, stored)
        return api.CompactionCompleteReply(
            success=True,
            memory_id=stored,
            context_epoch=UNSET if context is None else context.epoch,
            session_known=session.known if session.key is not None else UNSET,
        )

    return await run_hook(call, COMPACTION_BUDGET_MS, work, api.CompactionCompleteReply(success=False), stores=True)


async def _note_received(call: Call[api.CompactionCompleteRequest], context: Context, stored: str) -> None:
    """Note that the session's context begins with the stored summary, which comes again if the searchers are away."""
    epoch = context.epoch
    with contextlib.suppress(SignetError, TimeoutError):
        async with asyncio.timeout(REFERENCE_WAIT_S):
            found = await call.ask_searcher(FindWordings(stored, call.agent_id))
            async with context.lock:
                if context.epoch == epoch:
                    call.state.ledger.record_summary(context, found.wordings)


async def _store_summary(call: Call[api.CompactionCompleteRequest], session: HookSession) -> str | None:
    """Return the id of the stored summary, None if it holds nothing but the model's draft or what memory injected."""
    request, state, at = call.request, call.state, call.request.captured_at
    is_late = parse_flag(call.headers.get(LATE_HEADER, ""))
    text = await prepare_text(state, without_injected(summary_of(request.summary))[0])
    if not text.content.strip():
        return None
    fields = RememberRequest(
        content=text.content,
        type=SUMMARY_TYPE,
        who="system",
        project=session.project(request.project),
        tags=("session", "summary", request.harness),
        importance=SUMMARY_IMPORTANCE,
        visibility=SUMMARY_VISIBILITY,
        source_type=COMPACTION,
        source_id=session.key,
        idempotency_key=request.idempotency_key,
        created_at=min(at, iso(state.clock.wall_ms())) if at is not None and is_late else None,
    )
    # Prefixes such as "critical:" do not count in a text that a model wrote.
    chunks = chunks_of(text.content, state.config.memory.pipeline_v2.guardrails)
    prepared = PreparedMemory(text.content, text.redactions, pinned=False, tags=(), type=SUMMARY_TYPE, chunks=chunks)
    stored = await store_text(call.with_request(fields, session_id=session.key), prepared, may_repeat=True)
    return stored.group_id if isinstance(stored, RememberChunksReply) else stored.id


ROUTES: tuple[Route, ...] = (
    *serve(api.SESSION_START, session_start),
    *serve(api.USER_PROMPT, user_prompt_submit),
    *serve(api.HOOK_REMEMBER, remember),
    *serve(api.HOOK_RECALL, recall),
    *serve(api.PRE_COMPACTION, pre_compaction),
    *serve(api.COMPACTION_COMPLETE, compaction_complete),
)
