"""The documented part ``latency`` of the pipeline's status, from figures that exist already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from signet_actors.features.analytics.api import StoredFigures
from signet_actors.features.analytics.rules import latency_of
from signet_actors.gateway.status.request_metrics import RequestMetrics
from signet_actors.operations import pipeline as api
from signet_actors.runtime.histogram import BOUNDS_S, Histogram

_REMEMBER: Final = ("/api/memory/remember", "/api/memory/save", "/api/hook/remember")
_RECALL: Final = ("/api/memory/recall", "/api/memory/search")
_MUTATE: Final = ("/api/memory/modify", "/api/memory/forget", "/api/memory/{id}/recover")
"""Routes that only change memories. A PATCH and a DELETE share their route with a GET and cannot be distinguished."""


def latency(figures: RequestMetrics, jobs: StoredFigures | None) -> api.LatencyReports:
    """Return the latencies of requests since this gateway started, by kind of operation, and of jobs; milliseconds."""
    return api.LatencyReports(
        remember=_latency([figures.durations[route] for route in _REMEMBER if route in figures.durations]),
        recall=_latency([figures.durations[route] for route in _RECALL if route in figures.durations]),
        mutate=_latency([figures.durations[route] for route in _MUTATE if route in figures.durations]),
        jobs=None if jobs is None else latency_of(jobs.jobs_ms),
    )


def _latency(histograms: Sequence[Histogram]) -> api.LatencyReport:
    counts = [sum(bucket) for bucket in zip(*(one.counts for one in histograms), strict=True)]
    count = sum(counts)
    if not count:
        return api.LatencyReport()
    mean_ms = sum(one.sum_ns for one in histograms) / count / 1e6
    p50, p95, p99 = (_quantile_ms(counts, count * share) for share in (0.5, 0.95, 0.99))
    return api.LatencyReport(p50, p95, p99, count, round(mean_ms, 2))


def _quantile_ms(counts: Sequence[int], rank: float) -> float:
    """Return a quantile, interpolated within its bucket; for the last, unbounded bucket its lower bound."""
    seen, low = 0, 0.0
    for count, high in zip(counts, BOUNDS_S, strict=False):
        if count and seen + count >= rank:
            return round(1000 * (low + (high - low) * (rank - seen) / count), 2)
        seen, low = seen + count, high
    return round(1000 * low, 2)
