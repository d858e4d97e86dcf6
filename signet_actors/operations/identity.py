"""The identity of the workspace's agent."""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.domain.permissions import Permission
from signet_actors.operations.operation import Operation
from signet_actors.operations.request_fields import NoFields


class IdentityReply(msgspec.Struct, frozen=True):
    """The identity of this workspace's agent; ``name`` is ``Agent`` if no file sets one. ``source`` names the files."""

    name: str
    description: str | None
    creature: str | None
    vibe: str | None
    source: list[str]


GET_IDENTITY: Final[Operation[NoFields, IdentityReply]] = Operation(
    name="identity.get",
    summary="Identity of the workspace's agent",
    tag="config",
    method="GET",
    paths=("/api/identity",),
    request=NoFields,
    replies={200: IdentityReply},
    permission=Permission.DIAGNOSTICS,
    description="From IDENTITY.md; agent.yaml supplies missing values.",
)
OPERATIONS: Final = (GET_IDENTITY,)
