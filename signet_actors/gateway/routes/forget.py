"""Batch forget: preview the memories to delete, then delete exactly those.

No state is kept between the two requests. A confirm token is an HMAC over expiry, force and the id:version pairs of the
candidates. Execute selects the candidates again and compares; the writer deletes each row only at that version.

Source: memory-api.txt "POST /api/memory/forget"; docs/compatibility.md "Forget and modify"; docs/decisions.md 3, 38,
42.
Departs: an id that the caller cannot read is reported as ``not_found`` instead of being skipped.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from msgspec import UNSET

from signet_actors.domain.confirm import ConfirmCheck, check_confirm_token, confirm_token
from signet_actors.domain.forget_budget import CONFIRM_ABOVE, needs_confirmation, recently_deleted
from signet_actors.domain.permissions import AUTONOMOUS_ACTOR_TYPES
from signet_actors.errors import HTTP_STATUS, ErrorCode, InvalidRequest, OutcomeUnknown, SignetError
from signet_actors.gateway.http.responses import fill
from signet_actors.gateway.http.route import Call, HttpResponse, Route, filters_of, serve
from signet_actors.gateway.http.write_errors import OUTCOME_ERRORS, outcome_text
from signet_actors.operations import forget as api
from signet_actors.protocol.memories import Filters
from signet_actors.protocol.searcher import FindForgetCandidates
from signet_actors.protocol.transcripts import FindSaying, SayingFound
from signet_actors.protocol.writer import ForgetMany, ForgetTarget, Forgotten, ManyForgotten

DEFAULT_LIMIT: Final = 20
WAIT_S: Final = 1.0
"""No forgetting takes longer because transcripts are compared."""
MOST_COMPARED: Final = 50
"""So many of the memories are looked for in transcripts."""

_STALE_TOKEN_TEXTS: Final[dict[ConfirmCheck, str]] = {
    ConfirmCheck.CHANGED: "The memories to forget have changed since the preview; ask for a new preview",
    ConfirmCheck.EXPIRED: "confirm_token has expired; ask for a new preview",
}


async def forget(call: Call[api.ForgetRequest]) -> HttpResponse:
    """Preview the selected memories, or delete them (``mode: execute``) and report each result."""
    request, state = call.request, call.state
    execute = request.mode == "execute"
    if not execute:
        call.audit_detail = None
    selection = _selection(call)
    reason = request.reason or ""
    if execute:
        if not reason:
            raise InvalidRequest("reason is required", field="reason")
        call.refuse_if_frozen()
    principal = call.principal
    if request.force and principal.actor_type in AUTONOMOUS_ACTOR_TYPES:
        raise SignetError("Autonomous agents cannot force-delete memories", code=ErrorCode.FORBIDDEN, field="force")
    if request.force and execute:
        state.take_rate(call.identity, "forceDelete")
    found = await call.ask_searcher(selection)
    candidates = found.candidates
    matching = max(found.matching, len(candidates))
    recent = recently_deleted(found.deletions, state.clock.wall_ms())
    requires_confirm = needs_confirmation(matching, recent) or request.force
    if not execute:
        return HttpResponse(
            api.ForgetPreviewReply(
                count=len(candidates),
                requires_confirm=requires_confirm,
                confirm_token=_token(call, candidates),
                candidates=[
                    msgspec.structs.replace(candidate, score=round(candidate.score, 3)) for candidate in candidates
                ],
                other_parts=found.parts or UNSET,
            )
        )

    command = ForgetMany(
        targets=tuple(ForgetTarget(id=c.id, version=c.version) for c in candidates),
        reason=reason,
        principal=principal,
        hard=request.force,
        read=call.read,
        confirmed=request.confirm_token is not None,
        matching=matching,
    )
    saying = await find_saying(call, tuple(candidate.id for candidate in candidates))
    refused = _check_token(call, candidates, requires_confirm=requires_confirm)
    if refused is not None:
        if call.idempotency is None:
            return refused
        # This may be a retry: its candidates are deleted already, so its token no longer matches, or its own deletions
        # count against the budget. The writer may hold the first reply under the Idempotency-Key: ask it.
        command = msgspec.structs.replace(command, targets=(), matching=0)
    try:
        done = await _forget_all(call, command)
    except SignetError as error:
        if error.code is not ErrorCode.CONFIRM_REQUIRED:
            raise
        return _confirm_required(call, candidates)  # other requests deleted memories in the meantime
    if refused is not None and not done.results:
        return refused
    results = [_result(outcome) for outcome in done.results]
    answered = {outcome.id for outcome in done.results}
    results += [
        api.ForgetResult(id=missing, status="not_found", error=outcome_text("not_found"))
        for missing in request.ids
        if missing not in answered
    ]
    deleted = sum(outcome.status == "deleted" for outcome in done.results)
    call.audit_detail = {"requested": len(results), "deleted": deleted, "permanently": int(request.force)}
    facts = [fact for outcome in done.results for fact in outcome.facts]
    gone = {*facts, *(outcome.id for outcome in done.results if outcome.status == "deleted")}
    parts = dict.fromkeys(part for outcome in done.results for part in outcome.parts if part not in gone)
    return HttpResponse(
        api.ForgetReply(
            requested=len(results),
            deleted=deleted,
            results=results,
            forgotten_with=facts or UNSET,
            other_parts=[*parts] or UNSET,
            said_by=[each for each in saying.memories if deleted and each not in {*facts, *parts}] or UNSET,
            said_in=saying.sessions if deleted and saying.sessions else UNSET,
            may_be_said_in=saying.perhaps if deleted and saying.perhaps else UNSET,
        )
    )


async def find_saying(call: Call[Any], memory_ids: tuple[str, ...]) -> SayingFound:
    """Return the other memories, and the sessions, that say what these memories say, which are to be forgotten."""
    if memory_ids and await call.is_owner():
        try:
            async with asyncio.timeout(WAIT_S):
                return await call.ask_searcher(FindSaying(memory_ids[:MOST_COMPARED], call.read))
        except (SignetError, TimeoutError) as error:
            call.state.log.info("transcripts_not_compared", error=repr(error), trace=call.trace_id)
    return SayingFound()


async def _forget_all(call: Call[api.ForgetRequest], command: ForgetMany) -> ManyForgotten:
    """Send the command, and again with the targets that remain, until none do.

    The writer bounds what one transaction erases. Each part has its own stored reply, so that a retry with the same
    Idempotency-Key continues where the first request ended. Raises ``OutcomeUnknown`` if a part but not all was
    applied.
    """
    results: list[Forgotten] = []
    remaining: list[ForgetTarget] | None = None
    while remaining is None or remaining:
        rest = command
        if remaining is not None:
            # The store counts what the parts before deleted as recent deletions already.
            deleted = sum(result.status == "deleted" for result in results)
            matching = max(0, command.matching - deleted)
            rest = msgspec.structs.replace(command, targets=tuple(remaining), matching=matching)
        try:
            done = await call.ask_writer(rest, part=len(results))
        except SignetError as error:
            if remaining is None:
                raise
            raise OutcomeUnknown(
                f"{len(results)} memories are deleted and {len(remaining)} are not yet ({error.detail});"
                " retry with the same Idempotency-Key to continue"
            ) from error
        results += done.results
        remaining = done.remaining
    return ManyForgotten(results)


def _selection(call: Call[api.ForgetRequest]) -> FindForgetCandidates:
    request = call.request
    filters = filters_of(request, call.former_project)
    if not request.ids and request.query is None and not _has_selection(filters):
        raise InvalidRequest("query, ids, or at least one filter is required")
    return FindForgetCandidates(
        read=call.read,
        ids=request.ids,
        query=request.query,
        filters=filters,
        limit=request.limit or len(request.ids) or DEFAULT_LIMIT,
    )


def _has_selection(filters: Filters) -> bool:
    """Return whether a filter selects memories.

    Departs: ``project``, ``pinned`` and ``importance_min`` narrow a selection, but are not enough for one.
    """
    return any((filters.type, filters.tags, filters.who, filters.source_type, filters.since, filters.until))


def _pairs(candidates: list[api.ForgetCandidate]) -> list[tuple[str, int | None]]:
    return [(candidate.id, candidate.version) for candidate in candidates]


def _token(call: Call[api.ForgetRequest], candidates: list[api.ForgetCandidate]) -> str:
    state = call.state
    expires_at_ms = state.clock.wall_ms() + state.config.gateway.confirm_ttl_ms
    return confirm_token(state.signing_key, expires_at_ms, force=call.request.force, pairs=_pairs(candidates))


def _check_token(
    call: Call[api.ForgetRequest], candidates: list[api.ForgetCandidate], *, requires_confirm: bool
) -> HttpResponse | None:
    """Return a refusal if the token does not allow this deletion, else None.

    A token is checked even where none is needed.
    """
    token = call.request.confirm_token
    if token is None:
        if not requires_confirm:
            return None
        return _confirm_required(call, candidates)
    check = check_confirm_token(
        call.state.signing_key,
        token,
        now_ms=call.state.clock.wall_ms(),
        force=call.request.force,
        pairs=_pairs(candidates),
    )
    match check:
        case ConfirmCheck.VALID:
            return None
        case ConfirmCheck.MALFORMED:
            return _problem(
                ErrorCode.INVALID_REQUEST, "confirm_token is not valid", candidates, requires_confirm=requires_confirm
            )
        case ConfirmCheck.CHANGED | ConfirmCheck.EXPIRED:
            return _problem(
                ErrorCode.CONFLICT, _STALE_TOKEN_TEXTS[check], candidates, requires_confirm=requires_confirm
            )


def _confirm_required(call: Call[api.ForgetRequest], candidates: list[api.ForgetCandidate]) -> HttpResponse:
    return _problem(
        ErrorCode.CONFIRM_REQUIRED,
        f"confirm_token is required with force, and if more than {CONFIRM_ABOVE} memories match or were forgotten "
        "by such requests within 5 minutes",
        candidates,
        requires_confirm=True,
        token=_token(call, candidates),
    )


def _problem(
    code: ErrorCode,
    text: str,
    candidates: list[api.ForgetCandidate],
    *,
    requires_confirm: bool,
    token: str | None = None,
) -> HttpResponse:
    body = api.ForgetProblem(
        error=text,
        code=code.value,
        requires_confirm=requires_confirm,
        count=len(candidates),
        confirm_token=UNSET if token is None else token,
        field="confirm_token",
    )
    return HttpResponse(body, status=HTTP_STATUS[code])


def _result(outcome: Forgotten) -> api.ForgetResult:
    refused = outcome.status != "deleted" and outcome.status in OUTCOME_ERRORS
    return fill(api.ForgetResult, outcome, error=outcome_text(outcome.status) if refused else UNSET)


ROUTES: tuple[Route, ...] = serve(api.FORGET_MEMORIES, forget)
