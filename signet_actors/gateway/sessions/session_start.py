"""The start of a session: what it should know, from the store and from the files of the workspace.

Source: docs/guides/hooks.md "The start of a session"; memory-system.txt "Importance Decay".
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import UNSET

from signet_actors.config.hooks_schema import SessionStartConfig
from signet_actors.domain import session_inject
from signet_actors.domain.dated_sections import are_in_lines, unrepeated
from signet_actors.domain.timestamps import epoch_ms
from signet_actors.domain.versions import Dated, newest_versions
from signet_actors.errors import SignetError
from signet_actors.features.searches.api import ConsideredMemory, Outcome
from signet_actors.gateway.http.route import Call
from signet_actors.gateway.memory_search import graph_limits
from signet_actors.gateway.routes.identity import identity_of_agent
from signet_actors.gateway.sessions.hook_runner import HookSession
from signet_actors.gateway.sessions.ledger import Context
from signet_actors.gateway.sessions.notices import notifications_now, peers_of
from signet_actors.gateway.sessions.recovery import GOES_ON, WAIT_S, recovery_of
from signet_actors.gateway.sessions.searches import note_search
from signet_actors.gateway.synthesis.memory_file import working_memory
from signet_actors.operations import hooks as api
from signet_actors.protocol.memories import Memory, Wording
from signet_actors.protocol.sessions import FindSessionStart, SessionStartFound
from signet_actors.runtime.connected_harnesses import has_identity
from signet_actors.runtime.identity_files import LASTING_FILES, read_identity

READ_SHARE: Final = 4
"""Of so many times the characters of a file that may be shown, lines are compared with memories."""
COMPACTED: Final = "compact"
NEW_CONTEXT: Final = (COMPACTED, "clear")
"""Reasons of a start after which the model no longer has what the session received."""
KNOWN: Final = "already_started"
"""Why a start gives no memories: the session has received the text of its start."""
FORGETS_AT_RESUME: Final = ("gemini",)
"""Harnesses that leave out of a resumed conversation what the start has injected, but not what a prompt has."""


async def start_reply(call: Call[api.SessionStartRequest], session: HookSession) -> api.SessionStartReply:
    """Return what the session should know; only a reminder if it has that already. Raises SignetError."""
    context, source = session.context, call.request.source
    is_deferred = call.request.deferred and session.key is not None
    if context is None:
        return api.SessionStartReply() if is_deferred else (await _full_start(call, session, None))[0]
    await call.hold(context.lock)
    repeated = context.is_answered(call.request_key)
    is_lost = source == "resume" and call.request.harness in FORGETS_AT_RESUME and not is_deferred
    is_new = source in NEW_CONTEXT or is_lost
    # The summary of the compaction, reported before this start, belongs to the epoch that the report began.
    received = context.received.keys() - (context.summary if source == COMPACTED else ())
    if (context.started or received) and not repeated and is_new:
        call.state.ledger.begin_epoch(context)
        context.awaits_summary = source == COMPACTED
    if is_deferred:
        context.source = source
        return api.SessionStartReply(session_known=session.known)
    if context.started and (call.request_key is None or call.request_key != context.start_key):
        recovery = (await recovery_of(call, session)).section if source in GOES_ON else ""
        has_tools = await call.state.has_tools(call.request.harness)
        text = f"{session_inject.TOOLS_BANNER if has_tools else session_inject.BANNER}\n\n{recovery}".rstrip()
        told = None
        if source == "resume":
            told = await _with_new_constraints(call, session, context, recovery, has_tools=has_tools)
        if told is None:
            await note_search(call, "start", session, skipped=KNOWN, characters=len(text))
        text = told or text
        return api.SessionStartReply(identity=api.HookIdentity(), inject=text, dynamic_context=text, session_known=True)
    return (await _full_start(call, session, context))[0]


async def start_with_prompt(
    call: Call[api.UserPromptRequest], session: HookSession
) -> tuple[api.SessionStartReply, list[tuple[str, Wording]]] | None:
    """Return the start and the memories in it, None if the session has it; hold the session for the prompt."""
    context, request = session.context, call.request
    if context is None:
        return None
    await call.hold(context.lock)
    is_given = context.started and not context.is_answered(call.request_key)
    if is_given or not call.state.config.hooks.session_start.enabled:
        return None
    start = api.SessionStartRequest(
        harness=request.harness,
        project=request.project or context.project,
        source=context.source,
        max_inject_chars=request.max_inject_chars,
    )
    return await _full_start(call.with_request(start), session, context)


def _query(call: Call[api.SessionStartRequest], session: HookSession, context: Context | None) -> FindSessionStart:
    settings = call.state.config.hooks.session_start
    return FindSessionStart(
        read=call.read,
        now_ms=call.state.clock.wall_ms(),
        project=call.request.project,
        former_project=call.former_project,
        session_key=session.key,
        without=() if context is None else tuple(context.summary),
        limit=settings.recall_limit,
        decay_rate=call.state.config.memory.decay_rate,
        candidates=settings.candidate_pool_limit,
        recency_bias=settings.recency_bias,
        graph=graph_limits(call.state.config),
    )


async def _with_new_constraints(
    call: Call[api.SessionStartRequest], session: HookSession, context: Context, recovery: str, *, has_tools: bool
) -> str | None:
    """Return the text for a session that is resumed, with the constraints that it was not told; None without any.

    Without an answer of a searcher in time it is told none.
    """
    try:
        async with asyncio.timeout(WAIT_S):
            found = await call.ask_searcher(_query(call, session, context))
    except (SignetError, TimeoutError):
        return None
    wordings = {each.id: found.wordings[each.id] for each in found.constraints}
    new = [
        each
        for each in found.constraints
        if wordings[each.id] not in context.constraints
        and not context.has_received(each.id, wordings[each.id], call.request_key)
    ]
    if not new:
        return None
    start = session_inject.session_start(
        files=(),
        constraints=[_line(found.newer, memory) for memory in new],
        preferred=(),
        used=(),
        since=None,
        recovery=recovery,
        has_tools=has_tools,
        limit=_limit(call),
    )
    by_id = {memory.id: memory for memory in new}
    call.when_sent(
        lambda: call.state.ledger.offer(context, "session_start", by_id, call.request_key, injected=start.whole)
    )
    rows = [(memory_id, wordings[memory_id]) for memory_id in start.whole]
    await _note(call, session, start, found, by_id)
    call.when_sent(lambda: call.state.ledger.record(context, rows, call.request_key))
    context.constraints |= {wording for memory_id, wording in wordings.items() if memory_id not in start.whole}
    return start.text


def _limit(call: Call[api.SessionStartRequest]) -> int:
    limit, asked = call.state.config.hooks.session_start.max_inject_chars, call.request.max_inject_chars
    return limit if asked is None else min(limit, asked)


async def _full_start(
    call: Call[api.SessionStartRequest], session: HookSession, context: Context | None
) -> tuple[api.SessionStartReply, list[tuple[str, Wording]]]:
    state, request = call.state, call.request
    settings = state.config.hooks.session_start
    is_owner = await call.is_owner()  # see ``owner_parts`` of the operation
    found, (files, identity), recovery = await asyncio.gather(
        call.ask_searcher(_query(call, session, context)),
        asyncio.to_thread(
            _read_workspace,
            state.workspace,
            call.agent_id,
            request.project,
            request.harness,
            _files(settings) if is_owner else [],
        ),
        recovery_of(call, session),
    )
    candidates = [*found.memories, *found.used]
    if found.summary is not None and found.summary.id == recovery.summary:
        candidates.append(found.summary)
    texts = [Dated(memory.content, epoch_ms(memory.said_at) or 0, memory.project) for memory in candidates]
    newest = await asyncio.to_thread(newest_versions, texts)
    candidates = [candidates[at] for at in newest]
    notices = notifications_now(state)
    wants_news = is_owner and settings.include_recent_context and found.last_active_at is not None
    since_ms = epoch_ms(found.last_active_at or "") if wants_news else None
    files = [(file, text[: READ_SHARE * file.chars]) for file, text in files]
    constraints, memories = _each_once(found.constraints, candidates, files)
    used = {memory.id for memory in found.used}
    is_summary = [memory.id == recovery.summary for memory in memories]
    followed = state.sessions.find(recovery.session_key or "")
    if followed is not None and followed.key != session.key and not call.observes:
        followed.followed_ms = followed.active_ms
    peers = peers_of(state, session.key, call.agent_id, request.project) if is_owner else []
    has_tools = await state.has_tools(request.harness)
    line = partial(_line, found.newer)
    make = partial(
        session_inject.session_start,
        constraints=list(map(line, constraints)),
        recovery=recovery.section,
        session_key=session.key,
        has_tools=has_tools,
        preferred=[
            line(each)
            for each, is_told in zip(memories, is_summary, strict=True)
            if each.id not in used and not is_told
        ],
        used=[
            line(each) for each, is_told in zip(memories, is_summary, strict=True) if each.id in used and not is_told
        ],
        last_session=[line(each) for each, is_told in zip(memories, is_summary, strict=True) if is_told],
        since=session_inject.news(found.new_memories, None if since_ms is None else state.clock.wall_ms() - since_ms),
        all_constraints=found.all_constraints,
        peers=peers,
        status=[item.message for item in notices],
        limit=_limit(call),
    )
    start = make(files=files)
    by_id = {memory.id: memory for memory in (*constraints, *memories)}
    told = [by_id[memory_id] for memory_id in start.ids]
    told += [each for each in (*found.constraints, *candidates) if each.id not in by_id]
    files, whole = _unrepeated(files, told, constraints), files
    if files != whole:
        start = make(files=files)
    entered = None if session.key is None else state.sessions.find(session.key)
    if entered is not None and not call.observes:
        entered.notified = frozenset(item.id for item in notices)
    shown = [by_id[memory_id] for memory_id in start.ids]
    rows = [(memory_id, found.wordings[memory_id]) for memory_id in start.whole]
    repeated = [each.id for each in (*found.constraints, *candidates) if each.id not in by_id]
    await _note(call, session, start, found, by_id, repeated)
    if context is not None:
        context.told_tools = has_tools and bool(start.text)
        context.harness = request.harness
        context.constraints = frozenset(found.wordings[each.id] for each in found.constraints)
        call.when_sent(
            lambda: state.ledger.offer(context, "session_start", by_id, call.request_key, injected=start.whole)
        )
        call.when_sent(lambda: state.ledger.record_start(context, rows, call.request_key))
    if shown and not call.observes and not state.config.memory.pipeline_v2.mutations_frozen:
        state.access_counts.add(start.ids, "injected", trace_id=call.trace_id)
    reply = api.SessionStartReply(
        identity=identity if is_owner else api.HookIdentity(),
        memories=[_shown(memory) for memory in shown],
        inject=start.text,
        recent_context=next(
            (text[: file.chars] for file, text in files if file.name == session_inject.RECENT_FILE), UNSET
        ),
        stable_system_prompt=start.stable,
        dynamic_context=start.dynamic,
        context_hash=hashlib.sha256(start.stable.encode()).hexdigest(),
        notifications=api.Notifications(notices, len(notices)) if notices else UNSET,
        session_known=session.known if session.key is not None else UNSET,
    )
    return reply, rows


async def _note(
    call: Call[api.SessionStartRequest],
    session: HookSession,
    start: session_inject.SessionStart,
    found: SessionStartFound,
    fitting: Iterable[str],
    repeated: Iterable[str] = (),
) -> None:
    """Note what became of the memories that were found for the start, the ``fitting`` ones first."""

    def considered() -> list[ConsideredMemory]:
        every = (memory.id for memory in (*found.constraints, *found.memories, *found.used))
        stages: list[tuple[Iterable[str], Outcome]] = [
            (start.ids, "cut"),
            (fitting, "no_room"),
            (repeated, "repeated"),
            (every, "older_version"),
        ]
        reasons = _reasons(found)
        outcomes: dict[str, Outcome] = {memory_id: reasons.get(memory_id, "given") for memory_id in start.whole}
        for ids, outcome in stages:
            for memory_id in ids:
                outcomes.setdefault(memory_id, outcome)
        wordings = {memory_id: wording for memory_id in outcomes if (wording := found.wordings.get(memory_id))}
        return [ConsideredMemory(*wording, None, outcomes[memory_id]) for memory_id, wording in wordings.items()]

    await note_search(
        call,
        "start",
        session,
        considered,
        project=session.project(call.request.project),
        characters=len(start.text),
    )


def _reasons(found: SessionStartFound) -> dict[str, Outcome]:
    """Return by id why a memory is among what a start gives."""
    reasons: dict[str, Outcome] = {memory.id: "important" for memory in found.memories}
    reasons |= {memory.id: "asked_lately" for memory in found.used}
    if found.summary is not None:
        reasons[found.summary.id] = "last_session"
    return reasons | {memory.id: "pinned" if memory.pinned else "rule" for memory in found.constraints}


def _each_once(
    binding: Sequence[Memory], found: Sequence[Memory], files: Sequence[tuple[session_inject.IdentityFile, str]]
) -> tuple[list[Memory], list[Memory]]:
    """Return constraints and memories without those whose text another one has, or for a memory, an identity file."""
    repeated = are_in_lines([each.content for each in binding], ())
    constraints = [each for each, again in zip(binding, repeated, strict=True) if not again]
    said = [
        *(each.content for each in constraints),
        *(text for file, text in files if file.name != session_inject.RECENT_FILE),
    ]
    repeated = are_in_lines([each.content for each in found], said)
    return constraints, [each for each, again in zip(found, repeated, strict=True) if not again]


def _unrepeated(
    files: Sequence[tuple[session_inject.IdentityFile, str]], shown: Sequence[Memory], constraints: Sequence[Memory]
) -> list[tuple[session_inject.IdentityFile, str]]:
    """Return the files without the lines that repeat what is shown of memories; identity files repeat constraints."""
    told = {
        True: [(each.id, each.content) for each in shown],
        False: [(each.id, each.content) for each in shown if each in constraints],
    }
    once = [(file, unrepeated(text, told[file.name == session_inject.RECENT_FILE])) for file, text in files]
    return [(file, text) for file, text in once if text.strip()]


def _files(settings: SessionStartConfig) -> list[session_inject.IdentityFile]:
    """Return the files that the configuration includes."""
    if not settings.include_identity:
        return []
    return [
        file
        for file in session_inject.IDENTITY_FILES
        if file.name != session_inject.RECENT_FILE or settings.include_recent_context
    ]


def _read_workspace(
    workspace: Path, agent_id: str, project: str | None, harness: str, files: Sequence[session_inject.IdentityFile]
) -> tuple[Sequence[tuple[session_inject.IdentityFile, str]], api.HookIdentity]:
    """Return the texts of the agent's files that the harness does not read itself, and the identity. Blocks."""
    identity = identity_of_agent(workspace, agent_id)
    lasting = [file for file in files if file in LASTING_FILES]
    found = (
        [] if lasting and has_identity(workspace, harness, agent_id) else read_identity(workspace, agent_id, lasting)
    )
    for file in files:
        text = working_memory(workspace, agent_id, project) if file.name == session_inject.RECENT_FILE else ""
        if text:
            found.append((file, text))
    return found, api.HookIdentity(identity.name, identity.description or UNSET)


def _line(newer: Mapping[str, str], memory: Memory) -> session_inject.Line:
    return session_inject.Line(memory.id, memory.content, memory.tags, memory.said_at, newer.get(memory.id))


def _shown(memory: Memory) -> api.StartMemory:
    return api.StartMemory(memory.id, memory.content, memory.type, memory.importance, memory.created_at)
