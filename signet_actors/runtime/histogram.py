"""A histogram of durations in fixed buckets, for Prometheus.

An observation is one bisection and two additions, cheap enough for every request.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

BOUNDS_S: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
"""Upper bounds in seconds, dense around the duration of a recall or a commit; a last bucket has no bound."""

_BOUNDS_NS: Final = tuple(int(bound * 1e9) for bound in BOUNDS_S)


class Histogram:
    """``counts`` holds the observations per bucket, not cumulative, one more than bounds; ``sum_ns`` is their sum."""

    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(_BOUNDS_NS) + 1)
        self.sum_ns = 0

    def observe(self, took_ns: int) -> None:
        """Count one duration; one equal to a bound falls into that bucket."""
        self.counts[bisect_left(_BOUNDS_NS, took_ns)] += 1
        self.sum_ns += took_ns
