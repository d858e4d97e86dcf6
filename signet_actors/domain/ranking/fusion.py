"""Fusion of a keyword leg and a vector leg into one score per candidate.

``convex`` scales each leg by its best candidate and blends them; a candidate that a leg did not find counts 0
there, so the caller gives keyword-only candidates their true cosine first. ``rrf`` uses ranks only.

Source: docs/quality.md rules 1 and 2; docs/decisions.md 6, 7.
Departs: the specification's ``1/(1+|score|)`` and "single-leg rows keep their score" (memory-system.txt "Alpha
Blending"): measured, they rank worse than keywords alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Seqs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

RRF_K = 60


def convex(bm25: Floats, cosine: Floats, *, alpha: float) -> Floats:
    """``alpha * max(0, cos) / max cos + (1 - alpha) * |bm25| / max |bm25|`` per candidate, in [0, 1].

    ``bm25``: shape (n,), strength of the keyword match, >= 0, 0 = no match. ``cosine``: shape (n,), NaN = no vector.
    Where no word matched at all, the score is the cosine itself: scaled by its own best, the least unlike row would
    score 1 and ``min_score`` would mean nothing. Where no vector is alike, the scaled keyword leg alone decides.
    """
    keyword = np.abs(bm25)
    dense = np.where(np.isnan(cosine), 0.0, np.maximum(cosine, 0.0))
    if keyword.max(initial=0.0) <= 0.0:
        return np.minimum(dense, 1.0)
    if dense.max(initial=0.0) <= 0.0:
        return scaled(bm25)
    blended: Floats = alpha * (dense / dense.max()) + (1.0 - alpha) * scaled(bm25)
    return blended


def scaled(bm25: Floats) -> Floats:
    """``|bm25| / max |bm25|``. A match of words is a match: its best one scores 1, however common the words are."""
    strength = np.abs(bm25)
    relative: Floats = strength / max(float(strength.max(initial=0.0)), 1e-300)
    return relative


def rrf(bm25: Floats, cosine: Floats) -> Floats:
    """Reciprocal rank fusion, scaled so that the first place of both legs scores 1."""
    score = np.zeros(len(bm25))
    for values, present in ((np.abs(bm25), bm25 != 0), (np.nan_to_num(cosine, nan=-1.0), ~np.isnan(cosine))):
        if not present.any():
            continue
        order = np.argsort(-values, kind="stable")
        ranks = np.empty(len(values))
        ranks[order] = np.arange(1, len(values) + 1)
        score += np.where(present, 1.0 / (RRF_K + ranks), 0.0)
    return score * (RRF_K + 1) / 2


def keyword_score(bm25: Floats) -> Floats:
    """``|s| / (1 + |s|)``: monotone in the strength of the match, in [0, 1). Source: docs/decisions.md 6."""
    strength = np.abs(bm25)
    return strength / (1.0 + strength)


def merge_by_max(
    first: Seqs, first_strength: Floats, second: Seqs, second_strength: Floats
) -> tuple[Seqs, Floats, Bools]:
    """Every row of either leg once, with the greater of its strengths, never their sum; best first.

    ``first`` and ``second``: row numbers, each at most once; their strengths: same shapes, > 0. The last array says
    which rows only the second leg knows. Source: memory-pipeline.txt "Prospective Indexing (Hints)".
    """
    seqs = np.concatenate((first, second))
    strength = np.concatenate((first_strength, second_strength))
    from_second = np.arange(len(seqs)) >= len(first)
    # By row, the merge_by_max of a row's two before the other; so the first of each row is the one that counts.
    order = np.lexsort((from_second, -strength, seqs))
    counts = np.ones(len(order), np.bool_)
    counts[1:] = seqs[order][1:] != seqs[order][:-1]
    kept = order[counts]
    kept = kept[np.argsort(-strength[kept], kind="stable")]
    return seqs[kept], strength[kept], ~np.isin(seqs[kept], first)
