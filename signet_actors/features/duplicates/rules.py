"""Which of two similar memories can stand for both. No model, no clock.

Departs: the reference daemon merges whatever is near enough. "Deploy on Monday" and "deploy on Tuesday" are as near as
two wordings of one fact, so here a memory is merged only into one that has all its words.
"""

from __future__ import annotations

from typing import NamedTuple

from signet_actors.domain.extraction.contradiction import contradiction_words, syntactic_contradiction
from signet_actors.domain.said_again import statement_of
from signet_actors.domain.stop_words import STOP_WORDS


class Candidate(NamedTuple):
    """A memory that may be merged, or stay."""

    seq: int
    id: str
    content: str
    content_hash: str
    importance: float
    created_at: str


def says_all_of(kept: str, merged: str) -> bool:
    """Return whether the text ``kept`` says what ``merged`` says: all its telling words, numbers and names, in order.

    The order tells "copy A to B" from "copy B to A". Takes linear time.
    """
    told, said = statement_of(merged), statement_of(kept)
    if not told.words or not told.words <= said.words or told.numbers != said.numbers:
        return False
    if not told.names <= said.words | said.names or syntactic_contradiction(kept, merged):
        return False
    shared = _words(kept).keys() & _words(merged).keys()
    return [word for word in _words(kept) if word in shared] == [word for word in _words(merged) if word in shared]


def _words(text: str) -> dict[str, None]:
    return dict.fromkeys(word for word in contradiction_words(text) if word not in STOP_WORDS)


def better_first(one: Candidate, other: Candidate) -> tuple[Candidate, Candidate]:
    """Return the more important one, of equally important ones the older one, and then the other."""
    ordered = sorted((one, other), key=lambda each: (-each.importance, each.created_at, each.seq))
    return ordered[0], ordered[1]


def kept_and_merged(one: Candidate, other: Candidate) -> tuple[Candidate, Candidate] | None:
    """Return which of two similar memories stays and which is merged into it, None if neither says all of the other."""
    better, worse = better_first(one, other)
    if says_all_of(better.content, worse.content):
        return better, worse
    return (worse, better) if says_all_of(worse.content, better.content) else None
