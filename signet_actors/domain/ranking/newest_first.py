"""Put the newest first among results that answer equally well: versions of one fact differ in score by chance.

Source: docs/quality.md "Versions of a fact".
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

SHARE: Final = 0.03
"""Scores that differ by less than this share of the greater one are near."""
SHARE_OF_VERSIONS: Final = 1.0
"""Of texts that differ in one value the scores tell nothing: a model may find one value much nearer than another."""
ROWS: Final = 20
"""So many of the best rows are compared."""

Floats = npt.NDArray[np.float64]


def near_groups(scores: Sequence[float], covered: Sequence[Hashable], share: float = SHARE) -> list[list[int]]:
    """Return the rows of each group of two or more with near scores that cover the same words; best first.

    ``scores`` descend, each beside what tells which words its row covers, 0 for none: such a row is in no group. A
    group has the rows that are near its best row, so that a chain of small differences does not join very different
    ones.
    """
    groups: list[list[int]] = []
    open_groups: dict[Hashable, list[int]] = {}
    for at, (score, code) in enumerate(zip(scores, covered, strict=True)):
        group = open_groups.get(code)
        if group is not None and score > scores[group[0]] * (1 - share):
            group.append(at)
        elif code and score > 0:
            open_groups[code] = [at]
            groups.append(open_groups[code])
    return [group for group in groups if len(group) > 1]


def newest_first(scores: Floats, tied: Sequence[int], times: npt.NDArray[np.int64]) -> Floats:
    """Return the scores of the ``tied`` rows, exchanged so that a later time has a higher one; of equal times none.

    ``tied`` ascend, ``times`` are theirs.
    """
    exchanged = scores.copy()
    places = np.array(tied)
    exchanged[places[np.argsort(-times, kind="stable")]] = scores[places]
    return exchanged
