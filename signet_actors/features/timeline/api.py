"""What happened to a memory or to an entity, in the order of time.

Source: architecture.txt "HTTP API Reference" (timeline); docs/compatibility.md "Timeline".
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Choice, Clamped
from signet_actors.operations.operation import BY_AGENT, EXAMPLE_MEMORY, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import AgentFields

MAX_LISTED: Final = 1000
MAX_OFFSET: Final = 10_000
MAX_EXPORTED: Final = 5000
FORMAT_VERSION: Final = "1.0"
NOT_FOUND: Final = "Neither a memory nor an entity has this id"


class TimelineRequest(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """Which events to return."""

    limit: Annotated[int, Clamped(low=1, high=MAX_LISTED), Meta(description="Events to return")] = 200
    offset: Annotated[int, Clamped(low=0, high=MAX_OFFSET), Meta(description="Events to skip")] = 0
    order: Annotated[
        str, Choice(values=("asc", "desc")), Meta(description="asc: the oldest first, desc: the newest first")
    ] = "asc"


class Event(msgspec.Struct, frozen=True):
    """Something that happened; ``details`` depends on ``source`` and ``event``, and has no member without a value."""

    timestamp: str
    source: Literal["history", "job", "decision", "session", "feedback", "entity", "mention", "attribute", "dependency"]
    event: str
    details: dict[str, Any]


class TimelineReply(msgspec.Struct, frozen=True, rename="camel"):
    """A page of events; ``hasMore``: there are further ones after it."""

    entity_type: Literal["memory", "entity"]
    entity_id: str
    events: list[Event]
    has_more: bool
    generated_at: str | UnsetType = UNSET


class ExportMeta(msgspec.Struct, frozen=True, rename="camel"):
    """``truncated``: only the newest events are exported, because there are more than 5,000."""

    version: str
    exported_at: str
    entity_id: str
    truncated: bool


class TimelineExport(msgspec.Struct, frozen=True):
    """All events, the oldest first."""

    meta: ExportMeta
    timeline: TimelineReply


GET_TIMELINE: Final[Operation[TimelineRequest, TimelineReply]] = Operation(
    name="timeline.get",
    summary="What happened to a memory or an entity",
    tag="Memories",
    paths=("/api/timeline/{id}",),
    request=TimelineRequest,
    memory_ids=("id",),
    example={"id": EXAMPLE_MEMORY, "limit": 20},
    replies={200: TimelineReply, 404: Problem, **PROBLEMS},
    permission=Permission.ANALYTICS,
    scoped_by=BY_AGENT,
    served_by="searcher",
    description="`id`: of a memory, deleted ones too, or id or name of an entity of the agent.",
)
EXPORT_TIMELINE: Final[Operation[AgentFields, TimelineExport]] = Operation(
    name="timeline.export",
    summary="Everything that happened to a memory or an entity",
    tag="Memories",
    paths=("/api/timeline/{id}/export",),
    request=AgentFields,
    memory_ids=("id",),
    example={"id": EXAMPLE_MEMORY},
    replies={200: TimelineExport, 404: Problem, **PROBLEMS},
    permission=Permission.ANALYTICS,
    scoped_by=BY_AGENT,
    served_by="searcher",
)
OPERATIONS: Final = (GET_TIMELINE, EXPORT_TIMELINE)
