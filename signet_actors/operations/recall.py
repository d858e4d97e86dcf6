"""Public bodies of recall and of the searches beside it.

Source: memory-api.txt "POST /api/memory/recall" to "GET /memory/similar"; docs/compatibility.md "Recall".
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.providers import AggregateUsage
from signet_actors.domain.ranking.explanation import ExplainedId, Explanation
from signet_actors.operations import field_types as types
from signet_actors.operations import request_fields as fields
from signet_actors.operations.operation import EXAMPLE_MEMORY, MEMORY_READ, OWNERS_SESSION, Operation, Tool
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.temporal import ClockFields, RecallTime, Temporal, TimeWindow

MAX_ROWS: Final = 1000

QueryText = Annotated[str, types.Text(max_chars=types.MAX_QUERY_CHARS, secret=types.SecretRule.KEEP)]


class RecallFields(ClockFields, frozen=True, kw_only=True, omit_defaults=True):
    """What both forms of recall accept."""

    limit: Annotated[int, types.Clamped(low=1, high=100), Meta(description="Maximum number of results")] = 10
    min_score: Annotated[float, Meta(description="Drop results below this score")] | None = None
    min_relevance: (
        Annotated[float, Meta(description="Drop results below this relevance (0 to 1), which no other result changes")]
        | None
    ) = None
    answering: Annotated[
        bool,
        Meta(
            description="What most likely answers (relevance 0.5 and more) first, and without `min_relevance` nothing "
            "else; if nothing does, the three nearest"
        ),
    ] = False
    explain: Annotated[bool, Meta(description="Tell for each result how its score came about")] = False
    explain_id: Annotated[
        fields.SelectionText | None,
        Meta(description="Tell in `explained` what became of the memory with this id, also if it is not a result"),
    ] = msgspec.field(default=None, name="explainId")
    aggregate: Annotated[
        bool, Meta(description="Return one answer that a model makes from the results, instead of the results")
    ] = False
    expand: Annotated[bool, Meta(description="Add `sources`: what was said in the sessions of the results")] = False
    aggregate_budget: Annotated[
        Literal["small", "medium", "large"], Meta(description="Of an aggregate: at most 3, 5 or 8 recalls")
    ] = msgspec.field(default="small", name="aggregateBudget")
    save_aggregate: Annotated[
        bool | None, Meta(description="false: do not store the answer; else that needs the permission remember")
    ] = msgspec.field(default=None, name="saveAggregate")
    session_key: Annotated[
        fields.SelectionText | None,
        Meta(description="Leave out what this session has received since its last compaction"),
    ] = msgspec.field(default=None, name="sessionKey")
    include_recalled: Annotated[bool, Meta(description="Return also what the session has received, marked")] = (
        msgspec.field(default=False, name="includeRecalled")
    )


class RecallRequest(RecallFields, frozen=True, kw_only=True, omit_defaults=True):
    """What to recall; only ``query`` is required. Names are accepted in camel case and snake case."""

    query: QueryText
    time: Annotated[RecallTime | None, TimeWindow()] = None


class SearchRequest(RecallFields, frozen=True, kw_only=True, omit_defaults=True):
    """What to recall, in query parameters; only ``q`` is required."""

    query: QueryText = msgspec.field(name="q")


class LegacySearchRequest(fields.FilterFields, frozen=True, kw_only=True, omit_defaults=True):
    """A keyword search."""

    query: Annotated[QueryText, Meta(description="FTS5 expression; without it, filters only")] | None = msgspec.field(
        default=None, name="q"
    )
    distinct: Annotated[
        fields.SelectionText | None, Meta(description="`who`: list distinct authors instead of memories")
    ] = None
    limit: (
        Annotated[int, types.Clamped(low=1, high=MAX_ROWS), Meta(description="Default 20 with q, 50 without")] | None
    ) = None


class SimilarRequest(fields.AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """The memory to compare with."""

    id: Annotated[fields.SelectionText, Meta(description="The memory to compare with; required")] | None = None
    k: Annotated[int, types.Clamped(low=1, high=100), Meta(description="Maximum number of results")] = 10
    type: Annotated[str, types.MemoryType(secret=types.SecretRule.KEEP), Meta(description="Memory type")] | None = None


class RecallResult(msgspec.Struct, frozen=True):
    """One ranked memory, or after these a turn of an earlier session (``type`` session_turn, ``source`` transcript).

    ``content`` may be cut, ``content_length`` is its full length in characters.

    ``score`` orders the results of one recall; ``relevance`` can be compared between queries. Both are in [0, 1].
    ``temporal_*`` and ``subject_*``: the time by which it lies in the window of ``meta.temporal``, and what has that
    time. In a timeline, ``id`` begins with ``temporal:`` and ``subject_id`` is the id of the memory or session.
    ``supplementary``: not a result but shown with them, beyond the limit; ``supplementary_reason``: constraint (of what
    the query names) or rationale (of a decision among the results).
    ``session_key``: the part of ``sources`` that belongs to it; of a turn, its session. ``source_type``,
    ``source_path``: where it comes from; absent of one that was written by hand. ``newer_id``: the memory that says
    what has changed of it since; it stands before or directly after this one, unless the session has it.
    """

    id: str
    content: str
    content_length: int
    truncated: bool
    score: float
    relevance: float
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
    temporal_facet: str | UnsetType = UNSET
    temporal_start_at: str | UnsetType | None = UNSET
    temporal_end_at: str | UnsetType | None = UNSET
    subject_type: str | UnsetType = UNSET
    subject_id: str | UnsetType = UNSET
    supplementary: bool = False
    already_recalled: bool = False
    explanation: Explanation | UnsetType = UNSET
    session_key: str | UnsetType = UNSET
    source_type: str | UnsetType = UNSET
    source_path: str | UnsetType = UNSET
    newer_id: str | UnsetType = UNSET
    supplementary_reason: str | UnsetType = UNSET


class EntityFactItem(msgspec.Struct, frozen=True):
    """What a memory states of an entity; ``kind`` is attribute or constraint."""

    memory_id: str
    content: str
    kind: str
    aspect: str


class EntityContext(msgspec.Struct, frozen=True):
    """An entity of the agent that the query names, its constraints, and what it is asked about it."""

    id: str
    name: str
    entity_type: str
    facts: list[EntityFactItem]


class Stage(msgspec.Struct, frozen=True, rename="camel"):
    """A stage of the recall and what it took."""

    name: str
    duration_ms: float


class Timings(msgspec.Struct, frozen=True, rename="camel"):
    """The duration of each stage inside the daemon."""

    total_ms: float
    stages: list[Stage]


class Dedupe(msgspec.Struct, frozen=True, rename="camel"):
    """What a session was not given again; ``enabled`` is false without a session, and in a timeline.

    ``suppressed``: memories that were left out because the session has received them in this epoch.
    ``repeatedReturned``: those that were returned again because the request has ``includeRecalled``.
    """

    enabled: bool = False
    context_epoch: int = 0
    suppressed: int = 0
    repeated_returned: int = 0


class Indexing(msgspec.Struct, frozen=True, rename="camel"):
    """The number of memories that are not completely indexed yet; recall may find them by their words alone."""

    pending: int


class RecallMeta(msgspec.Struct, frozen=True, rename="camel"):
    """Information about the recall itself. ``indexing`` is present while memories are not completely indexed."""

    total_returned: int
    has_supplementary: bool
    no_hits: bool
    timings: Timings
    dedupe: Dedupe
    temporal: Temporal | UnsetType = UNSET
    indexing: Indexing | UnsetType = UNSET


StoppedReason = Literal["complete", "no_evidence", "router_unavailable", "synthesis_failed"]


class Aggregate(msgspec.Struct, frozen=True, rename="camel"):
    """How an aggregate recall ended. ``sourceMemoryIds``: what the answer was made from, without one what was found.

    ``queries``: those that were recalled. ``deduped``: the same answer was stored before. ``usage``: null if no model
    was called.
    """

    saved_memory_id: str | None
    saved: bool
    deduped: bool
    budget: str
    queries: list[str]
    source_memory_ids: list[str]
    stopped_reason: StoppedReason
    usage: AggregateUsage | None = None


class RecallReply(msgspec.Struct, frozen=True):
    """Ranked memories, best first; ``method`` is hybrid when vectors took part, else keyword.

    ``explained`` is present if the request has ``explainId``, and ``sources`` if it has ``expand``: what was said in
    the sessions of the results, by session key. ``entity_context``: of a search by GET, entities that the query names.
    """

    results: list[RecallResult]
    query: str
    method: str
    meta: RecallMeta
    aggregate: Aggregate | UnsetType = UNSET
    explained: ExplainedId | UnsetType = UNSET
    sources: dict[str, str] | UnsetType = UNSET
    entity_context: list[EntityContext] | UnsetType = UNSET


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
    source_type: str | UnsetType = UNSET
    source_path: str | UnsetType = UNSET
    project: str | UnsetType = UNSET


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


OWNERS_TURNS: Final = f"what was said in sessions, and {OWNERS_SESSION}"

RECALL: Final[Operation[RecallRequest, RecallReply]] = Operation(
    name="memories.recall",
    summary="Find memories that answer a question",
    tag="Recall",
    method="POST",
    paths=("/api/memory/recall",),
    request=RecallRequest,
    memory_ids=("explain_id",),
    example={"query": "which port does the staging database use?", "limit": 5, "min_relevance": 0.5},
    replies={200: RecallReply, **PROBLEMS},
    owner_parts=OWNERS_TURNS,
    **MEMORY_READ,
    description="Keyword and vector search, merged into one ranking of the memories that the caller may read.",
    tool=Tool(
        name="memory_search",
        title="Search memory",
        description="Search the long-term memory with a question in plain words. Returns what answers it, best first; "
        "`relevance` (0 to 1) tells how likely. If nothing has 0.5 or more, the three nearest with a warning. A memory "
        "of a project names it (`project`), which may be another one than yours. One with the source_type chunk is a "
        "part of a longer text. A result of the type session_turn was "
        "said in an earlier session: session_search with its session_key finds more of that session. One with a "
        "supplementary_reason is no answer: a constraint of what you name, or why something was decided.",
        fields={
            "query": "A question or a statement in plain words; names, paths and ticket numbers are found exactly",
            "limit": "",
            "type": fields.TYPE_FOR_MODELS,
            "tags": "Only memories with any of these tags",
            "project": "Only memories of this project, an absolute directory; default: of all projects",
            "since": fields.SINCE_FOR_MODELS,
            "until": fields.UNTIL_FOR_MODELS,
            "min_score": "",
            "min_relevance": "Drop results below this relevance instead of below 0.5",
            "expand": "true: add what was said in the sessions that the results come from",
            "session_key": "The session_key that your context shows: leave out what the session has received",
            "aggregate": "true: one short answer made from several memories, by a model if there is one; not stored",
            "aggregate_budget": "With aggregate: small (3 searches), medium (5) or large (8)",
        },
        sends={"answering": True, "saveAggregate": False},
        shown={
            "results": (
                *(
                    "id",
                    "content",
                    "truncated",
                    "relevance",
                    "type",
                    "tags",
                    "pinned",
                    "project",
                    "created_at",
                    "newer_id",
                    "supplementary_reason",
                    "source_type",
                ),
                *("subject_id", "temporal_start_at", "temporal_end_at", "session_key", "already_recalled"),
            ),
            "sources": (),
            "aggregate": (),
        },
    ),
)
SEARCH: Final[Operation[SearchRequest, RecallReply]] = Operation(
    name="memories.search",
    summary="The same with query parameters",
    tag="Recall",
    paths=("/api/memory/search",),
    request=SearchRequest,
    memory_ids=("explain_id",),
    example={"q": "staging database", "limit": 5},
    replies={200: RecallReply, **PROBLEMS},
    owner_parts=OWNERS_TURNS,
    **MEMORY_READ,
)
LEGACY_SEARCH: Final[Operation[LegacySearchRequest, LegacySearchReply | AuthorsReply]] = Operation(
    name="memories.legacy_search",
    summary="Keyword search (legacy)",
    tag="Recall",
    paths=("/memory/search",),
    request=LegacySearchRequest,
    example={"q": "deploy* NOT friday"},
    replies={200: LegacySearchReply | AuthorsReply, **PROBLEMS},
    owner_parts=OWNERS_TURNS,
    **MEMORY_READ,
)
SIMILAR: Final[Operation[SimilarRequest, SimilarReply]] = Operation(
    name="memories.similar",
    summary="Memories similar to a stored one",
    tag="Recall",
    paths=("/memory/similar",),
    request=SimilarRequest,
    memory_ids=("id",),
    example={"id": EXAMPLE_MEMORY, "k": 5},
    replies={200: SimilarReply, 404: SearchProblem, **PROBLEMS, 400: SearchProblem | Problem},
    **MEMORY_READ,
)
OPERATIONS: Final = (RECALL, SEARCH, LEGACY_SEARCH, SIMILAR)
