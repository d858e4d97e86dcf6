"""Why a memory is at its place in a recall, or why it is not there.

Source: docs/compatibility.md "Recall"; docs/quality.md "Why is a memory there".
"""

from __future__ import annotations

from typing import Literal

import msgspec

Outcome = Literal[
    "returned",
    "beyond_limit",
    "already_recalled",
    "below_min_score",
    "below_min_relevance",
    "not_a_candidate",
    "filtered",
    "not_found",
]


class LegScore(msgspec.Struct, frozen=True):
    """What one leg says of a memory: keyword (BM25), hint (1 = the best match of words), or vector (cosine).

    ``rank`` counts from 1; None if the leg itself did not find the memory.
    """

    leg: Literal["keyword", "hint", "vector"]
    rank: int | None
    score: float


class Move(msgspec.Struct, frozen=True):
    """What a stage added to the score of a memory, or took away."""

    stage: str
    points: float


class Explanation(msgspec.Struct, frozen=True):
    """How a score came about: ``base`` plus the points of all ``moves`` is ``score``, before rounding.

    ``terms`` of the query are in the memory, ``missing_terms`` are not; terms too frequent to be searched for are in
    neither. ``similar_terms`` are in the memory, and resemble a missing term that no memory has. ``coverage`` and
    ``standing`` (in spreads, None without a vector) are the two parts of ``relevance``. ``path``: how the knowledge
    graph led to it, from an entity that the query names to what the memory states. ``because``: all this in sentences.
    """

    legs: list[LegScore]
    terms: list[str]
    missing_terms: list[str]
    similar_terms: list[str]
    base: float
    moves: list[Move]
    score: float
    coverage: float
    standing: float | None
    relevance: float
    path: list[str] = []
    because: list[str] = []


class ExplainedId(msgspec.Struct, frozen=True):
    """What became of the memory that the request names.

    ``not_found``: it does not exist, or the caller may not read it. ``filtered``: ``filters`` exclude it.
    ``not_a_candidate``: no leg had it among its best, nor context or date. ``below_min_score`` and
    ``below_min_relevance``: its ``value`` is below the ``threshold``. ``beyond_limit``: its ``rank`` is.
    ``already_recalled``: the session has received it. ``why``: the outcome in words.
    """

    id: str
    outcome: Outcome
    why: str = ""
    filters: list[str] = []
    rank: int | None = None
    value: float | None = None
    threshold: float | None = None
    explanation: Explanation | None = None
