"""Repairs on demand, and backups.

Source: docs/compatibility.md "Diagnostics and pipeline status"; memory-pipeline.txt "Retention Worker";
architecture.txt "Repair Actions"; docs/reliability.md R17, R18.
Departs: the reference daemon has no backups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final

import msgspec
from msgspec import Meta

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import ArgumentForm, FieldType, Given
from signet_actors.operations.operation import ADMIN_CHANGE, Effect, Operation
from signet_actors.operations.problem import CHANGE_PROBLEMS, Problem
from signet_actors.operations.request_fields import NoFields
from signet_actors.operations.requeue import RequeueRequest


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


class RepairRefused(Problem, frozen=True, rename="camel", kw_only=True):
    """The gate refused the repair; ``message`` is the ``error``."""

    action: str
    message: str
    success: bool = False
    affected: int = 0


REPAIR_REFUSALS: Final[Mapping[int, Any]] = {403: RepairRefused, 429: RepairRefused, **CHANGE_PROBLEMS}
SWEEP: Final[Operation[SweepRequest, RepairReply]] = Operation(
    name="repair.sweep",
    summary="Purge data past its retention now",
    tag="repair",
    method="POST",
    paths=("/api/repair/retention-sweep",),
    request=SweepRequest,
    example={"confirmClock": False},
    replies={200: RepairReply, **REPAIR_REFUSALS},
    permission=Permission.ADMIN,
    served_by="retention",
    audited=True,
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
    replies={200: RepairReply, **REPAIR_REFUSALS},
    **ADMIN_CHANGE,
    served_by="writer",
    body_required=False,
    description="Same as `/api/pipeline/requeue`.",
)


class BackupEntry(msgspec.Struct, frozen=True, rename="camel"):
    """A verified backup. ``made_at`` is ISO time, ``bytes`` the size of its file."""

    name: str
    made_at: str
    schema_version: int
    bytes: int


class BackupFinding(msgspec.Struct, frozen=True):
    """A defect found in the database. ``kind``: structure, index, content or rows."""

    kind: str
    text: str


class BackupEnd(msgspec.Struct, frozen=True, rename="camel"):
    """How a backup ended. ``findings`` lists the defects that its check found in the database."""

    name: str
    success: bool
    message: str
    findings: list[BackupFinding]
    memories: int
    ended_at: str


class BackupReply(msgspec.Struct, frozen=True, rename="camel"):
    """The progress of the current backup, the outcome of the last one, and the list of backups.

    ``running`` names the backup in progress, its ``phase`` is copying or verifying, with ``pages_left`` of ``pages``.
    ``queued``: another backup follows, because it was requested when this one's copy had begun.
    ``last`` is the outcome of the last one since the daemon started; ``backups`` are on disk, newest first.
    """

    running: str | None
    phase: str | None
    pages: int
    pages_left: int
    last: BackupEnd | None
    backups: list[BackupEntry]
    directory: str
    queued: bool = False


BACK_UP: Final[Operation[NoFields, BackupReply]] = Operation(
    name="backup.start",
    summary="Back up the database and check the copy",
    tag="repair",
    method="POST",
    paths=("/api/repair/backup",),
    replies={200: BackupReply},
    permission=Permission.ADMIN,
    served_by="retention",
    effect=Effect.OTHER,
    rate="admin",
    keyed=False,
    owner_only=True,
    body_required=False,
    description="Starts a backup while the daemon runs. One that is running may lack what was stored since it"
    " began, so another one follows it (`queued`). GET reports the result.",
)
LIST_BACKUPS: Final[Operation[NoFields, BackupReply]] = Operation(
    name="backup.list",
    summary="List backups and the progress of a running one",
    tag="repair",
    paths=("/api/repair/backup",),
    replies={200: BackupReply},
    permission=Permission.DIAGNOSTICS,
    served_by="retention",
    owner_only=True,
)
OPERATIONS: Final = (SWEEP, REQUEUE_DEAD, BACK_UP, LIST_BACKUPS)
