"""The pipeline's queue, runs and review queue.

Source: docs/compatibility.md "Diagnostics and pipeline status"; docs/decisions.md 14, 16, 35.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from signet_actors.domain.jobs import STALE_LEASE_MS
from signet_actors.domain.timestamps import epoch_ms, iso
from signet_actors.errors import InvalidRequest
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.pipeline_queries import (
    DeadCause,
    GetPipelineStatus,
    GetRun,
    KindQueue,
    ListReviews,
    ListRuns,
    PipelineStatus,
    ProposalRow,
    ProviderUsage,
    Relation,
    ReviewItem,
    ReviewsListed,
    RunFound,
    RunRow,
    RunsListed,
)
from signet_actors.store.read_policy import conjunction, readable, readable_in_any_scope
from signet_actors.store.snapshot import Snapshot

MOST_CAUSES = 10
REVIEW_STATES = ("pending", "approved", "rejected")

# Texts of a proposal are hidden while a memory that they quote is forgotten. A fact repeats the memory that it was
# extracted from and the memory that it created. A reason may quote any memory that the model was shown.
_FORGOTTEN = "EXISTS (SELECT 1 FROM memories f WHERE f.is_deleted = 1 AND f.id IN ({}))"
_SOURCES = "p.memory_id, CASE p.action WHEN 'delete' THEN NULL ELSE p.result_memory_id END"
FACT_FORGOTTEN = _FORGOTTEN.format(_SOURCES)
"""SQL condition: the fact of proposal ``p`` repeats a forgotten memory."""
REASON_FORGOTTEN = (
    f"({_FORGOTTEN.format('p.memory_id, p.target_id, p.result_memory_id')} OR"
    " EXISTS (SELECT 1 FROM shown_memories s JOIN memories f ON f.seq = s.memory_seq"
    " WHERE s.proposal_seq = p.seq AND f.is_deleted = 1))"
)
"""SQL condition: the reason of proposal ``p`` may quote a forgotten memory."""
_REDACTED = {
    "fact_content": f"CASE WHEN {FACT_FORGOTTEN} THEN NULL ELSE p.fact_content END",
    "rationale": f"CASE WHEN {REASON_FORGOTTEN} THEN NULL ELSE p.rationale END",
}
_PROPOSAL = ", ".join(_REDACTED.get(name, f"p.{name}") for name in ProposalRow.__struct_fields__)
_RUN = ", ".join(f"r.{name}" for name in RunRow.__struct_fields__)
_FLAGS = ("syntactic_contradiction", "semantic_contradiction")
_counts = msgspec.json.Decoder(dict[str, int])

# The literal state lets the planner use the partial index of that state. The last column is a time that the status
# page shows for the state.
_QUEUES = (
    ("pending", "SELECT job_type, count(*), NULL FROM memory_jobs WHERE status = 'pending' GROUP BY 1"),
    (
        "delayed",
        (
            "SELECT job_type, count(*), min(available_at) FROM memory_jobs"
            " WHERE status = 'pending' AND available_at IS NOT NULL GROUP BY 1"
        ),
    ),
    ("leased", "SELECT job_type, count(*), min(leased_at) FROM memory_jobs WHERE status = 'leased' GROUP BY 1"),
    ("completed", "SELECT job_type, count(*), NULL FROM memory_jobs WHERE status = 'completed' GROUP BY 1"),
    ("dead", "SELECT job_type, count(*), NULL FROM memory_jobs WHERE status = 'dead' GROUP BY 1"),
)
_STALE_LEASES = "SELECT job_type, count(*) FROM memory_jobs WHERE status = 'leased' AND leased_at < ? GROUP BY 1"
_OLDEST_PENDING = """
    SELECT j.job_type, j.created_at FROM memory_jobs j JOIN
        (SELECT min(seq) AS seq FROM memory_jobs WHERE status = 'pending' GROUP BY job_type) o ON o.seq = j.seq
