"""Public bodies of the review queue.

Source: docs/compatibility.md "Review queue"; docs/decisions.md 16.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType


class ReviewReport(msgspec.Struct, frozen=True):
    """A proposal that is or was in the review queue.

    ``memory_id`` is the memory that it would change (null: a new one). ``current_content`` is the memory's content now
    (null: it does not exist, or the caller may not read it). ``event`` is the history event that an approval would add.
    ``source_memory_id`` is the memory that the fact came from. ``reason`` says why it needs a review, ``rationale`` is
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
    run_id: str
    job_id: str
    created_at: str


class ReviewListReply(msgspec.Struct, frozen=True):
    """A page, oldest first; ``total`` counts the proposals in that state that the caller may read."""

    items: list[ReviewReport]
    total: int


class ReviewRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reason; it is recorded in the history."""

    reason: str | None = None
    changed_by: str | None = None


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
