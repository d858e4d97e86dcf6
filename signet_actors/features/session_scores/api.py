"""How well memory served sessions, over time.

Source: memory-pipeline.txt "Continuity Scoring"; docs/compatibility.md "Continuity scoring".
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final

import msgspec
from msgspec import Meta

from signet_actors.domain.jobs import SCORE_SESSION
from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Clamped, SecretRule, Text
from signet_actors.operations.operation import BY_AGENT, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.transcripts import OwnAgent
from signet_actors.protocol.leases import JobReport
from signet_actors.protocol.message import Answered, Request

MAX_LISTED: Final = 500


class ContinuityRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """Which scores to return."""

    project: (
        Annotated[
            str, Text(secret=SecretRule.KEEP, max_chars=4096), Meta(description="Only of sessions of this project")
        ]
        | None
    ) = None
    limit: Annotated[int, Clamped(low=1, high=MAX_LISTED), Meta(description="Scores to return")] = 50


class LatestContinuityRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """Whose scores to return."""


class ContinuityScore(msgspec.Struct, frozen=True):
    """How well memory served a session, from 0 to 1, as a model judged, and how sure it was.

    ``memories_recalled``: memories that hooks showed the session; ``memories_used``: those of use to it.
    ``novel_context_count``: things that the user had to explain although memory should have known them. ``reasoning``
    is null while a memory of the session is forgotten, or after one was erased.
    """

    id: str
    session_key: str
    agent_id: str
    project: str | None
    harness: str | None
    score: float
    confidence: float
    memories_recalled: int
    memories_used: int
    novel_context_count: int
    reasoning: str | None
    created_at: str


class ContinuitySummary(msgspec.Struct, frozen=True):
    """Of the returned scores: their mean, the latest, and how much it is above the oldest; null without any."""

    count: int
    average: float | None
    trend: float | None
    latest: float | None


class ContinuityReply(msgspec.Struct, frozen=True):
    """Scores of the agent's own sessions, the newest first."""

    scores: list[ContinuityScore]
    summary: ContinuitySummary


class LatestContinuityReply(msgspec.Struct, frozen=True):
    """The newest score of each project, the newest first."""

    scores: list[ContinuityScore]


class SessionScore(msgspec.Struct, frozen=True):
    """A model's judgement: ``score`` and ``confidence`` from 0 to 1, and the relevance of memories by id, too."""

    score: float
    confidence: float
    memories_used: int
    novel_context_count: int
    reasoning: str
    relevance: dict[str, float]


class ShownMemory(msgspec.Struct, frozen=True):
    id: str
    content: str


class ShownMemories(msgspec.Struct, frozen=True):
    """The best of the memories that the session was shown, and how many it was shown."""

    memories: list[ShownMemory]
    count: int


class FindShown(Request[Answered], frozen=True, tag="session_scores.find_shown"):
    """Find readable memories that hooks showed the session, by rank, with ``chars`` of each content."""

    session_key: str
    agent_id: str
    limit: int
    chars: int


class StoreScore(JobReport, frozen=True, tag="session_scores.store"):
    """How well memory served the session that the job is about.

    ``recalled``: memories that the session was shown. ``judged``: those that the model saw.
    """

    kind: ClassVar[str] = SCORE_SESSION

    score: SessionScore
    recalled: int
    judged: tuple[str, ...] = ()


CONTINUITY: Final[Operation[ContinuityRequest, ContinuityReply]] = Operation(
    name="analytics.continuity",
    summary="How well memory served sessions",
    tag="Sessions",
    paths=("/api/analytics/continuity",),
    request=ContinuityRequest,
    example={"limit": 10},
    replies={200: ContinuityReply, 403: Problem, **PROBLEMS},
    permission=Permission.ANALYTICS,
    scoped_by=BY_AGENT,
    served_by="searcher",
    owner_only=True,
)
LATEST: Final[Operation[LatestContinuityRequest, LatestContinuityReply]] = Operation(
    name="analytics.latest_continuity",
    summary="How well memory served the last session of each project",
    tag="Sessions",
    paths=("/api/analytics/continuity/latest",),
    request=LatestContinuityRequest,
    example={},
    replies={200: LatestContinuityReply, 403: Problem, **PROBLEMS},
    permission=Permission.ANALYTICS,
    scoped_by=BY_AGENT,
    served_by="searcher",
    owner_only=True,
)
OPERATIONS: Final = (CONTINUITY, LATEST)
