"""Repairs on demand.

Source: docs/compatibility.md "Diagnostics and pipeline status"; memory-pipeline.txt "Retention Worker";
architecture.txt "Repair Actions".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import ArgumentForm, FieldType, Given
from signet_actors.operations.operation import Effect, Operation
from signet_actors.operations.requeue import REPAIR_PROBLEMS, RequeueRequest


@dataclass(frozen=True, kw_only=True)
class Confirmation(FieldType):
    """A JSON boolean. No other value, such as 1 or a text, confirms anything."""

    argument: ClassVar[ArgumentForm] = ArgumentForm.JSON

    def read(self, given: Given) -> Any:
        if not isinstance(given.value, bool):
            raise given.invalid("must be a boolean")
        return given.value


class SweepRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How to run the sweep."""

    confirm_clock: Annotated[bool, Confirmation(), Meta(description="The wall clock is correct although it jumped")] = (
        False
    )


class RepairStep(msgspec.Struct, frozen=True):
    """One step of a repair; ``more`` means that rows remain for the next sweep."""

    step: str
    count: int
    more: bool


class RepairReply(msgspec.Struct, frozen=True):
    """``affected`` counts rows; ``success`` is false if the repair could not be done, and ``message`` says why."""

    action: str
    success: bool
    affected: int
    message: str
    steps: list[RepairStep]


SWEEP: Final[Operation[SweepRequest, RepairReply]] = Operation(
    name="repair.sweep",
    summary="Purge data past its retention now",
    tag="repair",
    method="POST",
    paths=("/api/repair/retention-sweep",),
    request=SweepRequest,
    example={"confirmClock": False},
    replies={200: RepairReply},
    permission=Permission.ADMIN,
    served_by="retention",
    effect=Effect.MEMORIES,
    rate="admin",
    keyed=False,
    owner_only=True,
    body_required=False,
    description="Runs one sweep of the retention steps in their order, instead of waiting for the next interval.",
)
REQUEUE_DEAD: Final[Operation[RequeueRequest, RepairReply]] = Operation(
    name="repair.requeue_dead",
    summary="Requeue dead jobs",
    tag="repair",
    method="POST",
    paths=("/api/repair/requeue-dead",),
    request=RequeueRequest,
    example={"kinds": ["extract"], "limit": 50},
    replies={200: RepairReply, **REPAIR_PROBLEMS},
    permission=Permission.ADMIN,
    served_by="writer",
    effect=Effect.OTHER,
    rate="admin",
    owner_only=True,
    body_required=False,
    description="Same as `/api/pipeline/requeue`.",
)
OPERATIONS: Final = (SWEEP, REQUEUE_DEAD)
