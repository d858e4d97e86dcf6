"""Repairs of the queue and the indexes, all behind one gate. Source: docs/compatibility.md "Repair gate"."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from signet_actors.domain.permissions import Permission
from signet_actors.features.diagnostics.api import ChangeFigures, HealthFigures
from signet_actors.operations.field_types import Clamped
from signet_actors.operations.operation import Effect, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.repair import REPAIR_REFUSALS, Confirmation, RepairReply
from signet_actors.operations.request_fields import NoFields
from signet_actors.operations.transcripts import OwnAgent
from signet_actors.protocol.message import Answered, KeyedRequest, Principal, Request

MAX_BATCH: Final = 1000


class EnterRepair(Request[Answered], frozen=True, kw_only=True, tag="repairs.enter"):
    """Ask whether the action may run now: ``RepairEntered``, or a failure. Writes nothing."""

    action: str
    principal: Principal


class RecordRepair(KeyedRequest[Answered], frozen=True, kw_only=True, tag="repairs.record"):
    """Record a repair that another process performed, and that changed ``affected`` rows."""

    action: str
    affected: int
    principal: Principal


class RepairAdmitted(msgspec.Struct, frozen=True):
    """The repair may run, or is recorded."""

    action: str


class MeasureStore(Request[Answered], frozen=True, tag="repairs.measure"):
    """Ask the writer for ``StoreFigures``, before and after repairs of the maintenance."""


class StoreFigures(msgspec.Struct, frozen=True):
    """What the health is computed from, without calls of models. ``at``: ISO."""

    at: str
    health: HealthFigures
    changes: ChangeFigures


class CheckTextRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """Whether to rebuild the index."""

    repair: Annotated[
        bool,
        Confirmation(),
        Meta(description="Rebuild the text index if its rows and the memories differ by more than a tenth"),
    ] = False


class BatchRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """How much to do at once."""

    limit: Annotated[int, Clamped(low=1, high=MAX_BATCH), Meta(description="Memories of one repair")] = 100


class FindWork(Request[Answered], frozen=True, tag="repairs.find_work"):
    """Ask for ``Work``."""


class Work(msgspec.Struct, frozen=True):
    """Live memories without a vector of their present content, and memories that are gone but have vectors."""

    unembedded: int
    orphans: int


class PlannedRepair(msgspec.Struct, frozen=True):
    """A repair that has something to do. ``name`` is the end of its path; ``recommended``: the maintenance does it."""

    name: str
    action: str
    reason: str
    recommended: bool


class PlanReply(msgspec.Struct, frozen=True):
    """The repairs that have something to do, in the order in which they should run."""

    repairs: list[PlannedRepair]


class GapsReply(msgspec.Struct, frozen=True):
    """Live memories without a vector of their present content. ``coverage``: the share of the others, as ``99.5%``."""

    unembedded: int
    total: int
    coverage: str


def _repair(verb: str, path: str, summary: str, request: type[Any], **others: Any) -> Operation[Any, RepairReply]:
    return Operation(
        name=f"repair.{verb}",
        summary=summary,
        tag="repair",
        method="POST",
        paths=(f"/api/repair/{path}",),
        request=request,
        replies={200: RepairReply, **REPAIR_REFUSALS},
        permission=Permission.ADMIN,
        served_by="writer",
        audited=True,
        effect=Effect.OTHER,
        rate="admin",
        owner_only=True,
        body_required=False,
        **others,
    )


RELEASE: Final[Operation[OwnAgent, RepairReply]] = _repair(
    "release_leases",
    "release-leases",
    "Return jobs with an expired lease to the queue now",
    OwnAgent,
    description="Instead of waiting for the next minute. A job without attempts left becomes dead.",
)
CHECK_TEXT: Final[Operation[CheckTextRequest, RepairReply]] = _repair(
    "check_text",
    "check-fts",
    "Compare the text index with the memories",
    CheckTextRequest,
    example={"repair": False},
    description="With `repair`, an index that differs by more than a tenth is rebuilt; meanwhile writes wait.",
)
REEMBED: Final[Operation[BatchRequest, RepairReply]] = _repair(
    "reembed",
    "re-embed",
    "Enqueue vectors of memories that have none",
    BatchRequest,
    example={"limit": 100},
    description="Also of memories whose embedding failed before. `GET /api/repair/embedding-gaps` counts them.",
)
CLEAN: Final[Operation[BatchRequest, RepairReply]] = _repair(
    "clean_orphans",
    "clean-orphans",
    "Delete vectors of memories that are gone",
    BatchRequest,
    example={"limit": 100},
)
GAPS: Final[Operation[OwnAgent, GapsReply]] = Operation(
    name="repair.embedding_gaps",
    summary="Count memories without a vector",
    tag="repair",
    paths=("/api/repair/embedding-gaps",),
    request=OwnAgent,
    replies={200: GapsReply, 403: Problem, **PROBLEMS},
    permission=Permission.DIAGNOSTICS,
    served_by="searcher",
    owner_only=True,
)
PLAN: Final[Operation[NoFields, PlanReply]] = Operation(
    name="repair.plan",
    summary="What repairs would do now",
    tag="repair",
    paths=("/api/repair",),
    replies={200: PlanReply, 403: Problem, **PROBLEMS},
    permission=Permission.DIAGNOSTICS,
    served_by="searcher",
    owner_only=True,
    description="Changes nothing. A repair whose state could not be measured within a second is not listed.",
)
OPERATIONS: Final = (PLAN, RELEASE, CHECK_TEXT, GAPS, REEMBED, CLEAN)
