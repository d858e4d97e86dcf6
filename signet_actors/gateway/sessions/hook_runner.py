"""What all hooks have in common: a session, a time limit, and an answer with status 200 even if the work fails.

Source: docs/decisions.md 34; docs/compatibility.md "Hooks and sessions"; docs/reliability.md R13.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET

from signet_actors.domain.normalization import sanitize_text
from signet_actors.domain.session_keys import CHECK_PREFIX
from signet_actors.domain.transcripts.marked import MAY_BE_MARK, has_mark
from signet_actors.domain.transcripts.parse import FIRST_LINES, first_directory
from signet_actors.errors import ErrorCode, SignetError, Unavailable
from signet_actors.gateway.http.after_response import mark_unsent
from signet_actors.gateway.http.route import Call, HttpResponse
from signet_actors.gateway.ingest import FieldRedactor
from signet_actors.gateway.sessions.ledger import Context
from signet_actors.gateway.sessions.table import on_disk
from signet_actors.gateway.state import MAX_HARNESSES
from signet_actors.gateway.transcript_files import TranscriptRefused, read_transcript_file, roots
from signet_actors.operations.field_types import MAX_NAME_CHARS, parse_flag
from signet_actors.operations.hooks import HookFields, HookOutcome

NO_HOOKS_HEADER: Final = "x-signet-no-hooks"
LATE_HEADER: Final = "x-signet-late"
"""Of a report that waited until the daemon was back. The session may have gone on since."""
RUNTIME_PATH_HEADER: Final = "x-signet-runtime-path"
RUNTIME_PATHS: Final = ("plugin", "legacy")
CONTEXT_WAIT_S: Final = 0.3
"""Longest wait for what is stored of a session; without it, it may receive something twice."""
REQUEST_SHARE: Final = 0.9
"""Part of ``gateway.requestTimeoutMs`` that a hook may take, so that it answers before the request ends."""

OTHER_PROJECT: Final = "other_project"
"""The reason of a hook that does nothing because ``projects.only`` lacks the directory of its session."""
FORGOTTEN: Final = "forgotten"
"""The reason of a hook that stores nothing because the user has had the session's transcript erased."""
_BEGINNING_BYTES: Final = 8 << 20
"""Of a transcript that are read for the directory in which it begins."""
_REWRITTEN_BYTES: Final = 4096
"""Some programs write the end of their file anew with each message."""
OFF_WAIT_S: Final = 0.4
"""Longest wait for the switch to be on disk."""
SWITCHED_OFF_UNSTORED: Final = (
    "[signet: memory does not work now, because the user has switched it off for this session; this is not on disk yet,"
    " so if the daemon restarts soon, the user must switch it off again]"
)

ReplyT = TypeVar("ReplyT", bound=HookOutcome)


class Skip(NamedTuple):
    """Why a hook does nothing."""

    reason: str
    known: bool = False
    claimed_by: str | None = None

    def marked(self, reply: ReplyT) -> ReplyT:
        """Return ``reply`` with the reason."""
        return msgspec.structs.replace(
            reply,
            skipped=True,
            reason=self.reason,
            bypassed=True if self.reason == "bypassed" else UNSET,
            duplicate_runtime_path=True if self.claimed_by is not None else UNSET,
            claimed_by=UNSET if self.claimed_by is None else self.claimed_by,
            session_known=True if self.known else UNSET,
        )


