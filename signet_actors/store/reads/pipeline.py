"""Counts of the pipeline's runs, its counters, and the usage of providers."""

from __future__ import annotations

from typing import NamedTuple

from signet_actors.operations.pipeline import UsageReport
from signet_actors.store.engine import Snapshot

_RUN_COUNT = "SELECT count(*) FROM pipeline_runs"
_UNDONE_COUNT = "SELECT count(*) FROM pipeline_runs WHERE undone_at IS NOT NULL"
_LAST_RUN = "SELECT created_at FROM pipeline_runs ORDER BY seq DESC LIMIT 1"
_COUNTERS = (
    "SELECT c.name, CAST(sum(c.count) AS bigint), CAST(sum(CASE WHEN c.day = :day THEN c.count ELSE 0 END) AS bigint)"
    " FROM pipeline_counters c GROUP BY c.name"
)
_USAGE = (
    f"SELECT {', '.join(UsageReport.__struct_fields__)} FROM provider_usage WHERE day >= :day"
    " ORDER BY day DESC, provider, model"
)


class RunTotals(NamedTuple):
    """Counts over all runs of the store, and when the last one was stored (None if there is none)."""

    runs: int
    undone: int
    last_run_at: str | None


def run_totals(snapshot: Snapshot) -> RunTotals:
    return RunTotals(snapshot.value(_RUN_COUNT), snapshot.value(_UNDONE_COUNT), snapshot.value(_LAST_RUN))


def counters(snapshot: Snapshot, day: str) -> list[tuple[str, int, int]]:
    """Return ``(name, sum over all days, sum of the day)`` of each counter."""
    return [(name, total, of_day) for name, total, of_day in snapshot.rows(_COUNTERS, {"day": day})]


def usage_since(snapshot: Snapshot, day: str) -> list[UsageReport]:
    """Return the usage of that UTC day and of later ones, the last day first."""
    return [UsageReport(*row) for row in snapshot.rows(_USAGE, {"day": day})]
