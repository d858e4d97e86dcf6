"""Runs of the pipeline, its counters, and the usage of providers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from signet_actors.operations.pipeline import UsageReport
from signet_actors.operations.runs import RunReport
from signet_actors.protocol.memories import ReadScope
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, readable, readable_in_any_scope

_RUN = ", ".join(f"r.{name}" for name in RunReport.__struct_fields__)
_ONE_RUN = f"SELECT {_RUN} FROM pipeline_runs r JOIN memories m ON m.id = r.memory_id WHERE {{}}"
_RUN_PAGE = f"{_ONE_RUN} ORDER BY r.seq DESC LIMIT :limit OFFSET :offset"
_RUN_COUNT = "SELECT count(*) FROM pipeline_runs"
_UNDONE_COUNT = "SELECT count(*) FROM pipeline_runs WHERE undone_at IS NOT NULL"
_LAST_RUN = "SELECT created_at FROM pipeline_runs ORDER BY seq DESC LIMIT 1"
_COUNTERS = (
    "SELECT c.name, CAST(sum(c.count) AS bigint), CAST(sum(CASE WHEN c.day = :day THEN c.count ELSE 0 END) AS bigint)"
    " FROM pipeline_counters c GROUP BY c.name"
)
_USAGE = (
    f"SELECT {', '.join(UsageReport.__struct_fields__)} FROM provider_usage WHERE day = :day ORDER BY provider, model"
)
_counts = msgspec.json.Decoder(dict[str, int])


class RunTotals(NamedTuple):
    """Counts over all runs of the store, and when the last one was stored (None if there is none)."""

    runs: int
    undone: int
    last_run_at: str | None


def run_by_id(snapshot: Snapshot, run_or_job_id: str, read: ReadScope) -> RunReport | None:
    """Return the run with this id or of the job with this id, if the caller may read its memory in any scope."""
    policy = readable_in_any_scope(snapshot, read.agent_id)
    where, bindings = conjunction(("r.id = :id OR r.job_id = :id", {"id": run_or_job_id}), policy)
    row = snapshot.one(_ONE_RUN.format(where), bindings)
    return None if row is None else _run(row)


def run_page(snapshot: Snapshot, read: ReadScope, *, memory_id: str | None, limit: int, offset: int) -> list[RunReport]:
    """Return a page of the runs over readable memories, newest first; with an id, of that memory in any scope."""
    if memory_id is None:
        where, bindings = readable(snapshot, read)
    else:
        of_one = ("r.memory_id = :memory", {"memory": memory_id})
        where, bindings = conjunction(of_one, readable_in_any_scope(snapshot, read.agent_id))
    rows = snapshot.rows(_RUN_PAGE.format(where), {**bindings, "limit": limit, "offset": offset})
    return [_run(row) for row in rows]


def run_totals(snapshot: Snapshot) -> RunTotals:
    return RunTotals(snapshot.value(_RUN_COUNT), snapshot.value(_UNDONE_COUNT), snapshot.value(_LAST_RUN))


def counters(snapshot: Snapshot, day: str) -> list[tuple[str, int, int]]:
    """Return ``(name, sum over all days, sum of the day)`` of each counter."""
    return [(name, total, of_day) for name, total, of_day in snapshot.rows(_COUNTERS, {"day": day})]


def usage_of_day(snapshot: Snapshot, day: str) -> list[UsageReport]:
    return [UsageReport(*row) for row in snapshot.rows(_USAGE, {"day": day})]


def _run(row: Sequence[Any]) -> RunReport:
    values = dict(zip(RunReport.__struct_fields__, row, strict=True))
    return RunReport(**{**values, "counts": _counts.decode(values["counts"])})
