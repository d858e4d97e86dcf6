"""What the daemon did: usage, errors, latencies. Source: docs/compatibility.md "Analytics and telemetry"."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import UNSET, Meta

from signet_actors.domain.permissions import Permission
from signet_actors.operations.diagnostics import MutationHealth
from signet_actors.operations.field_types import Clamped, Timestamp
from signet_actors.operations.operation import BY_AGENT, Operation
from signet_actors.operations.pipeline import LatencyReport, UsageReport
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import NoFields, SelectionText
from signet_actors.operations.transcripts import OwnAgent
from signet_actors.protocol.message import Answered, KeyedRequest, Request

TOTALS: Final = "usage"


class EndpointUsage(msgspec.Struct, rename="camel"):
    """Responses of an endpoint; those with a status from 400 on are errors."""

    count: int = 0
    errors: int = 0
    total_latency_ms: float = 0.0


class ActorUsage(msgspec.Struct):
    """Requests of one actor by what they do."""

    remember: int = 0
    recall: int = 0
    mutate: int = 0
    other: int = 0


class ProviderUsage(msgspec.Struct, rename="camel"):
    """Calls of a model provider, and the time of all of them."""

    calls: int = 0
    failures: int = 0
    total_latency_ms: int = 0


class ConnectorUsage(msgspec.Struct, frozen=True):
    """Use of one source."""

    syncs: int = 0
    errors: int = 0
    documents: int = 0


class UsageReply(msgspec.Struct, frozen=True):
    """Counts since ``since``: endpoints by method and route template, actors by name, providers of models.

    ``days``: calls and cost of each model on each of the last seven UTC days, the last day first.
    """

    endpoints: dict[str, EndpointUsage]
    actors: dict[str, ActorUsage]
    providers: dict[str, ProviderUsage]
    connectors: dict[str, ConnectorUsage]
    days: list[UsageReport]
    since: str


class ErrorEvent(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An error. Its message is that of its code."""

    timestamp: str
    stage: str
    code: str
    message: str
    memory_id: str | msgspec.UnsetType = UNSET
    actor: str | msgspec.UnsetType = UNSET


class ListErrorsRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which errors to return."""

    stage: (
        Annotated[SelectionText, Meta(description="extraction, decision, embedding, mutation or connector")] | None
    ) = None
    code: Annotated[SelectionText, Meta(description="Only errors of this code")] | None = None
    since: Annotated[str, Timestamp(), Meta(description="ISO time: recorded then or later")] | None = None
    limit: Annotated[int, Clamped(low=1, high=500), Meta(description="Errors to return")] = 100


class ListErrorsReply(msgspec.Struct, frozen=True):
    """The newest errors that match, the newest first; ``summary`` counts all that match by code."""

    errors: list[ErrorEvent]
    summary: dict[str, int]


class MinuteFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in the minute that ended at ``minute``, the last one now. One without a request has no row."""

    minute: str
    requests: int
    errors: int
    remember: LatencyReport
    recall: LatencyReport
    mutate: LatencyReport


class LatencyRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which figures to return beside those of the last requests."""

    minutes: Annotated[int, Clamped(low=0, high=1440), Meta(description="Also figures of so many last minutes")] = 0


class LatencyReply(msgspec.Struct, frozen=True):
    """Milliseconds of the last 1,000 requests of each class, and of the last 1,000 completed jobs."""

    remember: LatencyReport
    recall: LatencyReport
    mutate: LatencyReport
    jobs: LatencyReport
    minutes: list[MinuteFigures]


class PromptsRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """Which prompts to count."""

    project: Annotated[SelectionText, Meta(description="Only those in this project")] | None = None
    hours: Annotated[int, Clamped(low=1, high=168), Meta(description="Those of so many last hours")] = 24


class PromptCounts(msgspec.Struct, rename="camel"):
    """What came of prompts. ``skipped``: those that were not asked, by reason.

    ``nothing``: those that no memory fits, and those whose session had what fits. ``characters``, and about as many
    ``tokens``: of all that was given, to starts of sessions and to searches too.
    """

    prompts: int = 0
    given: int = 0
    nothing: int = 0
    skipped: dict[str, int] = {}
    characters: int = 0
    tokens: int = 0


class ProjectPrompts(PromptCounts, kw_only=True, rename="camel"):
    """What came of the prompts of a project."""

    project: str | None


class PromptsReply(PromptCounts, kw_only=True, rename="camel"):
    """What came of the prompts since ``since``. ``by_hour``: as many as were asked for, the last hour last.

    ``projects``: at most 20, the one with most prompts first. ``ms``: how long those of the last 1,000 prompts of the
    agent took that are in the project and were not skipped. ``complete``: false if only the newest 20,000 searches of
    the agent were counted, because more came since ``since``.
    """

    since: str
    by_hour: list[int]
    projects: list[ProjectPrompts]
    ms: LatencyReport
    complete: bool


class CountPrompts(Request[Answered], frozen=True, kw_only=True, tag="analytics.count_prompts"):
    """Ask for a ``PromptsReply`` about the agent at ``now`` (ISO)."""

    agent_id: str
    request: PromptsRequest
    now: str


class MemorySafetyReply(msgspec.Struct, frozen=True, rename="camel"):
    """Whether changes of memories go well: their health (null if it could not be measured), and refused ones."""

    mutation: MutationHealth | None
    recent_errors: list[ErrorEvent]
    error_summary: dict[str, int]


class Totals(msgspec.Struct, kw_only=True):
    """What all gateways counted since ``since``. ``samples``: durations by class in microseconds, the newest last."""

    since: str = ""
    endpoints: dict[str, EndpointUsage] = {}
    actors: dict[str, ActorUsage] = {}
    samples: dict[str, list[int]] = {}


class StoredFigures(msgspec.Struct, frozen=True):
    """What is stored: the totals, usage of providers and of models by day, durations of jobs (ms), errors, minutes."""

    totals: Totals | None
    providers: dict[str, ProviderUsage]
    jobs_ms: list[float]
    errors: list[ErrorEvent]
    minutes: list[MinuteFigures]
    days: list[UsageReport] = []


class FindFigures(Request[Answered], frozen=True, tag="analytics.find"):
    """Ask for ``StoredFigures`` with these parts; ``since``: minutes and days from then on (ISO)."""

    parts: tuple[str, ...]
    since: str = ""


class FiguresStored(msgspec.Struct, frozen=True):
    """The figures are on disk."""


class StoreFigures(KeyedRequest[Answered], frozen=True, kw_only=True, tag="analytics.store"):
    """Replace the totals, record a minute, and add errors."""

    totals: Totals
    minute: MinuteFigures
    errors: tuple[ErrorEvent, ...] = ()


USAGE: Final[Operation[NoFields, UsageReply]] = Operation(
    name="analytics.usage",
    summary="Requests by endpoint and by actor, and calls of models",
    tag="analytics",
    paths=("/api/analytics/usage",),
    example={},
    replies={200: UsageReply, 403: Problem, **PROBLEMS},
    permission=Permission.ANALYTICS,
    owner_only=True,
    description="The figures survive a restart, but for the last minute before a crash.",
)
ERRORS: Final[Operation[ListErrorsRequest, ListErrorsReply]] = Operation(
    name="analytics.errors",
    summary="The last errors of the documented codes",
    tag="analytics",
    paths=("/api/analytics/errors",),
    request=ListErrorsRequest,
    example={"limit": 10},
    replies={200: ListErrorsReply, 403: Problem, **PROBLEMS},
    permission=Permission.ANALYTICS,
    owner_only=True,
    description="The newest 500 are kept.",
)
LATENCY: Final[Operation[LatencyRequest, LatencyReply]] = Operation(
    name="analytics.latency",
    summary="How long requests and jobs take",
    tag="analytics",
    paths=("/api/analytics/latency",),
    request=LatencyRequest,
    example={"minutes": 5},
    replies={200: LatencyReply, 403: Problem, **PROBLEMS},
    permission=Permission.ANALYTICS,
    owner_only=True,
)
PROMPTS: Final[Operation[PromptsRequest, PromptsReply]] = Operation(
    name="analytics.prompts",
    summary="What came of the prompts: how many were given memories, by hour and by project",
    tag="analytics",
    paths=("/api/analytics/prompts",),
    request=PromptsRequest,
    example={"hours": 24},
    replies={200: PromptsReply, 403: Problem, **PROBLEMS},
    permission=Permission.RECALL,
    scoped_by=BY_AGENT,
    owner_only=True,
    description="Of the searches of `GET /api/telemetry/memory-search`, of the agent's own sessions only, without "
    "those of `signet connect --check`. The figures are at most 5 seconds old.",
)
MEMORY_SAFETY: Final[Operation[NoFields, MemorySafetyReply]] = Operation(
    name="analytics.memory_safety",
    summary="Whether changes of memories go well",
    tag="analytics",
    paths=("/api/analytics/memory-safety",),
    example={},
    replies={200: MemorySafetyReply, 403: Problem, **PROBLEMS},
    permission=Permission.ANALYTICS,
    owner_only=True,
)
OPERATIONS: Final = (USAGE, ERRORS, LATENCY, PROMPTS, MEMORY_SAFETY)
