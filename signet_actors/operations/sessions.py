"""The sessions of harnesses: which ones are active, and which receive nothing.

Source: docs/compatibility.md "Hooks and sessions"; docs/guides/hooks.md "Sessions".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import ABSENT, ArgumentForm, Clamped, FieldType, Given
from signet_actors.operations.operation import BY_AGENT, SESSION_WRITE, Operation, Tool
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import AgentField, SelectionText


@dataclass(frozen=True, kw_only=True)
class StrictFlag(FieldType):
    """A JSON boolean. Anything else counts as absent: the handler reports an unknown session before it."""

    argument = ArgumentForm.FLAG

    def read(self, given: Given) -> Any:
        if isinstance(given.value, bool):
            return given.value
        given.warnings.append(f"{given.name} must be a boolean; the value is ignored")
        return ABSENT


class ListSessionsRequest(AgentField, frozen=True, kw_only=True, omit_defaults=True):
    """Which sessions to return. The fields but ``state`` are those of `state=all`."""

    state: Annotated[
        Literal["active", "all"], Meta(description="all: also past ones, with what each asked for and was given")
    ] = "active"
    project: Annotated[SelectionText, Meta(description="Only those of this project")] | None = None
    before: Annotated[SelectionText, Meta(description="The `next` of the page before")] | None = None
    limit: Annotated[int, Clamped(low=1, high=200), Meta(description="Sessions to return")] = 50


class BypassRequest(AgentField, frozen=True, kw_only=True, omit_defaults=True):
    """Whether the session receives nothing and stores nothing."""

    enabled: Annotated[bool | None, StrictFlag(), Meta(description="Required: true or false")] = None


class Session(msgspec.Struct, frozen=True, rename="camel"):
    """A session. ``runtimePath``: the path that claimed it, null if none did; ``claimedAt``: when it was first seen.

    ``expiresAt``: when a claim without further hooks ends.
    """

    key: str
    runtime_path: str | None
    claimed_at: str
    bypassed: bool
    expires_at: str


class RenewedSession(Session, frozen=True, rename="camel", kw_only=True):
    """A session whose time begins again."""

    renewed: bool = True


class SessionsReply(msgspec.Struct, frozen=True):
    """The active sessions that this process has seen, the last one first."""

    sessions: list[Session]
    count: int


class KeptSession(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A session of the agent, active or past, and what is kept of it.

    ``prompt``: the beginning of its first one that is kept. ``prompts``: those that were answered; ``promptsGiven``:
    those of them that were given memories; ``skipped``: starts and prompts at which a hook did nothing; ``searches``:
    recalls and searches by tools. ``given``: memories that these were given together; ``characters``: of the texts of
    its start and its prompts. ``transcript``: whether it is kept; ``turns``: of a kept one. ``score``: how well memory
    served it, null without one.
    """

    key: str
    harness: str | None
    project: str | None
    started_at: str
    last_active_at: str
    active: bool = False
    bypassed: bool = False
    prompt: str | None = None
    prompts: int = 0
    prompts_given: int = 0
    skipped: int = 0
    searches: int = 0
    given: int = 0
    characters: int = 0
    transcript: Literal["kept", "erased", "none"] = "none"
    turns: int = 0
    score: float | None = None


class KeptSessionsReply(msgspec.Struct, frozen=True):
    """A page of sessions, the last active one first. ``next``: what the next page is ``before``."""

    sessions: list[KeptSession]
    count: int
    next: str | None


class BypassReply(msgspec.Struct, frozen=True):
    """The session's state."""

    key: str
    bypassed: bool
    warnings: list[str] | UnsetType = UNSET


LIST: Final[Operation[ListSessionsRequest, SessionsReply | KeptSessionsReply]] = Operation(
    name="sessions.list",
    while_off=True,
    summary="Active sessions, or all of them",
    tag="Sessions",
    paths=("/api/sessions",),
    request=ListSessionsRequest,
    example={"state": "all", "limit": 20},
    replies={200: SessionsReply | KeptSessionsReply, **PROBLEMS},
    owner_only=True,
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
    description="Those with a hook in the last four hours that have not ended; of one agent, if the request names it. "
    "With `state=all` those of the agent of which anything is kept, with how often they were given memories.",
)
GET: Final[Operation[AgentField, Session]] = Operation(
    name="sessions.get",
    while_off=True,
    summary="One session",
    tag="Sessions",
    paths=("/api/sessions/{key}",),
    request=AgentField,
    example={"key": "s-1"},
    replies={200: Session, 404: Problem, **PROBLEMS},
    owner_only=True,
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
)
BYPASS: Final[Operation[BypassRequest, BypassReply]] = Operation(
    name="sessions.bypass",
    while_off=True,
    summary="Switch memory off or on for a session",
    tag="Sessions",
    method="POST",
    paths=("/api/sessions/{key}/bypass",),
    request=BypassRequest,
    example={"key": "s-1", "enabled": False},
    replies={200: BypassReply, 404: Problem, 504: Problem, 507: Problem, **PROBLEMS},
    **SESSION_WRITE,
    served_by="writer",
    description="A bypassed session receives nothing and stores nothing: hooks skip it, other requests that name it "
    "are refused. What is said meanwhile is never stored. The switch is on disk before the reply.",
    tool=Tool(
        name="session_bypass",
        title="Switch memory off for a session",
        description="Switch memory off or on for a session, when the user asks for it. While it is off, the "
        "session receives nothing and stores nothing, by tools neither; what is said then is never stored.",
        fields={"session_key": "The key of the session", "enabled": "true: memory off; false: memory on again"},
        required=("enabled",),
        renamed={"key": "session_key"},
    ),
)
RENEW: Final[Operation[AgentField, RenewedSession]] = Operation(
    name="sessions.renew",
    while_off=True,
    summary="Keep the claim of a session",
    tag="Sessions",
    method="POST",
    paths=("/api/sessions/{key}/renew",),
    request=AgentField,
    example={"key": "s-1"},
    replies={200: RenewedSession, 404: Problem, **PROBLEMS},
    **SESSION_WRITE,
    body_required=False,
)
OPERATIONS: Final = (LIST, GET, BYPASS, RENEW)
