"""The memories that a session was offered, and the feedback of its agent about them.

Source: docs/compatibility.md "Feedback"; memory-pipeline.txt "Continuity Scoring"; docs/guides/hooks.md "Sessions".
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Clamped, JsonObject
from signet_actors.operations.operation import BY_AGENT, EXAMPLE_MEMORY, SESSION_READ, Effect, Operation, Tool
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import Offset, Ratings, not_yet
from signet_actors.operations.transcripts import OwnAgent, Session

FEEDBACK_COUNTER: Final = "feedback."
"""What the names of the stored counters of aspects begin with: aspects, confirmations, decayed, propagated."""
ACCEPTANCE_RULE: Final = "a rating counts if its session was offered the memory, and the memory still exists"


class FeedbackRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """How useful memories were to a session: 1 helped, 0 made no difference, -1 misled."""

    session_key: Annotated[Session, Meta(description="The session that was offered the memories")] = msgspec.field(
        name="sessionKey"
    )
    ratings: Annotated[
        dict[str, float],
        Ratings(missing="feedback is required"),
        Meta(description="A score from -1 to 1 for each memory id; also `ratings`"),
    ] = msgspec.field(name="feedback")
    rewards: Annotated[dict[str, Any] | None, JsonObject(), not_yet("is not used")] = None


class FeedbackReply(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """``recorded`` ratings are on disk; ``rejected`` ones are not, see ``acceptanceRule``.

    ``propagated`` ones moved the weight of an aspect in the knowledge graph. The other counts are 0.
    """

    ok: Literal[True] = True
    recorded: int
    accepted: int
    rejected: int
    propagated: int = 0
    cooccurrence_updated: int = 0
    dependencies_updated: int = 0
    acceptance_rule: str = ACCEPTANCE_RULE
    warnings: list[str] | UnsetType = UNSET


class ListSessionMemoriesRequest(OwnAgent, frozen=True, kw_only=True, omit_defaults=True):
    """Which page of the memories to return."""

    limit: Annotated[int, Clamped(low=1, high=500), Meta(description="Memories to return")] = 100
    offset: Offset = 0


class SessionMemoryBody(msgspec.Struct, frozen=True, rename="camel"):
    """A memory that the session was offered by ``source``: session_start, prompt or recall.

    ``rank``: its place there, 1 is the best. ``wasInjected``: the session was shown it by a hook. ``ftsHitCount``:
    searches of the session whose words it matched. ``relevanceScore``: by the continuity scoring, null until then.
    ``feedback``: the mean of ``feedbackCount`` ratings by the agent.
    """

    id: str
    content: str
    type: str
    source: str
    rank: int
    was_injected: bool
    fts_hit_count: int
    relevance_score: float | None
    feedback: float | None
    feedback_count: int
    created_at: str


class SessionMetrics(msgspec.Struct, frozen=True, rename="camel"):
    """Counts and means over all memories that the session was offered; a mean without values is null."""

    offered: int
    injected: int
    hit: int
    injected_and_hit: int
    rated: int
    mean_relevance: float | None
    mean_feedback: float | None


class SessionMemoriesReply(msgspec.Struct, frozen=True, rename="camel"):
    """A page, in the order in which the session was offered them; ``count`` counts the page."""

    session_key: str
    agent_id: str
    memories: list[SessionMemoryBody]
    count: int
    metrics: SessionMetrics


FEEDBACK: Final[Operation[FeedbackRequest, FeedbackReply]] = Operation(
    name="feedback.record",
    summary="Rate the memories of a session",
    tag="Sessions",
    method="POST",
    paths=("/api/memory/feedback",),
    request=FeedbackRequest,
    memory_ids=("ratings",),
    example={"sessionKey": "s-1", "feedback": {EXAMPLE_MEMORY: 0.8}},
    replies={200: FeedbackReply, **PROBLEMS},
    permission=Permission.REMEMBER,
    scoped_by=BY_AGENT,
    served_by="writer",
    needs_offers=True,
    effect=Effect.OTHER,
    description="Ratings of one memory are averaged. They are stored and shown with the session; no importance depends "
    "on them. Each moves the weight of the aspect of the knowledge graph to which the memory belongs, if it has one.",
    tool=Tool(
        name="memory_feedback",
        title="Rate memories",
        description="Say how useful the memories were that this session received: 1 helped, 0 made no difference, "
        "-1 misled. To correct a wrong memory, use memory_modify.",
        fields={
            "session_key": "The session_key that your context shows",
            "ratings": "A score from -1 to 1 for each memory id, or the beginning of it that your context shows",
        },
        idempotent=False,
    ),
)
SESSION_MEMORIES: Final[Operation[ListSessionMemoriesRequest, SessionMemoriesReply]] = Operation(
    name="sessions.memories",
    summary="Memories that a session was offered",
    tag="Sessions",
    paths=("/api/sessions/{key}/memories",),
    request=ListSessionMemoriesRequest,
    example={"key": "s-1", "limit": 20},
    replies={200: SessionMemoriesReply, 404: Problem, **PROBLEMS},
    **SESSION_READ,
    needs_offers=True,
    description="Each hook and recall of a session offers memories; `metrics` counts those that were shown, searched "
    "for and rated.",
)
OPERATIONS: Final = (FEEDBACK, SESSION_MEMORIES)
