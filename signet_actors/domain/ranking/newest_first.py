"""Put the newest first among results that answer equally well: versions of one fact differ in score by chance.

Source: docs/quality.md "Versions of a fact".
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

SHARE: Final = 0.03
"""Scores that differ by less than this share of the greater one are near."""
ROWS: Final = 64
"""So many of the best rows are compared."""

Floats = npt.NDArray[np.float64]


def near_groups(scores: Floats, covered: npt.NDArray[np.uint64]) -> list[npt.NDArray[np.int64]]:
    """Return the rows of each group of two or more with near scores that cover the same words; best first.

    ``scores`` descend, each beside a code of the words that its row covers. A group has the rows that are near its best
    row, so that a chain of small differences does not join very different ones.
    """
    groups = []
    free = np.ones(len(scores), np.bool_)
    for best in range(len(scores)):
        if free[best] and scores[best] > 0:
            near = free & (covered == covered[best]) & (scores > scores[best] * (1 - SHARE))
            free &= ~near
            if np.count_nonzero(near) > 1:
                groups.append(np.flatnonzero(near))
    return groups


def newest_first(scores: Floats, tied: npt.NDArray[np.int64], times: npt.NDArray[np.int64]) -> Floats:
    """Return the scores of the ``tied`` rows, exchanged so that a later time has a higher one; of equal times none.

    ``tied`` ascend, ``times`` are theirs.
    """
    exchanged = scores.copy()
    exchanged[tied[np.argsort(-times, kind="stable")]] = scores[tied]
    return exchanged
