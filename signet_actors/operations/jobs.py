"""The state of a background job.

Source: docs/compatibility.md "Reading memories", "Hooks and sessions".
"""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.domain.permissions import Permission
from signet_actors.operations.operation import Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import AgentFields


class JobReply(msgspec.Struct, frozen=True):
    """A job. ``attempts`` and ``error`` are also given under their older names; states: docs/decisions.md 13."""

    id: str
    memory_id: str | None
    document_id: str | None
    job_type: str
    status: str
    attempt_count: int
    attempts: int
    max_attempts: int
    next_attempt_at: str | None
    last_error: str | None
    last_error_code: str | None
    error: str | None
    leased_at: str | None
    completed_at: str | None
    failed_at: str | None
    created_at: str
    updated_at: str


GET_JOB: Final[Operation[AgentFields, JobReply]] = Operation(
    name="jobs.get",
    summary="State of a background job",
    tag="Jobs",
    method="GET",
    paths=("/api/memory/jobs/{id}", "/api/hooks/transcript-capture/{id}"),
    request=AgentFields,
    example={"id": "0b0d7c1e-13f0-4d7f-8a54-2f6d6c1d7d50"},
    replies={200: JobReply, 404: Problem, **PROBLEMS},
    permission=Permission.RECALL,
    owner_parts="jobs about sessions",
    served_by="searcher",
)
OPERATIONS: Final = (GET_JOB,)
