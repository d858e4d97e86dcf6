"""Back up the database, and list the backups. Departs: the reference daemon has no such endpoint; these are ours."""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.domain.permissions import Permission
from signet_actors.operations.operation import Effect, Operation
from signet_actors.operations.request_fields import NoFields


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
    """How a backup ended. ``findings``: the defects of the copy, which has the database's pages unchanged."""

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
    request=NoFields,
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
    method="GET",
    paths=("/api/repair/backup",),
    request=NoFields,
    replies={200: BackupReply},
    permission=Permission.DIAGNOSTICS,
    served_by="retention",
    owner_only=True,
)
OPERATIONS: Final = (BACK_UP, LIST_BACKUPS)
