"""The identity of an agent."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import CallerField
from signet_actors.operations.operation import BY_AGENT, Operation


class IdentityRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whose identity to read."""

    agent_id: Annotated[str | None, CallerField(), Meta(description="The agent; also the header x-signet-agent-id")] = (
        msgspec.field(default=None, name="agentId")
    )


class IdentityReply(msgspec.Struct, frozen=True):
    """The identity of an agent; ``name`` is ``Agent`` if no file sets one. ``source`` names the files."""

    name: str
    description: str | None
    creature: str | None
    vibe: str | None
    source: list[str]


GET_IDENTITY: Final[Operation[IdentityRequest, IdentityReply]] = Operation(
    name="identity.get",
    summary="Identity of an agent",
    tag="config",
    paths=("/api/identity",),
    request=IdentityRequest,
    replies={200: IdentityReply},
    owner_parts="what the files of the agent say",
    permission=Permission.DIAGNOSTICS,
    scoped_by=BY_AGENT,
    description="From IDENTITY.md, that in `agents/NAME` if there is one; agent.yaml supplies missing values.",
)
OPERATIONS: Final = (GET_IDENTITY,)
