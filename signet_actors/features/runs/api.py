"""The runs of the pipeline, and undoing one.

Source: memory-pipeline.txt "Worker Model"; docs/decisions.md 14, 16, 18.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Clamped
from signet_actors.operations.operation import BY_AGENT, EXAMPLE_MEMORY, Effect, Operation
from signet_actors.operations.problem import CHANGE_PROBLEMS, PROBLEMS, Problem
from signet_actors.operations.request_fields import AgentFields, CallerFields, Offset, SelectionText


class RunReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of one extract job; ``counts`` maps outcomes to proposals, as of when the run was written."""

    id: str
    job_id: str
    memory_id: str
    agent_id: str
    mode: str
    provider: str
    model: str
    proposals: int
    counts: dict[str, int]
    created_at: str
    undone_at: str | None
    undone_by: str | None


class ProposalReport(msgspec.Struct, frozen=True, rename="camel"):
    """One proposal of a run. ``reason`` says why it was not applied; ``rationale`` is the model's.

    Text is null once a memory that it came from, is about or may quote was erased, and while that memory is forgotten.
    """

    id: str
    ordinal: int
    action: str
    outcome: str
    reason: str | None
    rationale: str | None
    fact_content: str | None
    fact_type: str
    fact_confidence: float
    confidence: float
    target_id: str | None
    target_version: int | None
    result_memory_id: str | None
    result_version: int | None
    syntactic_contradiction: bool
    semantic_contradiction: bool | None
    review_state: str | None
    reviewed_by: str | None
    reviewed_at: str | None
    undo_note: str | None


class RunListReply(msgspec.Struct, frozen=True):
    """A page, newest first."""

    runs: list[RunReport]


class RelationReport(msgspec.Struct, frozen=True, rename="camel"):
    """``source`` has the ``relationship`` to ``target``; types may be unknown."""

    source: str
    relationship: str
    target: str
    confidence: float
    source_type: str | None
    target_type: str | None


class RejectedReport(msgspec.Struct, frozen=True):
    """The beginning of a fact that never became a proposal, with the ``reason``.

    ``echo_…``: it repeats what a recall had returned; ``repeated``: an earlier fact of the run; ``prompt_…``: the
    prompt; ``undecided``: the model gave no usable decision. Else it is no fact.
    """

    content: str
    type: str
    confidence: float
    reason: str


class RunReply(msgspec.Struct, frozen=True, rename="camel"):
    """A run with its proposals in order, what it rejected before, and the relations between entities that it found.

    ``rejectedCounts`` counts by reason what never became a proposal; without ``rejected`` facts it is the memory
    itself, or the run is of an earlier release. ``warnings`` are about the model's answers. All but the proposals is
    kept as long as its job, and hidden while its memory is forgotten.
    """

    run: RunReport
    proposals: list[ProposalReport]
    entities: list[RelationReport]
    rejected: list[RejectedReport] = []
    rejected_counts: dict[str, int] = {}
    warnings: list[str] = []


class UndoResult(msgspec.Struct, frozen=True, rename="camel"):
    """One proposal that had changed something. ``status``: undone, or kept for the ``reason``."""

    ordinal: int
    action: str
    status: str
    memory_id: str | None
    reason: str | None


class UndoReply(msgspec.Struct, frozen=True, rename="camel"):
    """What the run changed is restored, except what is ``kept``.

    ``reviewsClosed`` counts its proposals that were removed from the review queue.
    """

    run_id: str
    status: Literal["undone", "already_undone"]
    undone: int
    kept: int
    results: list[UndoResult]
    reviews_closed: int = 0
    success: Literal[True] = True


class ListRunsRequest(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """Which page of which runs."""

    memory_id: Annotated[SelectionText, Meta(description="Only the runs on this memory")] | None = None
    limit: Annotated[int, Clamped(low=1, high=500), Meta(description="Runs to return")] = 50
    offset: Offset = 0


class UndoRequest(CallerFields, frozen=True, kw_only=True, omit_defaults=True):
    """The author of the undo."""


LIST_RUNS: Final[Operation[ListRunsRequest, RunListReply]] = Operation(
    name="runs.list",
    summary="List the pipeline's runs",
    tag="Pipeline",
    paths=("/api/pipeline/runs",),
    request=ListRunsRequest,
    memory_ids=("memory_id",),
    example={"memory_id": EXAMPLE_MEMORY, "limit": 20},
    replies={200: RunListReply, **PROBLEMS},
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
    served_by="searcher",
)
GET_RUN: Final[Operation[AgentFields, RunReply]] = Operation(
    name="runs.get",
    summary="Read a run with its proposals",
    tag="Pipeline",
    paths=("/api/pipeline/runs/{run}",),
    request=AgentFields,
    example={"run": "0b0d7c1e-13f0-4d7f-8a54-2f6d6c1d7d50"},
    replies={200: RunReply, 404: Problem, **PROBLEMS},
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
    served_by="searcher",
    description="By the id of the run or of its job.",
)
UNDO_RUN: Final[Operation[UndoRequest, UndoReply]] = Operation(
    name="runs.undo",
    summary="Undo the changes of a run",
    tag="Pipeline",
    method="POST",
    paths=("/api/pipeline/runs/{run}/undo",),
    request=UndoRequest,
    example={"run": "0b0d7c1e-13f0-4d7f-8a54-2f6d6c1d7d50", "changed_by": "anna"},
    replies={200: UndoReply, 404: Problem, **CHANGE_PROBLEMS},
    permission=Permission.MODIFY,
    scoped_by=BY_AGENT,
    served_by="writer",
    effect=Effect.MEMORIES,
    rate="modify",
    owner_only=True,
    body_required=False,
    description="Memories that were changed since are kept and reported. Pending reviews of the run are closed. "
    "Idempotent.",
)
OPERATIONS: Final = (LIST_RUNS, GET_RUN, UNDO_RUN)
