"""Decide over HTTP about proposals of the pipeline that wait for a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from signet_actors.domain.extraction.gates import flags_of
from signet_actors.domain.permissions import PERSON_ACTOR_TYPE
from signet_actors.errors import HTTP_STATUS, ErrorCode
from signet_actors.features.reviews.api import (
    APPROVE,
    LIST_REVIEWS,
    REJECT,
    ApproveRequest,
    ListReviewsRequest,
    ReviewListReply,
    ReviewRefusal,
    ReviewReply,
    ReviewRequest,
)
from signet_actors.features.reviews.rules import hint_of
from signet_actors.gateway.features import ask
from signet_actors.gateway.http.responses import fill
from signet_actors.gateway.http.route import Call, Handler, HttpResponse
from signet_actors.gateway.http.write_errors import OutcomeError
from signet_actors.operations.operation import Operation
from signet_actors.protocol.pipeline import ApproveProposal, RejectProposal, ReviewDecided

_CONFLICT: Final = ErrorCode.CONFLICT
_REFUSALS: Final[Mapping[str, OutcomeError]] = {
    "not_found": OutcomeError(ErrorCode.NOT_FOUND, "Proposal not found"),
    "deletion_has_no_text": OutcomeError(ErrorCode.INVALID_REQUEST, "A proposal to delete a memory has no text"),
    "not_reviewable": OutcomeError(_CONFLICT, "The proposal does not wait for a review"),
    "decided_otherwise": OutcomeError(_CONFLICT, "The proposal was already decided differently"),
    "content_gone": OutcomeError(_CONFLICT, "The text of the proposal was erased"),
    "version_conflict": OutcomeError(_CONFLICT, "The memory has changed since the proposal was made"),
    "target_gone": OutcomeError(_CONFLICT, "The memory that the proposal would change no longer exists"),
    "source_gone": OutcomeError(_CONFLICT, "The memory that the proposal came from was forgotten"),
    "pinned": OutcomeError(_CONFLICT, "The memory is pinned"),
    "other_scope": OutcomeError(_CONFLICT, "The memory belongs to another owner or scope"),
    "own_source": OutcomeError(_CONFLICT, "The proposal would change the memory that it was extracted from"),
    "constraint": OutcomeError(_CONFLICT, "The memory is a constraint"),
    "duplicate_content": OutcomeError(_CONFLICT, "Another memory already has this content"),
    "unchanged": OutcomeError(_CONFLICT, "The memory already has this content"),
    "autonomous_denied": OutcomeError(ErrorCode.FORBIDDEN, "Only an operator can approve a proposal"),
    "frozen": OutcomeError(ErrorCode.MUTATIONS_FROZEN, "Mutations are frozen (kill switch active)"),
}
_OTHER_REFUSAL: Final = OutcomeError(_CONFLICT, "The proposal could not be applied")


async def listed(call: Call[ListReviewsRequest]) -> HttpResponse:
    """Return a page of proposals, and what the decisions about them speak for. Raises SignetError."""
    reply = (await ask(call, LIST_REVIEWS, call.request)).read(ReviewListReply)
    hint = hint_of(reply.decided, flags_of(call.state.config.memory.pipeline_v2))
    return HttpResponse(msgspec.structs.replace(reply, hint=hint if hint and await call.is_owner() else None))


async def approve(call: Call[ApproveRequest]) -> HttpResponse:
    """Apply the proposal as the caller, if its target has not changed since the model saw it.

    Elsewhere an unknown actor type counts as an operator. Here it is refused.
    """
    actor_type = call.headers.get("x-signet-actor-type")
    if actor_type is not None and actor_type.strip().lower() != PERSON_ACTOR_TYPE:
        return _refusal(ReviewDecided(call.path["id"], "autonomous_denied"))
    return await _decide(call, partial(ApproveProposal, content=call.request.content))


async def reject(call: Call[ReviewRequest]) -> HttpResponse:
    """Reject the proposal permanently."""
    return await _decide(call, RejectProposal)


async def _decide(call: Call[Any], decision: Callable[..., ApproveProposal | RejectProposal]) -> HttpResponse:
    done = await call.ask_writer(
        decision(id=call.path["id"], principal=call.principal, reason=call.request.reason or "", read=call.read)
    )
    if done.status not in {"approved", "rejected"}:
        return _refusal(done)
    return HttpResponse(fill(ReviewReply, done))


def _refusal(done: ReviewDecided) -> HttpResponse:
    refused = _REFUSALS.get(done.status, _OTHER_REFUSAL)
    body = fill(ReviewRefusal, done, error=refused.text, code=refused.code.value)
    return HttpResponse(body, status=HTTP_STATUS[refused.code])


HANDLERS: Final[dict[Operation[Any], Handler[Any]]] = {LIST_REVIEWS: listed, APPROVE: approve, REJECT: reject}
