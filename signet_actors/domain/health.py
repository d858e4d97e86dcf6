"""Health scores of the parts of the pipeline, from 0 to 1, and their composite.

Source: architecture.txt "Diagnostics and Repair" (thresholds, weights, status).
Departs: parts that are not measured have no score. The composite is the weighted mean of the parts that have one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

WEIGHTS: Final[Mapping[str, float]] = {"queue": 0.28, "storage": 0.14, "index": 0.19, "provider": 0.24}
MAX_DEPTH: Final = 50
MAX_DEAD_RATE: Final = 0.01
MAX_OLDEST_S: Final = 300.0
MAX_TOMBSTONE_RATIO: Final = 0.3
MIN_COVERAGE: Final = 0.8
_HEALTHY: Final = 0.8
_DEGRADED: Final = 0.5


def status_of(score: float) -> str:
    """Return the status word for ``score``."""
    if score >= _HEALTHY:
        return "healthy"
    return "degraded" if score >= _DEGRADED else "unhealthy"


def queue_score(*, depth: int, dead_rate: float, oldest_s: float | None, stale_leases: int) -> float:
    """Return the score of the queue, from its pending jobs, dead jobs and stale leases."""
    score = 1.0
    score -= 0.3 * (depth > MAX_DEPTH)
    score -= 0.3 * (dead_rate > MAX_DEAD_RATE)
    score -= 0.2 * (oldest_s is not None and oldest_s > MAX_OLDEST_S)
    score -= 0.2 * (stale_leases > 0)
    return round(score, 2)


def storage_score(*, memories: int, tombstones: int) -> float:
    """Return the score of the storage, from the share of tombstones among its rows."""
    rows = memories + tombstones
    return 0.7 if rows and tombstones / rows > MAX_TOMBSTONE_RATIO else 1.0


def index_score(*, coverage: float) -> float:
    """Return the score of the index. ``coverage`` is the share of the memories that have a vector."""
    return 0.7 if coverage < MIN_COVERAGE else 1.0


def composite_score(scores: Mapping[str, float]) -> float | None:
    """Return the weighted mean of the parts that have a score, or None if there are none."""
    weight = sum(WEIGHTS[name] for name in scores)
    return round(sum(WEIGHTS[name] * score for name, score in scores.items()) / weight, 3) if weight else None
