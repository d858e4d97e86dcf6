"""Fuse a keyword leg and a vector leg into one score per candidate.

``convex`` scales each leg by its best candidate and blends the two. A candidate that a leg did not find counts 0 there,
so the caller must first supply the true cosine of keyword-only candidates. ``rrf`` uses only ranks.

Source: docs/quality.md rules 1 and 2; docs/decisions.md 6, 7.
Departs: the specification's ``1/(1+|score|)`` and "single-leg rows keep their score" (memory-system.txt "Alpha
Blending"): measured, they rank worse than keywords alone.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Seqs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

RRF_K = 60
TOKEN_WEIGHT = 0.3
OF_FULL = 0.8
"""The best keyword match counts whole if it has this share of what a row with every word of the query would have."""
_LEAST_BOTH = 20


def convex(bm25: Floats, cosine: Floats, *, alpha: float, full: float = 0.0) -> Floats:
    """Return ``alpha * max(0, cos) / max cos + (1 - alpha) * |bm25| / max(max |bm25|, full)`` per candidate, in [0, 1].

    ``bm25``: shape (n,), strength of the keyword match, >= 0, 0 = no match. ``full``: the least strength that counts
    whole, so that a word shared by chance is no full match. ``cosine``: shape (n,), NaN = no vector; the keyword match,
    relative to the best, then counts for it. If no word matched, the score is the unscaled cosine: with scaling, the
    best row would score 1 however dissimilar it is, and ``min_score`` would have no effect. If no cosine is positive,
    the score is the scaled keyword leg alone.
    """
    keyword = np.abs(bm25)
    dense = np.where(np.isnan(cosine), 0.0, np.maximum(cosine, 0.0))
    if keyword.max(initial=0.0) <= 0.0:
        return np.minimum(dense, 1.0)
    if dense.max(initial=0.0) <= 0.0:
        return scaled(bm25)
    relative = np.where(np.isnan(cosine), scaled(bm25), dense / dense.max())
    blended: Floats = alpha * relative + (1.0 - alpha) * scaled(bm25, full)
    return blended


def on_one_scale(preferred: Floats, other: Floats) -> Floats:
    """Return cosines of one scale from those by two models, NaN for a row without a vector; shape (n,) each.

    A row counts by ``preferred``. One that has only the ``other`` vector gets what stands at the same rank among the
    rows that have both. While these are too few to compare, all rows that have the other vector count by that.
    """
    both = ~np.isnan(preferred) & ~np.isnan(other)
    lacking = np.isnan(preferred) & ~np.isnan(other)
    if np.count_nonzero(both) < _LEAST_BOTH:
        return np.where(np.isnan(other), preferred, other)
    mixed = preferred.copy()
    if lacking.any():
        own, theirs = np.sort(other[both]), np.sort(preferred[both])
        middle = len(own) // 2
        slope = (theirs[-1] - theirs[middle]) / max(own[-1] - own[middle], 1e-9)
        above = np.maximum(other[lacking] - own[-1], 0.0)
        mixed[lacking] = np.minimum(np.interp(other[lacking], own, theirs) + slope * above, 1.0)
    return mixed


def with_tokens(base: Floats, points: Floats, compared: Bools) -> Floats:
    """Return base scores in which token similarity counts ``TOKEN_WEIGHT``; same shape.

    ``points``: the result of ``token_points``, NaN = unknown. The scores stay if no row has any, as for a single row. A
    compared row without token codes keeps its score; one that is too weak to be ``compared`` has no similarity.

    Source: docs/quality.md "Token similarity".
    """
    known = np.nan_to_num(points)
    if not known.any():
        return base
    mixed: Floats = (1.0 - TOKEN_WEIGHT) * base + TOKEN_WEIGHT * known
    return np.where(compared & np.isnan(points), base, mixed)


def token_points(likeness: Floats) -> Floats:
    """Return by how much each likeness exceeds the median, relative to the best; 0 if none does, NaN for NaN."""
    known = np.flatnonzero(~np.isnan(likeness))
    points = np.where(np.isnan(likeness), np.nan, 0.0)
    if len(known):
        values = likeness[known]
        ascending = np.sort(values)
        median = (ascending[(len(known) - 1) // 2] + ascending[len(known) // 2]) / 2
        largest = ascending[-1] - median
        if largest > 0.0:
            points[known] = np.maximum(values - median, 0.0) / largest
    return points


def scaled(bm25: Floats, full: float = 0.0) -> Floats:
    """Return ``|bm25| / max(max |bm25|, full)``. Without ``full`` the best match scores 1, whatever its words are."""
    strength = np.abs(bm25)
    relative: Floats = strength / max(float(strength.max(initial=0.0)), full, 1e-300)
    return relative


def relative_cosine(cosine: Floats) -> Floats:
    """Return ``max(0, cos) / max cos``, 0 for NaN (no vector). Same shape."""
    dense = np.where(np.isnan(cosine), 0.0, np.maximum(cosine, 0.0))
    relative: Floats = dense / max(float(dense.max(initial=0.0)), 1e-9)
    return relative


def rrf(bm25: Floats, cosine: Floats) -> Floats:
    """Return the reciprocal rank fusion, scaled so that a candidate ranked first in both legs scores 1."""
    score = np.zeros(len(bm25))
    for values, present in ((np.abs(bm25), bm25 != 0), (np.nan_to_num(cosine, nan=-1.0), ~np.isnan(cosine))):
        if not present.any():
            continue
        order = np.argsort(-values, kind="stable")
        ranks = np.empty(len(values))
        ranks[order] = np.arange(1, len(values) + 1)
        score += np.where(present, 1.0 / (RRF_K + ranks), 0.0)
    return score * (RRF_K + 1) / 2


@overload
def keyword_score(bm25: float) -> float: ...
@overload
def keyword_score(bm25: Floats) -> Floats: ...
def keyword_score(bm25: Any) -> Any:
    """Return ``|s| / (1 + |s|)``: monotone in the strength of the match, in [0, 1)."""
    strength = np.abs(bm25)
    return strength / (1.0 + strength)


def merge_by_max(
    first: Seqs, first_strength: Floats, second: Seqs, second_strength: Floats
) -> tuple[Seqs, Floats, Bools]:
    """Merge two legs: each row once, with the greater of its two strengths (not their sum), best first.

    ``first`` and ``second``: row numbers, without duplicates. Their strengths: same shapes, > 0. The last returned
    array marks rows that only the second leg found. Source: memory-pipeline.txt "Prospective Indexing (Hints)".
    """
    seqs = np.concatenate((first, second))
    strength = np.concatenate((first_strength, second_strength))
    from_second = np.arange(len(seqs)) >= len(first)
    # Sort by row, then by descending strength: the first entry of each row is the one to keep.
    order = np.lexsort((from_second, -strength, seqs))
    counts = np.ones(len(order), np.bool_)
    counts[1:] = seqs[order][1:] != seqs[order][:-1]
    kept = order[counts]
    kept = kept[np.argsort(-strength[kept], kind="stable")]
    return seqs[kept], strength[kept], ~np.isin(seqs[kept], first)
