"""The last pass over the best candidates: a share of each one's score is replaced by how alike its vector is.

Source: memory-pipeline.txt "Optional Reranking", "Embedding-Based Reranker"; docs/decisions.md 9, 46.
Departs: there is no time limit and no order to fall back to, because the cosines are at hand when candidates have been
fused and the pass is a few array operations; and a score never falls below those of the tail, so that whoever reads
the scores sees the order that is documented, the reranked head before the untouched tail.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

ORIGINAL_SHARE = 0.7
COSINE_SHARE = 0.3


def rerank_by_cosine(scores: Floats, cosine: Floats, *, top: int) -> Floats:
    """``0.7 * score + 0.3 * cosine`` for the ``top`` best of ``scores``; all others, and those without a vector, keep
    theirs.

    ``scores``: shape (n,), >= 0. ``cosine``: shape (n,), in [-1, 1], NaN = no vector; one below zero counts as zero.
    ``top`` 0 changes nothing. Of equal scores at the edge the first ones are in the head.
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
