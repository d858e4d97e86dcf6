"""The pipeline's queue, runs and review queue.

Source: docs/compatibility.md "Diagnostics and pipeline status"; docs/decisions.md 14, 16, 35.
"""

from __future__ import annotations

from typing import Any

import msgspec

from signet_actors.domain.extraction.facts import EntityTriple
from signet_actors.domain.jobs import STALE_LEASE_MS
from signet_actors.domain.timestamps import epoch_ms, iso
from signet_actors.errors import InvalidRequest
from signet_actors.operations.runs import RejectedReport
from signet_actors.protocol.pipeline_queries import (
    GetPipelineStatus,
    GetRun,
    KindQueue,
    ListReviews,
    ListRuns,
    PipelineStatus,
    ReviewItem,
    ReviewsListed,
    RunFound,
    RunsListed,
)
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import jobs, pipeline, proposals

MOST_CAUSES = 10


class _JobResult(msgspec.Struct, rename="camel"):
    """What of a job's result is read here."""

    entities: list[EntityTriple] = []
    rejected: list[RejectedReport] = []
    rejected_counts: dict[str, int] = msgspec.field(default={}, name="turnedAway")
    warnings: list[str] = []


_result = msgspec.json.Decoder(_JobResult)


def status(snapshot: Snapshot, query: GetPipelineStatus) -> PipelineStatus:
    """Return job counts and times by kind, causes of dead jobs, run counts and provider usage of the whole store."""
    today = query.now[:10]
    counters = pipeline.counters(snapshot, today)
    runs, undone, last_run_at = pipeline.run_totals(snapshot)
    return PipelineStatus(
        queues=_queues(snapshot, query.now),
        dead_causes=jobs.causes_of_dead(snapshot, MOST_CAUSES),
        runs=runs,
        runs_undone=undone,
        last_run_at=last_run_at,
        reviews_pending=proposals.pending_count(snapshot),
        today={name: number for name, _, number in counters if number},
        total={name: number for name, number, _ in counters},
        usage_today=pipeline.usage_of_day(snapshot, today),
    )


def list_reviews(snapshot: Snapshot, query: ListReviews) -> ReviewsListed:
    """Return proposals that wait, or waited, for a review, oldest first, without texts of forgotten memories.

    Raises ``InvalidRequest`` for an unknown state.
    """
    if query.state not in proposals.REVIEW_STATES:
        raise InvalidRequest(f"unknown review state {query.state!r}", field="state")
    page, total = proposals.review_page(snapshot, query.read, query.state, limit=query.limit, offset=query.offset)
    targets = proposals.contents_and_versions(
        snapshot, query.read, [row.target_id for row in page if row.target_id is not None]
    )
    return ReviewsListed(
        items=[ReviewItem(row, *targets.get(row.target_id or "", (None, None))) for row in page], total=total
    )


def get_run(snapshot: Snapshot, query: GetRun) -> RunFound:
    """Return a run with its proposals if the caller may read its memory, without texts of forgotten memories."""
    run = pipeline.run_by_id(snapshot, query.id, query.read)
    if run is None:
        return RunFound(None)
    result = _result_of(snapshot, run.job_id)
    return RunFound(
        run,
        proposals.of_run(snapshot, run.id),
        result.entities,
        result.rejected,
        result.rejected_counts,
        result.warnings,
    )


def _result_of(snapshot: Snapshot, job_id: str) -> _JobResult:
    """Return the job's result; an empty one if the memory is forgotten or it cannot be read."""
    encoded = jobs.result_of(snapshot, job_id)
    if encoded is None:
        return _JobResult()
    try:
        return _result.decode(encoded)
    except msgspec.DecodeError:
        return _JobResult()


def list_runs(snapshot: Snapshot, query: ListRuns) -> RunsListed:
    """Return runs over readable memories, newest first; runs of other scopes only if the memory's id is given."""
    return RunsListed(
        pipeline.run_page(snapshot, query.read, memory_id=query.memory_id, limit=query.limit, offset=query.offset)
    )


def _queues(snapshot: Snapshot, now: str) -> list[KindQueue]:
    figures: dict[str, dict[str, Any]] = {}
    times = {"delayed": "next_due_at", "leased": "oldest_lease_at"}
    for state, kind, number, time in jobs.queues(snapshot):
        figures.setdefault(kind, {})[state] = number
        if state in times:
            figures[kind][times[state]] = time
    stale_before = iso((epoch_ms(now) or 0) - STALE_LEASE_MS)
    for kind, number in jobs.stale_leases(snapshot, stale_before):
        figures[kind]["stale_leases"] = number
    for kind, created_at in jobs.oldest_pending_by_kind(snapshot):
        figures[kind]["oldest_pending_at"] = created_at
    return [KindQueue(kind, **found) for kind, found in sorted(figures.items())]