class Skipped(Exception):
    """Raised by the work of a hook to do nothing after all."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class HookSession(NamedTuple):
    """The session of a hook: its key, None without one; whether an earlier hook named it; what it has received.

    ``is_switch_stored``: that memory is off for it is on disk.
    """

    key: str | None = None
    known: bool = False
    context: Context | None = None
    is_switch_stored: bool = True

    def project(self, named: str | None) -> str | None:
        """Return the project of what is stored of the session: where it began; ``named`` if that is not known."""
        return named if self.context is None else self.context.project or named


async def run_hook(
    call: Call[Any],
    budget_ms: int,
    work: Callable[[HookSession], Awaitable[msgspec.Struct]],
    nothing: HookOutcome,
    *,
    stores: bool = False,
    session_key: str | None = None,
    switches_off: bool = False,
) -> HttpResponse:
    """Answer with the result of ``work``, or with ``nothing`` and why, within the budget.

    A hook that ``stores`` something does nothing while it is not known whether the session is bypassed.
    ``session_key``: the session of a call that names none. ``switches_off``: memory is off for the session from now on.
    """
    budget_s = min(budget_ms, REQUEST_SHARE * call.state.config.gateway.request_timeout_ms) / 1000
    call.until_ns = call.state.clock.monotonic_ns() + int(budget_s * 1e9)
    known = False
    try:
        async with asyncio.timeout(budget_s):
            key = call.session_key or (session_key if call.identity.has_sessions else None)
            if key is not None and not await call.is_owner():  # it could claim, end or empty a session of the owner
                key = None
            entered = await _enter(call, key, stores=stores, switches_off=switches_off)
            if isinstance(entered, Skip):
                return HttpResponse(entered.marked(nothing))
            known = entered.known
            return HttpResponse(await work(entered))
    except Skipped as skipped:
        skip = Skip(skipped.reason, known)
    except TimeoutError:
        skip = Skip("timeout", known)
        call.state.log.warning("hook_timeout", route=call.route.path, trace=call.trace_id)
    except SignetError as error:
        skip = Skip(error.code.value, known)
        if error.code is ErrorCode.CONFLICT:
            call.warnings.append(error.detail)
        call.state.log.info("hook_skipped", route=call.route.path, code=error.code.value, trace=call.trace_id)
    except Exception:
        skip = Skip("internal", known)
        call.state.log.exception("request_failed", route=call.route.path, trace=call.trace_id)
    mark_unsent(call.after_response)
    return HttpResponse(skip.marked(nothing))


async def _enter(call: Call[Any], key: str | None, *, stores: bool, switches_off: bool) -> HookSession | Skip:
    """Return the session of the hook, or why it does nothing. Raises SignetError."""
    if parse_flag(call.headers.get(NO_HOOKS_HEADER, "")):
        return Skip("no_hooks")
    if call.observes:
        return await _looked_at(call, key)
    agent_id, state = call.agent_id, call.state
    harness = call.request.harness
    is_check, seen = (call.session_key or "").startswith(CHECK_PREFIX), state.harnesses_seen
    if not is_check and (harness in seen or (harness and len(seen) < MAX_HARNESSES)):
        state.harnesses_seen[harness] = state.clock.wall_ms()
    if call.session_id not in (None, key):
        await _context(call, call.session_id, stores=stores)
        if state.ledger.is_bypassed(call.session_id):
            return Skip("bypassed")
    if key is None:
        return Skip(OTHER_PROJECT) if await is_elsewhere(call, None) else HookSession()
    context: Context | None = None
    if not switches_off:
        context = await _context(call, key, stores=stores)
        if await is_elsewhere(call, context):
            return Skip(OTHER_PROJECT)
    is_late = bool(parse_flag(call.headers.get(LATE_HEADER, ""))) and not switches_off  # which is kept in any case
    session, known, claimed_by, stored = state.sessions.enter(key, runtime_path(call), agent_id, late=is_late)
    if claimed_by is not None:
        return Skip("claimed", known=True, claimed_by=claimed_by)
    if switches_off:  # before anything is waited for
        stored = state.sessions.bypass(session, bypassed=True)
        state.ledger.switch_off(key, agent_id, session.first_ms)
        return HookSession(key, known, is_switch_stored=await on_disk(stored, OFF_WAIT_S))
    await on_disk(stored)
    session.bypassed = session.bypassed or state.ledger.is_bypassed(key)
    if context is not None and not session.bypassed and await _was_switched_off(call, context):
        await on_disk(state.sessions.bypass(session, bypassed=True), OFF_WAIT_S)
        state.ledger.switch_off(key, agent_id, session.first_ms)
    if session.bypassed:
        return Skip("bypassed", known=known)
    if context is not None and not context.is_agent_known and harness:
        await state.ledger.make_known(context, harness)
    return HookSession(key, known or (context is not None and context.stored), context)


async def _looked_at(call: Call[Any], key: str | None) -> HookSession | Skip:
    """Return a copy of the session of a hook that changes nothing, or why it would do nothing. Raises SignetError."""
    context = None if key is None else await _context(call, key, stores=False)
    if await is_elsewhere(call, context):
        return Skip(OTHER_PROJECT)
    if key is not None and call.state.ledger.is_bypassed(key):
        return Skip("bypassed", known=True)
    is_known = context is not None and (context.stored or call.state.sessions.find(context.key) is not None)
    return HookSession(key, is_known, context)


async def session_context(call: Call[Any], key: str) -> Context:
    """Return what is stored of the session; a copy for a caller that only looks. Raises SignetError."""
    read = call.state.ledger.copy_of if call.observes else call.state.ledger.context
    return await read(key, call.agent_id, trace_id=call.trace_id)


async def _context(call: Call[Any], key: str, *, stores: bool) -> Context | None:
    """Return what is stored of the session, None if it cannot be read. Raises SignetError if the hook ``stores``."""
    try:
        async with asyncio.timeout(CONTEXT_WAIT_S):
            return await session_context(call, key)
    except TimeoutError:
        if stores:
            raise Unavailable("it is not known yet whether memory is switched off for this session") from None
    except SignetError:
        if stores:
            raise
    return None


async def is_elsewhere(call: Call[Any], context: Context | None) -> bool:
    """Return whether hooks do nothing for this session, because ``projects.only`` lacks the directory it began in.

    Its agent may have gone to another directory, which hooks name then. What is not known is not chosen.
    """
    projects = call.state.projects
    if context is None:
        return projects.only_some and not call.is_chosen
    if not context.is_beginning_read and not call.observes:
        await _note_beginning(call, context)
    if context.began_in is None:
        return projects.only_some and not (call.observes and call.is_chosen)
    place = await projects.place_of(context.began_in)
    context.project = place.project
    return not place.is_chosen


async def _was_switched_off(call: Call[Any], context: Context) -> bool:
    """Return whether what was added to the transcript that a hook names has the mark, and no switch is known since.

    A report of the transcript looks for it by itself. A file that does not answer in time is not searched.
    """
    if not isinstance(call.request, HookFields) or call.request.transcript_path is None:
        return False
    if call.state.ledger.was_bypassed(context.key):
        return False
    return await call.state.projects.read(partial(_has_new_mark, call, call.request.transcript_path, context)) or False


def _has_new_mark(call: Call[Any], path: str, context: Context) -> bool:
    """Return whether a prompt of the file has the mark, if anything that was added to it may. Blocks."""
    most, workspace = call.state.config.transcripts.max_file_bytes, call.state.workspace
    searched = context.searched[1] if context.searched[0] == path else 0
    start = max(0, searched - _REWRITTEN_BYTES)
    read = partial(read_transcript_file, path, roots(workspace, os.environ), workspace=workspace, whole=False)
    try:
        added = read(most, start=start)
        if start + len(added) < searched:  # it was made anew
            start, added = 0, read(most)
        context.searched = path, start + len(added)
        if start and MAY_BE_MARK.search(added.lower()) is None:
            return False
        return has_mark(read(min(start, most)) + added if start else added)
    except (TranscriptRefused, SignetError, ValueError):
        return False


async def _note_beginning(call: Call[Any], context: Context) -> None:
    """Note where the session began: where its transcript says, else where the first hook was that names a directory.

    That hook may not be the session's first one, because the daemon may have been away. The transcript is read once, by
    the first hook that names it. Raises SignetError if a retry may tell.
    """
    told = await call.state.projects.read(partial(_first_directory, call)) if _names_transcript(call) else None
    context.is_beginning_read = told is not None
    projects, known = call.state.projects, context.began_in
    directory = told or (call.directory if known is None else None)
    if not directory:
        return
    directory = FieldRedactor(call.state, for_memories=False).clean(directory)
    place = await projects.place_of(directory)
    if known is None and context.project not in (None, place.project):  # that of its stored transcript
        place = await projects.place_of(context.project)
    if known is not None and place == await projects.place_of(known):
        return
    whole = await projects.place_of(place.project)
    call.state.ledger.begin_in(context, place.project if place.is_chosen == whole.is_chosen else directory)
    if not place.is_chosen:
        call.state.checkpoints.forget(context.key, context.agent_id)


def _names_transcript(call: Call[Any]) -> bool:
    return any(getattr(call.request, name, None) is not None for name in ("transcript", "transcript_path"))


def _first_directory(call: Call[Any]) -> str | None:
    """Return the directory in which the transcript of this report begins, empty if it tells none.

    None: there is no transcript yet that can be read. Blocks. Raises SignetError if a retry may tell.
    """
    given, path = getattr(call.request, "transcript", None), getattr(call.request, "transcript_path", None)
    if given is not None:
        raw = given[:_BEGINNING_BYTES].encode("utf-8", "replace")
    elif path is None:
        return None
    else:
        workspace = call.state.workspace
        allowed = roots(workspace, os.environ)
        try:
            raw = read_transcript_file(path, allowed, _BEGINNING_BYTES, workspace=workspace, whole=False)
        except TranscriptRefused:
            return None
    directory = first_directory(raw.split(b"\n", FIRST_LINES)[:FIRST_LINES])
    if directory is None or len(directory) > MAX_NAME_CHARS:
        return ""
    return sanitize_text(directory)


def runtime_path(call: Call[Any]) -> str | None:
    """Return by which path the harness is connected; the header takes precedence."""
    named = call.headers.get(RUNTIME_PATH_HEADER, "").strip().lower()
    if named and named not in RUNTIME_PATHS:
        call.warnings.append(f"{RUNTIME_PATH_HEADER} must be one of: {', '.join(RUNTIME_PATHS)}; it is ignored")
    path: str | None = named if named in RUNTIME_PATHS else call.request.runtime_path
    return path
