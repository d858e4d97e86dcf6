"""Health scores of the parts of the daemon, from 0 to 1, and their composite.

Source: architecture.txt "Diagnostics and Repair" (thresholds, weights, status); docs/compatibility.md "Diagnostics and
pipeline status" (duplicates).
Departs: the composite is the weighted mean of the parts that could be measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from signet_actors.domain.providers import ModelState
from signet_actors.features.diagnostics.api import ChangeFigures, HealthFigures
from signet_actors.operations import diagnostics

WEIGHTS: Final[Mapping[str, float]] = {
    "queue": 0.28,
    "storage": 0.14,
    "index": 0.19,
    "provider": 0.24,
    "mutation": 0.10,
    "connector": 0.05,
}
DOMAINS: Final = (*WEIGHTS, "duplicate", "update")
MAX_DEPTH: Final = 50
MAX_DEAD_RATE: Final = 0.01
MAX_OLDEST_S: Final = 300.0
MAX_TOMBSTONE_RATIO: Final = 0.3
MAX_TEXT_MISMATCH: Final = 0.1
MIN_COVERAGE: Final = 0.8
MAX_RECOVERS: Final = 5
_HEALTHY: Final = 0.8
_DEGRADED: Final = 0.5


def status_of(score: float) -> str:
    """Return the status word for ``score``."""
    if score >= _HEALTHY:
        return "healthy"
    return "degraded" if score >= _DEGRADED else "unhealthy"


def report(
    health: HealthFigures | None,
    changes: ChangeFigures | None,
    database_bytes: int | None,
    models: Iterable[ModelState | None],
    timestamp: str,
) -> diagnostics.DiagnosticsReport:
    """Return the diagnostics. A part that could not be measured is null and not in the composite score."""
    parts = {
        "queue": None if health is None else queue_health(health),
        "storage": None if health is None else storage_health(health, database_bytes),
        "index": None if health is None else index_health(health),
        "provider": provider_health(models),
        "mutation": None if changes is None else mutation_health(changes),
        "connector": diagnostics.ConnectorHealth(1.0, status_of(1.0)),
    }
    score = _composite({name: part.score for name, part in parts.items() if part is not None})
    return diagnostics.DiagnosticsReport(
        timestamp=timestamp,
        composite=diagnostics.CompositeHealth(score, status_of(score)) if health or changes else None,
        duplicate=None if changes is None else duplicate_health(changes),
        **parts,  # type: ignore[arg-type]
    )


def _composite(scores: Mapping[str, float]) -> float:
    weight = sum(WEIGHTS[name] for name in scores)
    return round(sum(WEIGHTS[name] * score for name, score in scores.items()) / weight, 3)


def queue_health(figures: HealthFigures) -> diagnostics.QueueHealth:
    """Return the health of the queue, from its pending jobs, dead jobs and stale leases."""
    ended = figures.completed + figures.dead
    dead_rate = round(figures.dead / ended, 4) if ended else 0.0
    score = 1.0
    score -= 0.3 * (figures.depth > MAX_DEPTH)
    score -= 0.3 * (dead_rate > MAX_DEAD_RATE)
    score -= 0.2 * (figures.oldest_s > MAX_OLDEST_S)
    score -= 0.2 * (figures.stale_leases > 0)
    score = round(score, 2)
    return diagnostics.QueueHealth(
        score, status_of(score), figures.depth, figures.oldest_s, dead_rate, figures.stale_leases
    )


def storage_health(figures: HealthFigures, database_bytes: int | None) -> diagnostics.StorageHealth:
    """Return the health of the storage, from the share of tombstones among its rows."""
    rows = figures.memories + figures.tombstones
    score = 0.7 if rows and figures.tombstones / rows > MAX_TOMBSTONE_RATIO else 1.0
    size = database_bytes, figures.ledger_rows
    return diagnostics.StorageHealth(score, status_of(score), figures.memories, figures.tombstones, *size)


def text_index_differs(figures: HealthFigures) -> bool:
    """Return whether the rows of the text index and the memories differ by more than a tenth."""
    return abs(figures.text_rows - figures.memories) > MAX_TEXT_MISMATCH * figures.memories


def index_health(figures: HealthFigures) -> diagnostics.IndexHealth:
    """Return the health of the indexes."""
    coverage = round(min(1.0, figures.embeddings / figures.memories), 3) if figures.memories else 1.0
    differs = text_index_differs(figures)
    score = round(1.0 - 0.5 * differs - 0.3 * (coverage < MIN_COVERAGE), 2)
    return diagnostics.IndexHealth(score, status_of(score), figures.text_rows, figures.memories, differs, coverage)


def provider_health(models: Iterable[ModelState | None]) -> diagnostics.ProviderHealth | None:
    """Return the health of the providers of both stages together; None if none is configured."""
    recent = [model.report.recent for model in models if model is not None and model.report is not None]
    if not recent:
        return None
    total, successes = sum(one.total for one in recent), sum(one.successes for one in recent)
    score = round(successes / total, 3) if total else 1.0
    failures, timeouts = sum(one.failures for one in recent), sum(one.timeouts for one in recent)
    return diagnostics.ProviderHealth(score, status_of(score), total, successes, failures, timeouts, score)


def mutation_health(figures: ChangeFigures) -> diagnostics.MutationHealth:
    """Return the health of the changes: many recoveries follow deletions that were wrong."""
    score = 0.7 if figures.recovers > MAX_RECOVERS else 1.0
    return diagnostics.MutationHealth(score, status_of(score), figures.recovers, figures.deletes)


def duplicate_health(figures: ChangeFigures) -> diagnostics.DuplicateHealth:
    """Return the health of the contents, from the share of exact duplicates."""
    ratio = figures.duplicates / figures.memories if figures.memories else 0.0
    score = 0.5 if ratio > 0.1 else 0.7 if ratio > 0.05 else 1.0
    return diagnostics.DuplicateHealth(
        score, status_of(score), figures.duplicates, figures.clusters, figures.memories, round(ratio, 4)
    )
