"""How long something took, counted in fixed buckets: what a histogram of Prometheus needs, and nothing dearer.

An observation is one bisection and two additions, so that it may stand on every request.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

BOUNDS_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
"""Upper bounds in seconds, dense where a recall or a commit lies; a last bucket without a bound holds the rest."""

_BOUNDS_NS: Final = tuple(int(bound * 1e9) for bound in BOUNDS_S)


class Histogram:
    """``counts``: observations for each bucket, not cumulative, one more than there are bounds; ``sum_ns``: of all."""

    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS_NS) + 1)
        self.sum_ns = 0

    def observe(self, took_ns: int) -> None:
        """One more; what took exactly as long as a bound is within it."""
        self.counts[bisect_left(_BOUNDS_NS, took_ns)] += 1
        self.sum_ns += took_ns
