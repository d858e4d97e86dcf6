"""Local telemetry: what was asked of the daemon, without texts. It is kept only if the configuration asks for it, and
never sent anywhere.

Source: docs/compatibility.md "Analytics and telemetry"; docs/decisions.md 27.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Clamped, Timestamp
from signet_actors.operations.headers import JSON_LINES
from signet_actors.operations.operation import Operation
from signet_actors.operations.pipeline import LatencyReport
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import NoFields, SelectionText
from signet_actors.protocol.message import Answered, KeyedRequest, Request

MAX_EXPORTED: Final = 10_000


class TelemetryEvent(msgspec.Struct, frozen=True):
    """What happened: ``event`` is the name of an operation, or ``error``. ``properties`` have no text of a caller."""

    timestamp: str
    event: str
    properties: dict[str, Any]


class EventFields(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Conditions on events; all that are given must match."""

    event: Annotated[SelectionText, Meta(description="Only events with this name")] | None = None
    since: Annotated[str, Timestamp(), Meta(description="ISO time: recorded then or later")] | None = None
    until: Annotated[str, Timestamp(), Meta(description="ISO time: recorded then or earlier")] | None = None


class ListEventsRequest(EventFields, frozen=True, kw_only=True, omit_defaults=True):
    """Which events to return."""

    limit: Annotated[int, Clamped(low=1, high=1000), Meta(description="Events to return")] = 100


class ExportEventsRequest(EventFields, frozen=True, kw_only=True, omit_defaults=True):
    """Which events to export."""

    limit: Annotated[int, Clamped(low=1, high=MAX_EXPORTED), Meta(description="Events to export")] = MAX_EXPORTED


class ListEventsReply(msgspec.Struct, frozen=True):
    """The newest events that match, the newest first."""

    events: list[TelemetryEvent]
    enabled: bool


class ModelFigures(msgspec.Struct, frozen=True, rename="camel"):
    """Calls of models of the last half year, and the mean time of one in milliseconds."""

    calls: int
    failures: int
    mean_ms: float


class TelemetryStatsReply(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Sums over the kept events; only ``enabled`` while telemetry is off."""

    enabled: bool
    total_events: int | msgspec.UnsetType = UNSET
    events: dict[str, LatencyReport] | msgspec.UnsetType = UNSET
    llm: ModelFigures | msgspec.UnsetType = UNSET
    pipeline_errors: int | msgspec.UnsetType = UNSET


class StoredEvents(msgspec.Struct, frozen=True):
    """Events, the newest first; how many are kept; the latest durations by event in milliseconds."""

    events: list[TelemetryEvent]
    total: int
    durations: dict[str, list[float]]


class FindEvents(Request[Answered], frozen=True, tag="telemetry.find"):
    """Ask for ``StoredEvents``."""

    limit: int
    event: str | None = None
    since: str | None = None
    until: str | None = None


class EventsStored(msgspec.Struct, frozen=True):
    """The events are on disk."""


class StoreEvents(KeyedRequest[Answered], frozen=True, kw_only=True, tag="telemetry.store"):
    """Add events."""

    events: tuple[TelemetryEvent, ...]


EVENTS: Final[Operation[ListEventsRequest, ListEventsReply]] = Operation(
    name="telemetry.events",
    summary="Events of the local telemetry, the newest first",
    tag="analytics",
    paths=("/api/telemetry/events",),
    request=ListEventsRequest,
    example={"limit": 10},
    replies={200: ListEventsReply, 403: Problem, **PROBLEMS},
    permission=Permission.ANALYTICS,
    owner_only=True,
    description="Empty, with `enabled: false`, unless `memory.pipelineV2.telemetryEnabled` is set. Nothing is sent.",
)
STATS: Final[Operation[NoFields, TelemetryStatsReply]] = Operation(
    name="telemetry.stats",
    summary="Sums of the local telemetry",
    tag="analytics",
    paths=("/api/telemetry/stats",),
    example={},
    replies={200: TelemetryStatsReply, 403: Problem, **PROBLEMS},
    permission=Permission.ANALYTICS,
    owner_only=True,
)
EXPORT: Final[Operation[ExportEventsRequest, str]] = Operation(
    name="telemetry.export",
    summary="Events of the local telemetry as JSON lines",
    tag="analytics",
    paths=("/api/telemetry/export",),
    request=ExportEventsRequest,
    example={"limit": 10},
    replies={200: str, 403: Problem, 404: Problem, **PROBLEMS},
    media_types=(JSON_LINES,),
    permission=Permission.ANALYTICS,
    owner_only=True,
    description="404 unless `memory.pipelineV2.telemetryEnabled` is set.",
)
OPERATIONS: Final = (EVENTS, STATS, EXPORT)
