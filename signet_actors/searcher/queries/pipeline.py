"""The pipeline's queue, and counts of its runs and reviews.

Source: docs/compatibility.md "Diagnostics and pipeline status".
"""

from __future__ import annotations

from typing import Any

from signet_actors.protocol.pipeline_queries import (
    GetPipelineStatus,
    KindQueue,
    PipelineStatus,
)
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import jobs, pipeline, proposals

MOST_CAUSES = 10


def status(snapshot: Snapshot, query: GetPipelineStatus) -> PipelineStatus:
    """Return job counts and times by kind, causes of dead jobs, run counts and provider usage of the whole store."""
    today = query.now[:10]
    counters = pipeline.counters(snapshot, today)
    runs, undone, last_run_at = pipeline.run_totals(snapshot)
    return PipelineStatus(
        queues=_queues(snapshot),
        dead_causes=jobs.causes_of_dead(snapshot, MOST_CAUSES),
        runs=runs,
        runs_undone=undone,
        last_run_at=last_run_at,
        reviews_pending=proposals.pending_count(snapshot),
        today={name: number for name, _, number in counters if number},
        total={name: number for name, number, _ in counters},
        usage_today=pipeline.usage_since(snapshot, today),
    )


def _queues(snapshot: Snapshot) -> list[KindQueue]:
    figures: dict[str, dict[str, Any]] = {}
    times = {"delayed": "next_due_at", "leased": "oldest_lease_at"}
    for state, kind, number, time in jobs.queues(snapshot):
        figures.setdefault(kind, {})[state] = number
        if state in times:
            figures[kind][times[state]] = time
    for kind, created_at in jobs.oldest_pending_by_kind(snapshot):
        figures[kind]["oldest_pending_at"] = created_at
    return [KindQueue(kind, **found) for kind, found in sorted(figures.items())]
