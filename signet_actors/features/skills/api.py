"""Which skills an agent uses: a harness reports each use, and the counts can be read.

Source: architecture.txt "skill_meta"; docs/compatibility.md "Hooks and sessions"; docs/guides/hooks.md "Skills";
docs/decisions.md 34.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from signet_actors.domain.permissions import Permission
from signet_actors.errors import InvalidRequest
from signet_actors.operations.field_types import Clamped, SecretRule, Text
from signet_actors.operations.hooks import HookFields, HookOutcome
from signet_actors.operations.operation import BY_AGENT, OWNERS_SESSION, Effect, Hook, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import Offset
from signet_actors.operations.transcripts import OwnAgent, Session

MAX_SKILL_CHARS: Final = 200
MAX_DURATION_MS: Final = 2**53 - 1
MISSING: Final = "harness and skill are required"

SkillName = Annotated[str, Text(max_chars=MAX_SKILL_CHARS)]
DurationMs = Annotated[int, Clamped(low=0, high=MAX_DURATION_MS)]
UseId = Annotated[str, Text(secret=SecretRule.KEEP)]


class SkillInvocationRequest(HookFields, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A skill that an agent used; one of ``skill``, ``skillName`` and ``name`` is required."""

    harness: Annotated[str, Text(missing=MISSING)]
    skill: SkillName | None = None
    skill_name: SkillName | None = None
    name: SkillName | None = None
    session_id: Annotated[Session, Meta(description="The session, if there is no sessionKey")] | None = None
    duration_ms: Annotated[DurationMs, Meta(description="How long it took, in milliseconds; also latencyMs")] | None = (
        None
    )
    latency_ms: DurationMs | None = None
    success: Annotated[bool, Meta(description="False if the skill failed")] = True
    tool_use_id: (
        Annotated[UseId, Meta(description="The harness's id of this use, which is counted once in its session")] | None
    ) = None
    idempotency_key: Annotated[UseId, Meta(description="A use with the same key is counted once")] | None = None

    def __post_init__(self) -> None:
        if not self.used:
            raise InvalidRequest(MISSING, field="skill")

    @property
    def used(self) -> str:
        """The name of the skill."""
        return self.skill or self.skill_name or self.name or ""

    def named_use(self, session_key: str | None) -> str | None:
        """Return what only a second report of the same use has, None if the harness sends nothing of the kind."""
        if self.idempotency_key is not None:
            return f"key\0{self.idempotency_key}"
        if self.tool_use_id is not None:
            return f"use\0{self.harness}\0{session_key or ''}\0{self.tool_use_id}"
        return None


class SkillInvocationReply(HookOutcome, frozen=True, kw_only=True, rename="camel"):
    """``recorded``: the use is counted, on disk."""

    recorded: bool


class ListSkillsRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """Which page of the skills to return."""

    limit: Annotated[int, Clamped(low=1, high=1000), Meta(description="Skills to return")] = 20
    offset: Offset = 0


class SkillUse(msgspec.Struct, frozen=True):
    """A skill and how often the agent used it. ``failure_count``: uses that failed.

    ``last_duration_ms``: of the last use whose duration was reported, null without one.
    """

    skill_name: str
    use_count: int
    failure_count: int
    last_duration_ms: int | None
    created_at: str
    last_used_at: str


class ListSkillsReply(msgspec.Struct, frozen=True):
    """A page of the agent's skills, the most used first; ``total`` counts all of them."""

    skills: list[SkillUse]
    total: int


RECORD: Final[Operation[SkillInvocationRequest, SkillInvocationReply]] = Operation(
    name="hooks.skill_invocation",
    summary="Count a use of a skill",
    tag="Hooks",
    method="POST",
    paths=("/api/hooks/skill-invocation",),
    request=SkillInvocationRequest,
    example={"harness": "claude-code", "skill": "release-notes", "sessionKey": "s-1"},
    replies={200: SkillInvocationReply, 400: Problem, **PROBLEMS},
    owner_parts=OWNERS_SESSION,
    permission=Permission.REMEMBER,
    scoped_by=BY_AGENT,
    served_by="writer",
    effect=Effect.OTHER,
    lenient=True,
    hook=Hook(700, SkillInvocationReply(recorded=False), once=SkillInvocationRequest.named_use),
)
LIST: Final[Operation[ListSkillsRequest, ListSkillsReply]] = Operation(
    name="hooks.list_skills",
    summary="Skills that an agent used",
    tag="Hooks",
    paths=("/api/hooks/skill-invocation",),
    request=ListSkillsRequest,
    example={"limit": 10},
    replies={200: ListSkillsReply, **PROBLEMS},
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
    served_by="searcher",
)
OPERATIONS: Final = (RECORD, LIST)