"""


def status(snapshot: Snapshot, query: GetPipelineStatus) -> PipelineStatus:
    """Return job counts and times by kind, causes of dead jobs, run counts and provider usage of the whole store."""
    today = query.now[:10]
    counters: list[tuple[str, int, int]] = snapshot.rows(
        "SELECT name, sum(count), sum(CASE WHEN day = ? THEN count ELSE 0 END) FROM pipeline_counters GROUP BY name",
        (today,),
    )
    return PipelineStatus(
        queues=_queues(snapshot, query.now),
        dead_causes=[
            DeadCause(*row)
            for row in snapshot.rows(
                "SELECT job_type, coalesce(error, 'unknown'), count(*), max(failed_at) FROM memory_jobs"
                " WHERE status = 'dead' GROUP BY 1, 2 ORDER BY 3 DESC, 4 DESC LIMIT ?",
                (MOST_CAUSES,),
            )
        ],
        runs=snapshot.value("SELECT count(*) FROM pipeline_runs"),
        runs_undone=snapshot.value("SELECT count(*) FROM pipeline_runs WHERE undone_at IS NOT NULL"),
        last_run_at=snapshot.value("SELECT created_at FROM pipeline_runs ORDER BY seq DESC LIMIT 1"),
        reviews_pending=snapshot.value("SELECT count(*) FROM memory_proposals WHERE review_state = 'pending'"),
        today={name: number for name, _, number in counters if number},
        total={name: number for name, number, _ in counters},
        usage_today=[
            ProviderUsage(*row)
            for row in snapshot.rows(
                f"SELECT {', '.join(ProviderUsage.__struct_fields__)} FROM provider_usage WHERE day = ?"
                " ORDER BY provider, model",
                (today,),
            )
        ],
    )


def list_reviews(snapshot: Snapshot, query: ListReviews) -> ReviewsListed:
    """Return proposals that wait, or waited, for a review, oldest first, without texts of forgotten memories.

    Raises ``InvalidRequest`` for an unknown state.
    """
    if query.state not in {*REVIEW_STATES, "all"}:
        raise InvalidRequest(f"unknown review state {query.state!r}", field="state")
    state = "p.review_state IS NOT NULL" if query.state == "all" else f"p.review_state = '{query.state}'"
    where, bindings = conjunction((state, {}), readable(snapshot.connection, query.read))
    source = f"FROM memory_proposals p JOIN memories m ON m.id = p.memory_id WHERE {where}"
    rows = snapshot.rows(
        f"SELECT {_PROPOSAL} {source} ORDER BY p.seq LIMIT :limit OFFSET :offset",
        {**bindings, "limit": query.limit, "offset": query.offset},
    )
    proposals = [_proposal(row) for row in rows]
    targets = _targets(snapshot, query.read, [row.target_id for row in proposals if row.target_id is not None])
    return ReviewsListed(
        items=[ReviewItem(row, *targets.get(row.target_id or "", (None, None))) for row in proposals],
        total=snapshot.value(f"SELECT count(*) {source}", bindings),
    )


def get_run(snapshot: Snapshot, query: GetRun) -> RunFound:
    """Return a run with its proposals if the caller may read its memory, without texts of forgotten memories."""
    policy = readable_in_any_scope(snapshot.connection, query.read.agent_id)
    where, bindings = conjunction(("r.id = :id OR r.job_id = :id", {"id": query.id}), policy)
    row = snapshot.one(
        f"SELECT {_RUN} FROM pipeline_runs r JOIN memories m ON m.id = r.memory_id WHERE {where}", bindings
    )
    if row is None:
        return RunFound(None)
    run = _run(row)
    rows = snapshot.rows(f"SELECT {_PROPOSAL} FROM memory_proposals p WHERE p.run_id = ? ORDER BY p.ordinal", (run.id,))
    return RunFound(run, [_proposal(row) for row in rows], _relations(snapshot, run.job_id))


def _relations(snapshot: Snapshot, job_id: str) -> list[Relation]:
    """Return the relations in the job's result; empty if the memory is forgotten or the result has none."""
    kept = snapshot.one(
        "SELECT j.result -> '$.entities' FROM memory_jobs j JOIN memories m ON m.id = j.memory_id"
        " WHERE j.id = ? AND m.is_deleted = 0 AND json_valid(j.result)",
        (job_id,),
    )
    if kept is None or kept[0] is None:
        return []
    try:
        return msgspec.json.decode(kept[0], type=list[Relation])
    except msgspec.DecodeError:
        return []


def list_runs(snapshot: Snapshot, query: ListRuns) -> RunsListed:
    """Return runs over readable memories, newest first; runs of other scopes only if the memory's id is given."""
    if query.memory_id is None:
        where, bindings = readable(snapshot.connection, query.read)
    else:
        of_one = ("r.memory_id = :memory", {"memory": query.memory_id})
        where, bindings = conjunction(of_one, readable_in_any_scope(snapshot.connection, query.read.agent_id))
    rows = snapshot.rows(
        f"SELECT {_RUN} FROM pipeline_runs r JOIN memories m ON m.id = r.memory_id WHERE {where}"
        " ORDER BY r.seq DESC LIMIT :limit OFFSET :offset",
        {**bindings, "limit": query.limit, "offset": query.offset},
    )
    return RunsListed([_run(row) for row in rows])


def _queues(snapshot: Snapshot, now: str) -> list[KindQueue]:
    figures: dict[str, dict[str, Any]] = {}
    times = {"delayed": "next_due_at", "leased": "oldest_lease_at"}
    for state, sql in _QUEUES:
        for kind, number, time in snapshot.rows(sql):
            figures.setdefault(kind, {})[state] = number
            if state in times:
                figures[kind][times[state]] = time
    stale_before = iso((epoch_ms(now) or 0) - STALE_LEASE_MS)
    for kind, number in snapshot.rows(_STALE_LEASES, (stale_before,)):
        figures[kind]["stale_leases"] = number
    for kind, created_at in snapshot.rows(_OLDEST_PENDING):
        figures[kind]["oldest_pending_at"] = created_at
    return [KindQueue(kind, **found) for kind, found in sorted(figures.items())]


def _targets(snapshot: Snapshot, read: ReadScope, ids: list[str]) -> dict[str, tuple[str, int]]:
    """Return content and version of the live, readable ones of the memories."""
    where, bindings = conjunction(
        ("m.is_deleted = 0", {"ids": msgspec.json.encode(ids).decode()}),
        readable(snapshot.connection, read),
    )
    rows = snapshot.rows(
        "SELECT m.id, m.content, m.version FROM json_each(:ids) i CROSS JOIN memories m ON m.id = i.value"
        f" WHERE {where}",
        bindings,
    )
    return {memory_id: (content, version) for memory_id, content, version in rows}


def _proposal(row: Sequence[Any]) -> ProposalRow:
    values = dict(zip(ProposalRow.__struct_fields__, row, strict=True))
    values |= {flag: None if values[flag] is None else bool(values[flag]) for flag in _FLAGS}
    return ProposalRow(**values)


def _run(row: Sequence[Any]) -> RunRow:
    values = dict(zip(RunRow.__struct_fields__, row, strict=True))
    return RunRow(**{**values, "counts": _counts.decode(values["counts"])})
