"""BM25 of short texts: how much a row says about a phrase that it holds.

Source: https://www.sqlite.org/fts5.html "The bm25() function" (k1, b, the inverse document frequency and its floor).
Departs: a phrase counts once however often it stands in a row, because the repetitions would have to be read from
the index's position lists, which costs ten times the rest; and b is 0.2, not 0.75, because a long row then gains
nothing by being long. Evidence recall@10 on five LoCoMo conversations, keywords alone and fused: FTS5's own ranking
62.8 and 66.6, here with b = 0.75 62.1 and 66.3, with 0.3 64.0 and 68.3, with 0.2 64.3 and 68.6, with 0 64.5 and 69.1.
With none at all, chunks of documents would outrank every fact.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

K1 = 1.2
B = 0.2
_MIN_IDF = 1e-6


def inverse_document_frequency(rows: int, holding: int) -> float:
    """``ln((N - n + 0.5) / (n + 0.5))`` of ``holding`` rows among ``rows``, above zero also for a word of most rows."""
    return max(_MIN_IDF, math.log(max(rows - holding + 0.5, 0.5) / (holding + 0.5)))


def weights(lengths: npt.NDArray[np.int32], mean_length: float) -> npt.NDArray[np.float64]:
    """What holding a phrase once is worth by the length of the row (tokens), before the inverse document frequency.

    A row of mean length has 1.
    """
    relative = lengths * np.float64(B / max(mean_length, 1.0))
    worth: npt.NDArray[np.float64] = (K1 + 1.0) / (1.0 + K1 * (1.0 - B + relative))
    return worth
