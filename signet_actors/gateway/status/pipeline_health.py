"""The documented parts ``diagnostics`` and ``latency`` of the pipeline's status, from counts that exist already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from signet_actors.domain import health
from signet_actors.domain.providers import ModelState
from signet_actors.gateway.status.request_metrics import RequestMetrics
from signet_actors.operations import pipeline as api
from signet_actors.protocol.searcher import StoreStats
from signet_actors.runtime.histogram import BOUNDS_S, Histogram

_REMEMBER: Final = ("/api/memory/remember", "/api/memory/save", "/api/hook/remember")
_RECALL: Final = ("/api/memory/recall", "/api/memory/search")
_MUTATE: Final = ("/api/memory/modify", "/api/memory/forget", "/api/memory/{id}/recover")
"""Routes that only change memories. A PATCH and a DELETE share their route with a GET and cannot be distinguished."""


def diagnostics(
    queue: api.QueueCounts | None,
    oldest_s: float,
    stale_leases: int,
    stats: StoreStats | None,
    models: Iterable[ModelState | None],
    timestamp: str,
) -> api.DiagnosticsReport:
    """Return the diagnostics. A part that could not be queried is null and not in the composite score."""
    parts = {
        "queue": None if queue is None else _queue(queue, oldest_s, stale_leases),
        "storage": None if stats is None else _storage(stats),
        "index": None if stats is None else _index(stats),
        "provider": _provider(models),
    }
    score = health.composite_score({name: part.score for name, part in parts.items() if part is not None})
    return api.DiagnosticsReport(
        timestamp=timestamp,
        composite=None if score is None else api.CompositeHealth(score, health.status_of(score)),
        **parts,  # type: ignore[arg-type]
    )


def latency(figures: RequestMetrics) -> api.LatencyReports:
    """Return the latencies in milliseconds of requests since this gateway started, by kind of operation."""
    return api.LatencyReports(
        remember=_latency([figures.durations[route] for route in _REMEMBER if route in figures.durations]),
        recall=_latency([figures.durations[route] for route in _RECALL if route in figures.durations]),
        mutate=_latency([figures.durations[route] for route in _MUTATE if route in figures.durations]),
    )


def _queue(queue: api.QueueCounts, oldest_s: float, stale_leases: int) -> api.QueueHealth:
    ended = queue.completed + queue.dead
    dead_rate = round(queue.dead / ended, 4) if ended else 0.0
    score = health.queue_score(depth=queue.pending, dead_rate=dead_rate, oldest_s=oldest_s, stale_leases=stale_leases)
    return api.QueueHealth(score, health.status_of(score), queue.pending, oldest_s, dead_rate, stale_leases)


def _storage(stats: StoreStats) -> api.StorageHealth:
    score = health.storage_score(memories=stats.memories, tombstones=stats.tombstones)
    return api.StorageHealth(score, health.status_of(score), stats.memories, stats.tombstones, stats.database_bytes)


def _index(stats: StoreStats) -> api.IndexHealth:
    coverage = round(min(1.0, stats.embeddings / stats.memories), 3) if stats.memories else 1.0
    score = health.index_score(coverage=coverage)
    return api.IndexHealth(score, health.status_of(score), stats.memories, coverage)


def _provider(models: Iterable[ModelState | None]) -> api.ProviderHealth | None:
    """Return the health of the providers of both stages together; None if none is configured."""
    recent = [model.report.recent for model in models if model is not None and model.report is not None]
    if not recent:
        return None
    total, successes = sum(one.total for one in recent), sum(one.successes for one in recent)
    score = round(successes / total, 3) if total else 1.0
    failures, timeouts = sum(one.failures for one in recent), sum(one.timeouts for one in recent)
    return api.ProviderHealth(score, health.status_of(score), total, successes, failures, timeouts, score)


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
