"""Public bodies of recall and of the searches beside it.

Source: memory-api.txt "POST /api/memory/recall" to "GET /memory/similar"; docs/compatibility.md "Recall".
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.memories import TIME_FACETS, TimeFacet
from signet_actors.operations.memories import Importance, TagsInput
from signet_actors.operations.request_fields import not_yet


class RecallTime(msgspec.Struct, frozen=True, omit_defaults=True):
    """A time window; ``end`` defaults to 24 hours after ``start``."""

    start: str
    end: str | None = None
    facets: Annotated[
        list[TimeFacet] | None,
        not_yet(
            "other than captured are not available yet; the time window filters by the capture time",
            *(facet for facet in TIME_FACETS if facet != "captured"),
        ),
    ] = None
    mode: Annotated[
        Literal["auto", "timeline", "filter"] | None,
        not_yet("timeline is not available yet; the time window is used as a filter", "timeline"),
    ] = None


class RecallRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """What to recall; only ``query`` is required. Both spellings of every name are accepted."""

    query: str
    limit: Annotated[
        float, Meta(description="Maximum number of results; fractions are truncated; limited to 1 to 100")
    ] = 10
    type: str | None = None
    tags: TagsInput = None
    who: str | None = None
    pinned: bool | None = None
    importance_min: Importance | None = None
    since: str | None = None
    until: str | None = None
    project: str | None = None
    source_type: str | None = None
    scope: str | None = None
    min_score: float | None = None
    time: RecallTime | None = None
    aggregate: Annotated[bool, not_yet("is not available yet; see aggregate.stoppedReason")] = False
    expand: Annotated[bool, not_yet("is not available yet; no transcript is added")] = False
    aggregate_budget: Literal["small", "medium", "large"] | None = msgspec.field(default=None, name="aggregateBudget")
    save_aggregate: bool | None = msgspec.field(default=None, name="saveAggregate")
    agent_id: str | None = msgspec.field(default=None, name="agentId")
    session_key: Annotated[
        str | None, not_yet("does not suppress repeated results yet; meta.dedupe.enabled is false")
    ] = msgspec.field(default=None, name="sessionKey")
    include_recalled: bool = msgspec.field(default=False, name="includeRecalled")


class RecallResult(msgspec.Struct, frozen=True):
    """One ranked memory; ``content`` may be cut, ``content_length`` is its full length in characters."""

    id: str
    content: str
    content_length: int
    truncated: bool
    score: float
    source: str
    type: str
    tags: str | None
    pinned: bool
    importance: float
    who: str | None
    project: str | None
    scope: str | None
    visibility: str
    created_at: str
    supplementary: bool = False
    already_recalled: bool = False


class Stage(msgspec.Struct, frozen=True, rename="camel"):
    """A stage of the recall and what it took."""

    name: str
    duration_ms: float


class Timings(msgspec.Struct, frozen=True, rename="camel"):
    """The duration of each stage inside the daemon."""

    total_ms: float
    stages: list[Stage]


class Dedupe(msgspec.Struct, frozen=True, rename="camel"):
    """Per-session suppression of repeats; ``enabled`` false means that it was not applied."""

    enabled: bool = False
    context_epoch: int = 0
    suppressed: int = 0
    repeated_returned: int = 0


class Temporal(msgspec.Struct, frozen=True, rename="camel"):
    """The time window that was applied."""

    mode: str
    source: str
    original_query: str
    content_query: str
    start: str
    end: str
    facets: list[str]


class RecallMeta(msgspec.Struct, frozen=True, rename="camel"):
    """Information about the recall itself."""

    total_returned: int
    has_supplementary: bool
    no_hits: bool
    timings: Timings
    dedupe: Dedupe
    temporal: Temporal | UnsetType = UNSET


class Aggregate(msgspec.Struct, frozen=True, rename="camel"):
    """How an aggregate recall ended."""

    saved_memory_id: str | None
    saved: bool
    deduped: bool
    budget: str
    queries: list[str]
    source_memory_ids: list[str]
    stopped_reason: str
    usage: Any = None


class RecallReply(msgspec.Struct, frozen=True):
    """Ranked memories, best first; ``method`` is hybrid when vectors took part, else keyword."""

    results: list[RecallResult]
    query: str
    method: str
    meta: RecallMeta
    aggregate: Aggregate | UnsetType = UNSET


class LegacyResult(msgspec.Struct, frozen=True):
    """A row of the legacy keyword search; ``pinned`` is 0 or 1."""

    id: str
    content: str
    created_at: str
    who: str | None
    importance: float
    tags: str | None
    type: str
    pinned: int
    score: float | UnsetType = UNSET


class LegacySearchReply(msgspec.Struct, frozen=True):
    """Rows of the legacy keyword search."""

    results: list[LegacyResult]


class AuthorsReply(msgspec.Struct, frozen=True):
    """Distinct authors."""

    values: list[str]


class SimilarResult(msgspec.Struct, frozen=True):
    """A neighbour and its cosine similarity."""

    id: str
    content: str
    type: str
    tags: list[str]
    score: float
    confidence: float | None
    created_at: str


class SimilarReply(msgspec.Struct, frozen=True):
    """Neighbours, nearest first."""

    results: list[SimilarResult]


class SearchProblem(msgspec.Struct, frozen=True):
    """A search that was refused, in the shape of an empty result."""

    error: str
    code: str
    results: list[SimilarResult] = []
