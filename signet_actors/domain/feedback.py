"""Ratings of memories by agents: from -1, the memory misled, to 1, it helped.

Source: docs/compatibility.md "Feedback"; architecture.txt "agent_feedback".
"""

from __future__ import annotations

import math


def clamped_score(value: object) -> float | None:
    """Return the score within -1 and 1, None if it is no finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return float(max(-1.0, min(1.0, value)))


def running_mean(mean: float, count: int, score: float) -> float:
    """Return the mean of ``count`` scores with the mean ``mean`` and a further one."""
    return max(-1.0, min(1.0, (mean * count + score) / (count + 1)))


def feedback_type(score: float) -> str:
    """Return the documented word for a mean score."""
    return "positive" if score > 0 else "negative" if score < 0 else "neutral"
