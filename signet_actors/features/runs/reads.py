"""Runs of the pipeline and their proposals, without texts that repeat what was forgotten (docs/decisions.md 35)."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from signet_actors.domain.extraction.facts import EntityTriple
from signet_actors.errors import NotFound
from signet_actors.features.runs import api
from signet_actors.operations.request_fields import AgentFields
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, readable, readable_in_any_scope
from signet_actors.store.reads import jobs
from signet_actors.store.reads.proposals import filled, proposal_columns

_RUN: Final = ", ".join(f"r.{name}" for name in api.RunReport.__struct_fields__)
_ONE: Final = f"SELECT {_RUN} FROM pipeline_runs r JOIN memories m ON m.id = r.memory_id WHERE {{}}"
_PAGE: Final = f"{_ONE} ORDER BY r.seq DESC LIMIT :limit OFFSET :offset"
_PROPOSALS: Final = (
    f"SELECT {proposal_columns(api.ProposalReport)} FROM memory_proposals p WHERE p.run_id = :run_id ORDER BY p.ordinal"
)
_counts = msgspec.json.Decoder(dict[str, int])


class _JobResult(msgspec.Struct, rename="camel"):
    """What of a job's result is read here."""

    entities: list[EntityTriple] = []
    rejected: list[api.RejectedReport] = []
    rejected_counts: dict[str, int] = msgspec.field(default={}, name="turnedAway")
    warnings: list[str] = []


_result = msgspec.json.Decoder(_JobResult)


def list_runs(snapshot: Snapshot, asked: Asked[api.ListRunsRequest]) -> api.RunListReply:
    """Return a page of the runs over readable memories, newest first; with an id, of that memory in any scope."""
    page, caller = asked.request, asked.caller
    if page.memory_id is None:
        where, bindings = readable(snapshot, caller.read)
    else:
        of_one = ("r.memory_id = :memory", {"memory": page.memory_id})
        where, bindings = conjunction(of_one, readable_in_any_scope(snapshot, caller.read))
    rows = snapshot.rows(_PAGE.format(where), {**bindings, "limit": page.limit, "offset": page.offset})
    return api.RunListReply([_run(row) for row in rows])


def get_run(snapshot: Snapshot, asked: Asked[AgentFields]) -> api.RunReply:
    """Return the run with this id or of the job with this id, if the caller may read its memory in any scope."""
    policy = readable_in_any_scope(snapshot, asked.caller.read)
    where, bindings = conjunction(("r.id = :id OR r.job_id = :id", {"id": asked.caller.path["run"]}), policy)
    row = snapshot.one(_ONE.format(where), bindings)
    if row is None:
        raise NotFound("Run not found")
    run, result = _run(row), _JobResult()
    encoded = jobs.result_of(snapshot, run.job_id)  # None while the memory is forgotten
    if encoded is not None:
        with contextlib.suppress(msgspec.DecodeError):
            result = _result.decode(encoded)
    proposals = [filled(api.ProposalReport, row) for row in snapshot.rows(_PROPOSALS, {"run_id": run.id})]
    relations = msgspec.convert(result.entities, list[api.RelationReport], from_attributes=True)
    return api.RunReply(run, proposals, relations, result.rejected, result.rejected_counts, result.warnings)


def _run(row: Sequence[Any]) -> api.RunReport:
    values = dict(zip(api.RunReport.__struct_fields__, row, strict=True))
    return api.RunReport(**{**values, "counts": _counts.decode(values["counts"])})


READS: Final = {api.LIST_RUNS: list_runs, api.GET_RUN: get_run}
