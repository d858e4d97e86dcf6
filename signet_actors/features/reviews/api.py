"""The review queue: proposals of the pipeline that wait for the decision of a person.

Source: docs/compatibility.md "Review queue"; docs/decisions.md 16.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Clamped
from signet_actors.operations.memory_changes import NewContent
from signet_actors.operations.operation import BY_AGENT, Effect, Operation
from signet_actors.operations.problem import CHANGE_PROBLEMS, PROBLEMS, Problem
from signet_actors.operations.request_fields import AgentFields, CallerFields, LongText, Offset, SelectionText


class ReviewReport(msgspec.Struct, frozen=True):
    """A proposal that is or was in the review queue.

    ``memory_id`` is the memory that it would change (null: a new one). ``current_content`` is the memory's content now
    (null: it does not exist, or the caller may not read it). ``event`` is the history event that an approval would add.
    ``source_memory_id`` is the memory that the fact came from, ``source_sentence`` its sentence that shares most words
    with the fact (null: none shares any, or it is forgotten). ``reason`` says why it needs a review, ``rationale`` is
    the model's.
    """

    id: str
    memory_id: str | None
    event: str
    current_content: str | None
    current_version: int | None
    action: str
    fact_content: str | None
    fact_type: str
    fact_confidence: float
    confidence: float
    reason: str | None
    rationale: str | None
    target_version: int | None
    syntactic_contradiction: bool
    semantic_contradiction: bool | None
    review_state: str | None
    reviewed_by: str | None
    reviewed_at: str | None
    source_memory_id: str
    source_sentence: str | None
    run_id: str
    job_id: str
    created_at: str


class ReviewHint(msgspec.Struct, frozen=True):
    """What a person could leave to the pipeline: in words, and the key and the value that do it."""

    text: str
    key: str
    value: str


class DecidedReviews(msgspec.Struct, frozen=True):
    """The last decisions, at most ten, about proposals that waited only to be confirmed: all, and the approvals.

    Of the newest 2,000 proposals; none of a run that was undone.
    """

    decisions: int = 0
    approved: int = 0


class ReviewListReply(msgspec.Struct, frozen=True):
    """A page, oldest first; ``total`` counts the proposals in that state that the caller may read.

    ``hint``: the setting that what was ``decided`` speaks for, or null.
    """

    items: list[ReviewReport]
    total: int
    decided: DecidedReviews = DecidedReviews()
    hint: ReviewHint | None = None


class ListReviewsRequest(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """Which page of the proposals in which state."""

    state: Annotated[SelectionText, Meta(description="pending, approved, rejected or all")] = "pending"
    limit: Annotated[int, Clamped(low=1, high=500), Meta(description="Proposals to return")] = 50
    offset: Offset = 0


class ReviewRequest(CallerFields, frozen=True, kw_only=True, omit_defaults=True):
    """The reason; it is recorded in the history."""

    reason: LongText | None = None


class ApproveRequest(ReviewRequest, frozen=True, kw_only=True, omit_defaults=True):
    """A reason, and the text to store instead of the proposed one. A proposal to delete has no text."""

    content: NewContent | None = None


class ReviewReply(msgspec.Struct, frozen=True, rename="camel"):
    """The decision is on disk; ``already``: it was made before.

    ``memoryId`` is the memory that the proposal is about, or that it created.
    """

    id: str
    status: Literal["approved", "rejected"]
    already: bool
    memory_id: str | UnsetType = UNSET
    current_version: int | UnsetType = UNSET
    new_version: int | UnsetType = UNSET
    success: Literal[True] = True


class ReviewRefusal(msgspec.Struct, frozen=True, rename="camel"):
    """The proposal stays in the queue, or does not exist. ``status`` says why."""

    id: str
    status: str
    error: str
    code: str
    memory_id: str | UnsetType = UNSET
    current_version: int | UnsetType = UNSET


_DECISION_PROBLEMS: Final[Mapping[int, Any]] = {
    404: ReviewRefusal,
    **CHANGE_PROBLEMS,
    403: ReviewRefusal | Problem,
    409: ReviewRefusal | Problem,
    503: ReviewRefusal | Problem,
}

LIST_REVIEWS: Final[Operation[ListReviewsRequest, ReviewListReply]] = Operation(
    name="reviews.list",
    summary="List proposals for review",
    tag="Reviews",
    paths=("/api/memory/review-queue",),
    request=ListReviewsRequest,
    example={"state": "pending", "limit": 20},
    replies={200: ReviewListReply, **PROBLEMS},
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
    served_by="searcher",
    owner_parts="the setting that the decisions speak for",
)
APPROVE: Final[Operation[ApproveRequest, ReviewReply]] = Operation(
    name="reviews.approve",
    summary="Approve a proposal",
    tag="Reviews",
    method="POST",
    paths=("/api/memory/review-queue/{id}/approve",),
    request=ApproveRequest,
    example={"id": "0b0d7c1e-13f0-4d7f-8a54-2f6d6c1d7d50", "reason": "checked"},
    replies={200: ReviewReply, **_DECISION_PROBLEMS},
    permission=Permission.MODIFY,
    scoped_by=BY_AGENT,
    served_by="writer",
    effect=Effect.MEMORIES,
    rate="modify",
    owner_only=True,
    query_too=True,
    body_required=False,
    description="Idempotent.",
)
REJECT: Final[Operation[ReviewRequest, ReviewReply]] = Operation(
    name="reviews.reject",
    summary="Reject a proposal",
    tag="Reviews",
    method="POST",
    paths=("/api/memory/review-queue/{id}/reject",),
    request=ReviewRequest,
    example={"id": "0b0d7c1e-13f0-4d7f-8a54-2f6d6c1d7d50", "reason": "not true"},
    replies={200: ReviewReply, **_DECISION_PROBLEMS},
    permission=Permission.MODIFY,
    scoped_by=BY_AGENT,
    served_by="writer",
    effect=Effect.OTHER,
    rate="modify",
    owner_only=True,
    query_too=True,
    body_required=False,
    description="Idempotent. Possible while mutations are frozen, because no memory changes.",
)
OPERATIONS: Final = (LIST_REVIEWS, APPROVE, REJECT)
