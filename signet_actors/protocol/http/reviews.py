"""Public bodies of the review queue.

Source: docs/compatibility.md "Review queue"; docs/decisions.md 16.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType


class ReviewReport(msgspec.Struct, frozen=True):
    """A proposal that waits for a person, or did.

    ``memory_id`` is the memory that it would change (null: it would be a new one), ``current_content`` what that says
    now (null: gone, or not the reader's), and ``event`` what its history would have after an approval.
    ``source_memory_id`` is the memory that the fact came from. ``reason`` says why it waits, ``rationale`` is the
    model's.
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
    """A page, oldest first; ``total`` of that state that the caller may see."""

    items: list[ReviewReport]
    total: int


class ReviewRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why; goes into the history."""

    reason: str | None = None
    changed_by: str | None = None


class ReviewReply(msgspec.Struct, frozen=True, rename="camel"):
    """The decision is on disk; ``already``: it was before. ``memoryId`` is the memory that the proposal is about,
    or that it became."""

    id: str
    status: Literal["approved", "rejected"]
    already: bool
    memory_id: str | UnsetType = UNSET
    current_version: int | UnsetType = UNSET
    new_version: int | UnsetType = UNSET
    success: Literal[True] = True


class ReviewRefusal(msgspec.Struct, frozen=True, rename="camel"):
    """The proposal waits on, or is not there. ``status`` says why."""

    id: str
    status: str
    error: str
    code: str
    memory_id: str | UnsetType = UNSET
    current_version: int | UnsetType = UNSET
