"""Find runs, jobs and proposals of the pipeline by the first characters of their ids.

Source: docs/compatibility.md "Diagnostics and pipeline status"; docs/cli.md "Output".
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from signet_actors.domain.permissions import Permission
from signet_actors.errors import InvalidRequest
from signet_actors.operations.field_types import Clamped, SecretRule, Text
from signet_actors.operations.memories import MIN_PREFIX_CHARS
from signet_actors.operations.operation import BY_AGENT, Operation
from signet_actors.operations.problem import PROBLEMS
from signet_actors.operations.request_fields import AgentFields


class PipelineIdReport(msgspec.Struct, frozen=True, rename="camel"):
    """An id, and the beginning of what it stands for: a run's memory, a job's kind and state, or a proposed fact.

    ``about`` is null while that text is forgotten, and once it was erased.
    """

    id: str
    about: str | None
    created_at: str


class PipelineIdsReply(msgspec.Struct, frozen=True):
    """What was found, by id."""

    found: list[PipelineIdReport]


class FindPipelineIdsRequest(AgentFields, frozen=True, kw_only=True):
    """Which ids to find."""

    kind: Annotated[
        Literal["run", "job", "dead_job", "proposal"],
        Meta(description="proposal: those that need or needed a review"),
    ]
    prefix: Annotated[
        str,
        Text(secret=SecretRule.KEEP),
        Meta(description=f"The first characters of an id, at least {MIN_PREFIX_CHARS}; for runs also of its job's id"),
    ]
    limit: Annotated[int, Clamped(low=1, high=100), Meta(description="Ids to return")] = 10

    def __post_init__(self) -> None:
        if len(self.prefix) < MIN_PREFIX_CHARS:
            raise InvalidRequest(f"prefix must have at least {MIN_PREFIX_CHARS} characters", field="prefix")


FIND: Final[Operation[FindPipelineIdsRequest, PipelineIdsReply]] = Operation(
    name="pipeline.find_by_prefix",
    summary="Find runs, jobs or proposals by the first characters of their id",
    tag="Pipeline",
    paths=("/api/pipeline/by-prefix",),
    request=FindPipelineIdsRequest,
    example={"kind": "run", "prefix": "0b0d7c"},
    replies={200: PipelineIdsReply, **PROBLEMS},
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
    served_by="searcher",
    description="Only what belongs to memories that the caller may read, in any scope.",
)
OPERATIONS: Final = (FIND,)
