"""The connected harnesses, and the identity files in theirs. Source: docs/guides/identity.md."""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.domain.permissions import Permission
from signet_actors.operations.operation import ADMIN_CHANGE, Operation
from signet_actors.operations.request_fields import NoFields


class HarnessIdentityFile(msgspec.Struct, frozen=True):
    """A file that gets the identity of ``agent``. ``synced``: it has it; ``problem``: why it is not written."""

    path: str
    agent: str
    synced: bool
    problem: str | None


class HarnessEntry(msgspec.Struct, frozen=True, rename="camel"):
    """A connected harness; ``path`` is its settings file. ``lastSeen``: its last hook since the daemon's start."""

    name: str
    id: str
    path: str
    exists: bool
    last_seen: str | None
    identity_files: list[HarnessIdentityFile]


class HarnessesReply(msgspec.Struct, frozen=True):
    """The harnesses that ``signet connect`` has connected to this workspace."""

    harnesses: list[HarnessEntry]


class FileProblem(msgspec.Struct, frozen=True):
    """A file that could not be brought up to date, and why."""

    path: str
    reason: str


class RegenerateReply(msgspec.Struct, frozen=True):
    """``success`` is false if a file could not be brought up to date; ``written`` are the files that were changed."""

    success: bool
    message: str
    written: list[str]
    problems: list[FileProblem]


LIST_HARNESSES: Final[Operation[NoFields, HarnessesReply]] = Operation(
    name="harnesses.list",
    summary="List the connected harnesses",
    tag="config",
    paths=("/api/harnesses",),
    replies={200: HarnessesReply},
    permission=Permission.DIAGNOSTICS,
)
REGENERATE: Final[Operation[NoFields, RegenerateReply]] = Operation(
    name="harnesses.regenerate",
    summary="Bring the identity files of harnesses up to date",
    tag="config",
    method="POST",
    paths=("/api/harnesses/regenerate",),
    replies={200: RegenerateReply},
    **ADMIN_CHANGE,
    served_by="retention",
    keyed=False,
    body_required=False,
    description="The daemon does so by itself two seconds after an identity file has changed.",
)
OPERATIONS: Final = (LIST_HARNESSES, REGENERATE)
