"""Rerank the best candidates: replace a share of each score by the cosine of the candidate's vector.

Source: memory-pipeline.txt "Optional Reranking", "Embedding-Based Reranker"; docs/decisions.md 9, 46.
Departs: there is no timeout and no fallback order, because the cosines are already computed and reranking takes only a
few array operations. A reranked score never falls below the scores of the tail, so the scores show the documented
order: the reranked head before the unchanged tail.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ORIGINAL_SHARE = 0.7
COSINE_SHARE = 0.3


def rerank_by_cosine(scores: Floats, cosine: Floats, *, top: int) -> Floats:
    """Return ``0.7 * score + 0.3 * cosine`` for the ``top`` best scores; all other scores are unchanged.

    A candidate without a vector also keeps its score. ``scores``: shape (n,), >= 0. ``cosine``: shape (n,), in [-1, 1],
    NaN = no vector; negative values count as zero. ``top`` 0 changes nothing. Among equal scores at the boundary, the
    first ones are reranked.
    """
    if top <= 0 or not len(scores):
        return scores
    order = np.argsort(-scores, kind="stable")
    head, tail = order[:top], order[top:]
    head = head[~np.isnan(cosine[head])]
    blended = ORIGINAL_SHARE * scores[head] + COSINE_SHARE * np.maximum(cosine[head], 0.0)
    if len(tail):
        blended = np.maximum(blended, np.nextafter(scores[tail[0]], np.inf))
    reranked = scores.copy()
    reranked[head] = blended
    return reranked
