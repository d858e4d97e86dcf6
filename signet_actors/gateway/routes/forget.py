"""Batch forget: preview the memories to delete, then delete exactly those.

No state is kept between the two requests. A confirm token is an HMAC over expiry, force and the id:version pairs of
the candidates. Execute selects the candidates again and compares; the writer deletes each row only at that version.

Source: memory-api.txt "POST /api/memory/forget"; docs/compatibility.md "Forget and modify"; docs/decisions.md 3, 38,
42.
Departs: matches are counted before ``limit`` and over five minutes to decide on confirmation
(``domain.forget_budget``); an id that the caller cannot read is reported as ``not_found`` instead of being skipped;
``project``, ``pinned`` and ``importance_min`` narrow a selection, but are not enough for one.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET

from signet_actors.domain.confirm import ConfirmCheck, check_confirm_token, confirm_token
from signet_actors.domain.forget_budget import CONFIRM_ABOVE, needs_confirmation, recently_deleted
from signet_actors.domain.permissions import AUTONOMOUS_ACTOR_TYPES, Permission
from signet_actors.errors import HTTP_STATUS, ErrorCode, InvalidRequest, OutcomeUnknown, SignetError
from signet_actors.gateway.http.request_reader import RequestReader, read_scope_of
from signet_actors.gateway.http.route import HttpRequest, HttpResponse, Route
from signet_actors.gateway.http.write_errors import OUTCOME_ERRORS, outcome_text
from signet_actors.gateway.ingest import FieldRedactor
from signet_actors.gateway.routes.memories import PROBLEMS
from signet_actors.operations.field_types import MAX_QUERY_CHARS
from signet_actors.operations.forget import (
    ForgetCandidateBody,
    ForgetPreviewReply,
    ForgetProblem,
    ForgetReply,
    ForgetRequest,
    ForgetResult,
)
from signet_actors.operations.problem import Problem
from signet_actors.protocol.memories import Filters
from signet_actors.protocol.searcher import FindForgetCandidates, ForgetCandidate
from signet_actors.protocol.writer import ForgetMany, ForgetTarget, Forgotten, ManyForgotten

DEFAULT_LIMIT: Final = 20
BATCH_LIMIT: Final = 200

_STALE_TOKEN_TEXTS: Final[dict[ConfirmCheck, str]] = {
    ConfirmCheck.CHANGED: "The memories to forget have changed since the preview; ask for a new preview",
    ConfirmCheck.EXPIRED: "confirm_token has expired; ask for a new preview",
}


class _ForgetParams(msgspec.Struct, frozen=True):
    """The parameters of a forget request."""

    execute: bool
    selection: FindForgetCandidates
    reason: str
    force: bool
    token: str | None


async def forget(request: HttpRequest) -> HttpResponse:
    """Preview the selected memories, or delete them (``mode: execute``) and report each result."""
    body = request.json_object()
    params = _read(request, RequestReader(body))
    if params.execute:
        request.refuse_if_frozen()
    redactor = FieldRedactor(request.state)
    principal = redactor.principal(request.principal(body))
    if params.force and principal.actor_type in AUTONOMOUS_ACTOR_TYPES:
        raise SignetError("Autonomous agents cannot force-delete memories", code=ErrorCode.FORBIDDEN, field="force")
    found, _ = await request.state.bus.ask_searcher(params.selection, trace_id=request.trace_id)
    candidates = found.candidates
    matching = max(found.matching, len(candidates))
    recent = recently_deleted(found.deletions, request.state.clock.wall_ms())
    requires_confirm = needs_confirmation(matching, recent) or params.force
    if not params.execute:
        return HttpResponse(
            ForgetPreviewReply(
                count=len(candidates),
                requires_confirm=requires_confirm,
                confirm_token=_token(request, candidates, force=params.force),
                candidates=[
                    ForgetCandidateBody(id=c.id, score=round(c.score, 3), pinned=c.pinned, version=c.version)
                    for c in candidates
                ],
            )
        )

    idempotency = request.idempotency(body)
    command = ForgetMany(
        targets=tuple(ForgetTarget(id=c.id, version=c.version) for c in candidates),
        reason=redactor.clean(params.reason),
        principal=principal,
        hard=params.force,
        read=params.selection.read,
        idempotency=idempotency,
        confirmed=params.token is not None,
        matching=matching,
    )
    refused = _check_token(request, params, candidates, requires_confirm=requires_confirm)
    if refused is not None:
        if idempotency is None:
            return refused
        # This may be a retry: its candidates are deleted already, so its token no longer matches, or its own deletions
        # count against the budget. The writer may hold the first reply under the Idempotency-Key: ask it.
        command = msgspec.structs.replace(command, targets=(), matching=0)
    try:
        done = await _forget_all(request, command)
    except SignetError as error:
        if error.code is not ErrorCode.CONFIRM_REQUIRED:
            raise
        return _confirm_required(request, params, candidates)  # other requests deleted memories in the meantime
    if refused is not None and not done.results:
        return refused
    results = [_result(outcome) for outcome in done.results]
    answered = {outcome.id for outcome in done.results}
    results += [
        ForgetResult(id=missing, status="not_found", error=outcome_text("not_found"))
        for missing in params.selection.ids
        if missing not in answered
    ]
    return HttpResponse(
        ForgetReply(
            requested=len(results),
            deleted=sum(outcome.status == "deleted" for outcome in done.results),
            results=results,
        )
    )


async def _forget_all(request: HttpRequest, command: ForgetMany) -> ManyForgotten:
    """Send the command, and again with the targets that remain, until none do.

    The writer bounds what one transaction erases. Each part has its own stored reply, so that a retry with the same
    Idempotency-Key continues where the first request ended. Raises ``OutcomeUnknown`` if a part but not all was
    applied.
    """
    results: list[Forgotten] = []
    remaining: list[ForgetTarget] | None = None
    while remaining is None or remaining:
        part = command
        if remaining is not None:
            key = command.idempotency
            if key is not None and results:
                key = msgspec.structs.replace(key, key=f"{key.key}#{len(results)}")
            part = msgspec.structs.replace(command, targets=tuple(remaining), idempotency=key)
        try:
            done = await request.state.bus.ask_writer(part, trace_id=request.trace_id)
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


def _read(request: HttpRequest, fields: RequestReader) -> _ForgetParams:
    mode = fields.text("mode") or "preview"
    if mode not in {"preview", "execute"}:
        raise InvalidRequest("mode must be one of: preview, execute", field="mode")
    if fields.find("if_version", "ifVersion")[1] is not None:
        raise InvalidRequest(
            "if_version is not supported for batch forget; use DELETE /api/memory/:id", field="if_version"
        )
    ids = fields.names("ids", max_items=BATCH_LIMIT)
    query = fields.text("query", max_chars=MAX_QUERY_CHARS)
    filters = fields.filters()
    if not ids and query is None and not _has_selection(filters):
        raise InvalidRequest("query, ids, or at least one filter is required")
    body = fields.body
    return _ForgetParams(
        execute=mode == "execute",
        selection=FindForgetCandidates(
            read=read_scope_of(request, body),
            ids=ids,
            query=query,
            filters=filters,
            limit=fields.limit(len(ids) or DEFAULT_LIMIT, 1, BATCH_LIMIT),
        ),
        reason=fields.required("reason") if mode == "execute" else "",
        force=fields.flag("force") is True,
        token=fields.text("confirm_token", "confirmToken"),
    )


def _has_selection(filters: Filters) -> bool:
    return any((filters.type, filters.tags, filters.who, filters.source_type, filters.since, filters.until))


def _pairs(candidates: list[ForgetCandidate]) -> list[tuple[str, int | None]]:
    return [(candidate.id, candidate.version) for candidate in candidates]


def _token(request: HttpRequest, candidates: list[ForgetCandidate], *, force: bool) -> str:
    state = request.state
    expires_at_ms = state.clock.wall_ms() + state.config.gateway.confirm_ttl_ms
    return confirm_token(state.signing_key, expires_at_ms, force=force, pairs=_pairs(candidates))


def _check_token(
    request: HttpRequest, params: _ForgetParams, candidates: list[ForgetCandidate], *, requires_confirm: bool
) -> HttpResponse | None:
    """Return a refusal if the token does not allow this deletion, else None.

    A token is checked even where none is needed.
    """
    if params.token is None:
        if not requires_confirm:
            return None
        return _confirm_required(request, params, candidates)
    check = check_confirm_token(
        request.state.signing_key,
        params.token,
        now_ms=request.state.clock.wall_ms(),
        force=params.force,
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


def _confirm_required(request: HttpRequest, params: _ForgetParams, candidates: list[ForgetCandidate]) -> HttpResponse:
    return _problem(
        ErrorCode.CONFIRM_REQUIRED,
        f"confirm_token is required with force, and if more than {CONFIRM_ABOVE} memories match or were forgotten "
        "by such requests within 5 minutes",
        candidates,
        requires_confirm=True,
        token=_token(request, candidates, force=params.force),
    )


def _problem(
    code: ErrorCode, text: str, candidates: list[ForgetCandidate], *, requires_confirm: bool, token: str | None = None
) -> HttpResponse:
    body = ForgetProblem(
        error=text,
        code=code.value,
        requires_confirm=requires_confirm,
        count=len(candidates),
        confirm_token=UNSET if token is None else token,
        field="confirm_token",
    )
    return HttpResponse(body, status=HTTP_STATUS[code])


def _result(outcome: Forgotten) -> ForgetResult:
    return ForgetResult(
        id=outcome.id,
        status=outcome.status,
        current_version=UNSET if outcome.current_version is None else outcome.current_version,
        new_version=UNSET if outcome.new_version is None else outcome.new_version,
        error=outcome_text(outcome.status)
        if outcome.status != "deleted" and outcome.status in OUTCOME_ERRORS
        else UNSET,
    )


ROUTES: tuple[Route, ...] = (
    Route(
        method="POST",
        path="/api/memory/forget",
        handler=forget,
        permission=Permission.FORGET,
        summary="Forget many memories",
        tag="Memories",
        body=ForgetRequest,
        replies={
            200: ForgetPreviewReply | ForgetReply,
            **PROBLEMS,
            400: ForgetProblem | Problem,
            403: Problem,
            409: ForgetProblem | Problem,
            504: Problem,
            507: Problem,
        },
        limit="batchForget",
        owner=True,
        mutates=True,
        mutates_conditionally=True,
        description=(
            "Preview (the default mode) deletes nothing. Its token is required with force, and if more than 25 "
            "memories match (before limit) or were deleted by such requests within 5 minutes."
        ),
    ),
)
