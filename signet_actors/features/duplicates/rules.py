"""Which of two similar memories can stand for both. No model, no clock.

Departs: the reference daemon merges whatever is near enough. "Deploy on Monday" and "deploy on Tuesday" are as near as
two wordings of one fact, so here both must have the same words and signs, in the same order.
"""

from __future__ import annotations

from typing import NamedTuple

from signet_actors.domain.near_duplicates import repeats


class Candidate(NamedTuple):
    """A memory that may be merged, or stay."""

    seq: int
    id: str
    content: str
    content_hash: str
    importance: float
    created_at: str


def better_first(one: Candidate, other: Candidate) -> tuple[Candidate, Candidate]:
    """Return the more important one, of equally important ones the older one, and then the other."""
    ordered = sorted((one, other), key=lambda each: (-each.importance, each.created_at, each.seq))
    return ordered[0], ordered[1]


def kept_and_merged(one: Candidate, other: Candidate) -> tuple[Candidate, Candidate] | None:
    """Return which of two similar memories stays and which is merged into it, None if they differ in what they say."""
    return better_first(one, other) if repeats(one.content, other.content) else None
