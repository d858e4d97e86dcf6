"""Runs, jobs and proposals by the first characters of their ids.

The ids lie between the prefix and the prefix followed by the highest code point: a range of the index on ``id``. Of a
forgotten memory no text is shown.
"""

from __future__ import annotations

from typing import Final

from signet_actors.features.pipeline_ids.api import FIND, FindPipelineIdsRequest, PipelineIdReport, PipelineIdsReply
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import readable_in_any_scope
from signet_actors.store.reads.proposals import FACT_FORGOTTEN

_ABOUT_CHARS = 200
_HIGHEST_CHARACTER = "\U0010ffff"


def _runs(column: str) -> str:
    return (
        f"SELECT r.id, CASE WHEN m.is_deleted = 0 THEN substr(m.content, 1, {_ABOUT_CHARS}) END, r.created_at"
        " FROM pipeline_runs r JOIN memories m ON m.id = r.memory_id"
        f" WHERE {column} >= :first AND {column} < :last AND {{policy}}"
    )


def _jobs(state: str) -> str:
    return (
        "SELECT j.id, j.job_type || ', ' || j.status, j.created_at FROM memory_jobs j"
        f" WHERE j.id >= :first AND j.id < :last AND {state}"
        " AND (j.memory_id IS NULL OR EXISTS (SELECT 1 FROM memories m WHERE m.id = j.memory_id AND {policy}))"
    )


_BY_KIND: Final = {
    "run": f"{_runs('r.id')} UNION {_runs('r.job_id')}",  # a run is found by its own id and by its job's
    "job": _jobs("1 = 1"),
    "dead_job": _jobs("j.status = 'dead'"),
    "proposal": (
        f"SELECT p.id, CASE WHEN {FACT_FORGOTTEN} THEN NULL ELSE substr(p.fact_content, 1, {_ABOUT_CHARS}) END,"
        " p.created_at FROM memory_proposals p JOIN memories m ON m.id = p.memory_id"
        " WHERE p.id >= :first AND p.id < :last AND p.review_state IS NOT NULL AND {policy}"
    ),
}
_PAGE = "{} ORDER BY 1 LIMIT :limit"


def found(snapshot: Snapshot, asked: Asked[FindPipelineIdsRequest]) -> PipelineIdsReply:
    """Return readable runs, jobs, dead jobs or proposals for review whose ids begin with the prefix, by id."""
    request = asked.request
    policy, bindings = readable_in_any_scope(snapshot, asked.caller.read)
    bindings |= {"first": request.prefix, "last": request.prefix + _HIGHEST_CHARACTER, "limit": request.limit}
    rows = snapshot.rows(_PAGE.format(_BY_KIND[request.kind].format(policy=policy)), bindings)
    return PipelineIdsReply([PipelineIdReport(*row) for row in rows])


READS: Final = {FIND: found}
