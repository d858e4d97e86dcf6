"""Requeue dead jobs. Source: architecture.txt "Repair Actions"; memory-pipeline.txt "Worker Model"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec

from signet_actors.domain.jobs import JOB_KINDS
from signet_actors.operations.field_types import ABSENT, Absent, ArgumentForm, FieldType, Given, SecretRule, Text
from signet_actors.operations.operation import ADMIN_CHANGE, Operation
from signet_actors.operations.problem import CHANGE_PROBLEMS, Problem
from signet_actors.operations.request_fields import CallerFields

MAX_REQUEUED: Final = 50
"""Jobs per request. Source: architecture.txt "Repair Actions" (``requeueDeadJobs``)."""

KINDS: Final = tuple(kind.name for kind in JOB_KINDS)
REPAIR_PROBLEMS: Final[Mapping[int, Any]] = {403: Problem, 429: Problem, **CHANGE_PROBLEMS}
_NAME: Final = Text(max_chars=200)


@dataclass(frozen=True, kw_only=True)
class Selection(FieldType):
    """An array of one or more names, as a tuple without duplicates. ``values``: the accepted names, empty for any."""

    argument: ClassVar[ArgumentForm] = ArgumentForm.LIST

    max_items: int
    values: tuple[str, ...] = ()

    @property
    def schema(self) -> Mapping[str, Any]:
        items = {"items": {"type": "string", "enum": list(self.values)}} if self.values else {}
        return {"minItems": 1, "maxItems": self.max_items, **items}

    def read(self, given: Given) -> Any:
        if not isinstance(given.value, list) or not 1 <= len(given.value) <= self.max_items:
            raise given.invalid(f"must be an array of 1 to {self.max_items} strings")
        names = dict.fromkeys(self._name(given, item) for item in given.value)
        if self.values and not names.keys() <= set(self.values):
            raise given.invalid(f"must be among: {', '.join(self.values)}")
        return tuple(names)

    @staticmethod
    def _name(given: Given, item: object) -> str:
        name: str | Absent = ABSENT if item is None else _NAME.read(given._replace(value=item))
        if name is ABSENT:
            raise given.invalid("is required")
        return name


@dataclass(frozen=True, kw_only=True)
class IntegerInRange(FieldType):
    """An integer from ``low`` to ``high``; anything else is refused."""

    argument: ClassVar[ArgumentForm] = ArgumentForm.JSON

    low: int
    high: int

    @property
    def schema(self) -> Mapping[str, Any]:
        return {"minimum": self.low, "maximum": self.high}

    def read(self, given: Given) -> Any:
        value = given.value
        if isinstance(value, bool) or not isinstance(value, int) or not self.low <= value <= self.high:
            raise given.invalid(f"must be an integer from {self.low} to {self.high}")
        return value


class RequeueRequest(CallerFields, frozen=True, kw_only=True, omit_defaults=True):
    """Which dead jobs: at most 50 ``ids``, or those of ``kinds`` (none = every kind), oldest first, up to ``limit``."""

    ids: Annotated[tuple[str, ...], Selection(max_items=MAX_REQUEUED, secret=SecretRule.CUT)] | None = None
    kinds: Annotated[tuple[str, ...], Selection(max_items=len(KINDS), values=KINDS)] | None = None
    limit: Annotated[int, IntegerInRange(low=1, high=MAX_REQUEUED)] = MAX_REQUEUED


class NotRequeued(msgspec.Struct, frozen=True, rename="camel"):
    """Why a job was not requeued. ``reason``: not_found, not_dead, memory_gone, already_waiting.

    A job of a memory that the caller may not read is ``not_found``.
    """

    job_id: str
    reason: str


class RequeueReply(msgspec.Struct, frozen=True):
    """The jobs that were requeued with all their attempts, and those that were not; ``more`` dead jobs may be left.

    ``action``, ``affected`` and ``message`` are those of every repair.
    """

    action: str
    affected: int
    message: str
    requeued: list[str]
    refused: list[NotRequeued]
    more: bool
    success: Literal[True] = True


REQUEUE: Final[Operation[RequeueRequest, RequeueReply]] = Operation(
    name="jobs.requeue",
    summary="Requeue dead jobs",
    tag="Pipeline",
    method="POST",
    paths=("/api/pipeline/requeue",),
    request=RequeueRequest,
    example={"kinds": ["extract"], "limit": 50},
    replies={200: RequeueReply, **REPAIR_PROBLEMS},
    **ADMIN_CHANGE,
    served_by="writer",
    body_required=False,
    description="Without ids, a job is requeued at most once. Limited by `repair.requeueCooldownMs` and "
    "`repair.requeueHourlyBudget`.",
)
OPERATIONS: Final = (REQUEUE,)
