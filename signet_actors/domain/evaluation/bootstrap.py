"""Confidence intervals of means, by resampling the questions.

The percentile bootstrap: the mean is computed again for samples of the questions, drawn with replacement; the middle
95 % of these means is the interval. The seed is fixed, so the same scores have the same interval. Two configurations
are compared by the differences between the scores of the same question, which vary less than the scores do.

Source: Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

RESAMPLES: Final = 2000
_AT_ONCE: Final = 50
_SEED: Final = 20_240_229
_INTERVAL: Final = (2.5, 97.5)


class Estimate(NamedTuple):
    """A mean and its 95 % confidence interval."""

    mean: float
    low: float
    high: float

    @property
    def is_significant(self) -> bool:
        """Return whether the interval of a difference excludes zero."""
        return self.low > 0 or self.high < 0


def estimates(scores: Sequence[Sequence[float]]) -> list[Estimate]:
    """Return the estimate of each measure. ``scores`` has a row for each question, a column for each measure."""
    table: npt.NDArray[np.float64] = np.asarray(scores, np.float64)
    if not len(table):
        return []
    rng = np.random.default_rng(_SEED)
    count = len(table)
    means = np.concatenate(
        [
            rng.multinomial(count, np.full(count, 1 / count), size=_AT_ONCE) @ table / count
            for _ in range(RESAMPLES // _AT_ONCE)
        ]
    )
    low, high = np.percentile(means, _INTERVAL, axis=0)
    return [Estimate(*map(float, one)) for one in zip(table.mean(axis=0), low, high, strict=True)]


def differences(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> list[Estimate]:
    """Return the estimate of ``after`` minus ``before`` for each measure; both have the same questions in order."""
    return estimates(np.asarray(after, np.float64) - np.asarray(before, np.float64))  # type: ignore[arg-type]
