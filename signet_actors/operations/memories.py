"""Read memories: the list, one memory, its history.

Names and spellings are those of the documents; ``tags`` is a comma string or null here (docs/decisions.md 31).
Source: memory-api.txt "Memories"; docs/compatibility.md "Reading memories".
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.errors import InvalidRequest
from signet_actors.operations.field_types import Clamped, Flag, SecretRule, Text
from signet_actors.operations.operation import EXAMPLE_MEMORY, MEMORY_READ, Operation, Tool
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import (
    SINCE_FOR_MODELS,
    TYPE_FOR_MODELS,
    UNTIL_FOR_MODELS,
    AgentFields,
    FilterFields,
    Offset,
    SelectionText,
)

MIN_PREFIX_CHARS = 6
"""Shortest prefix of an id that names a memory."""
MAX_WORDS: Final = 20
"""That one search for deleted memories may have."""


class MemoryPart(msgspec.Struct, frozen=True):
    """A part of a long text, which is a memory of its own. ``content`` is null if the reply has no room for it."""

    id: str
    content: str | None


class MemoryReply(msgspec.Struct, frozen=True):
    """One whole memory; ``pinned`` and ``is_deleted`` are 0 or 1. Provenance is given in both spellings.

    ``parts`` only if they were requested and the memory is one of them: the live ones, in the order of the text.
    """

    id: str
    content: str
    type: str
    importance: float
    tags: str | None
    pinned: int
    who: str | None
    source_id: str | None
    source_type: str | None
    source_path: str | None
    runtime_path: str | None
    idempotency_key: str | None
    source_path_alias: str | None = msgspec.field(name="sourcePath")
    runtime_path_alias: str | None = msgspec.field(name="runtimePath")
    idempotency_key_alias: str | None = msgspec.field(name="idempotencyKey")
    project: str | None
    scope: str | None
    agent_id: str
    visibility: str
    session_id: str | None
    confidence: float | None
    access_count: int
    last_accessed: str | None
    is_deleted: int
    deleted_at: str | None
    extraction_status: str
    embedding_model: str | None
    version: int
    created_at: str
    updated_at: str
    updated_by: str | None
    parts: list[MemoryPart] | UnsetType = UNSET


class ListedMemory(msgspec.Struct, frozen=True):
    """A memory in a list; ``deleted_at`` and ``recoverable_until`` only of a deleted one; ``source_path``: its file."""

    id: str
    content: str
    created_at: str
    who: str | None
    importance: float
    tags: str | None
    source_type: str | None
    pinned: int
    type: str
    project: str | None
    version: int
    updated_at: str
    deleted_at: str | UnsetType = UNSET
    recoverable_until: str | UnsetType = UNSET
    source_path: str | UnsetType = UNSET


class ListStats(msgspec.Struct, frozen=True, rename="camel"):
    """Counts over every live memory that the caller may read; ``critical``: importance of 0.9 or more."""

    total: int
    with_embeddings: int
    critical: int


class MemoryListReply(msgspec.Struct, frozen=True):
    """A page, newest first; ``total`` counts what the filters admit.

    ``complete``, only with ``words``: false if only the last deleted memories were searched.
    """

    memories: list[ListedMemory]
    stats: ListStats
    total: int
    complete: bool | UnsetType = UNSET


class UsedMemory(ListedMemory, frozen=True, kw_only=True):
    """A memory in a list, with how often recalls returned it."""

    access_count: int


class MostUsedReply(msgspec.Struct, frozen=True):
    """Memories that recalls return most often, in descending order."""

    memories: list[UsedMemory]


class FoundByPrefixReply(msgspec.Struct, frozen=True):
    """Memories whose ids begin with the prefix, by id; deleted ones have ``deleted_at``."""

    memories: list[ListedMemory]


class HistoryItem(msgspec.Struct, frozen=True, rename="camel"):
    """One audit event; ``metadata`` is parsed if it is JSON, else it is text."""

    id: str
    event: str
    old_content: str | None
    new_content: str | None
    changed_by: str
    actor_type: str | None
    reason: str | None
    metadata: Any
    created_at: str
    session_id: str | None
    request_id: str | None


class HistoryReply(msgspec.Struct, frozen=True, rename="camel"):
    """Audit events, oldest first."""

    memory_id: str
    count: int
    history: list[HistoryItem]


class HistoryProblem(msgspec.Struct, frozen=True, rename="camel"):
    """The memory does not exist, or the caller may not read it."""

    error: str
    code: str
    memory_id: str


class ListMemoriesRequest(FilterFields, frozen=True, kw_only=True):
    """Which page of which memories."""

    limit: Annotated[int, Clamped(low=1, high=1000), Meta(description="Memories to return")] = 100
    offset: Offset = 0
    deleted: Annotated[bool, Flag(), Meta(description="true: deleted memories instead of live ones")] = False
    words: (
        Annotated[
            SelectionText,
            Meta(description=f"With deleted=true: only texts with each of these words, at most {MAX_WORDS}"),
        ]
        | None
    ) = None

    def __post_init__(self) -> None:
        words = self.words.split() if self.words else ()
        if words and not self.deleted:
            raise InvalidRequest("words needs deleted=true; live memories are found by a recall", field="words")
        if len(words) > MAX_WORDS:
            raise InvalidRequest(f"words has more than {MAX_WORDS} words", field="words")


class MostUsedRequest(FilterFields, frozen=True, kw_only=True):
    """How many memories to return."""

    limit: Annotated[int, Clamped(low=1, high=1000), Meta(description="Memories to return")] = 10


class FindByPrefixRequest(AgentFields, frozen=True, kw_only=True):
    """Which ids to find."""

    prefix: Annotated[
        str,
        Text(secret=SecretRule.KEEP),
        Meta(description=f"The first characters of an id, at least {MIN_PREFIX_CHARS}"),
    ]
    limit: Annotated[int, Clamped(low=1, high=100), Meta(description="Memories to return")] = 10
    deleted: Annotated[
        bool | None, Flag(), Meta(description="true: only deleted memories, false: only live ones; default: both")
    ] = None


class GetMemoryRequest(AgentFields, frozen=True, kw_only=True):
    """How to read one memory."""

    include_deleted: Annotated[bool, Flag(), Meta(description="true: also return a deleted memory")] = False
    with_parts: Annotated[
        bool, Flag(), Meta(description="true: if the memory is a part of a long text, also return all of its parts")
    ] = False


class GetHistoryRequest(AgentFields, frozen=True, kw_only=True):
    """How much of the audit trail to return."""

    limit: Annotated[int, Clamped(low=1, high=1000), Meta(description="Events to return")] = 200


LIST_MEMORIES: Final[Operation[ListMemoriesRequest, MemoryListReply]] = Operation(
    name="memories.list",
    summary="List memories",
    tag="Memories",
    paths=("/api/memories",),
    request=ListMemoriesRequest,
    example={"type": "fact", "limit": 20},
    replies={200: MemoryListReply, **PROBLEMS},
    **MEMORY_READ,
    tool=Tool(
        name="memory_list",
        title="List memories",
        description="List stored memories, newest first. To answer a question, use memory_search instead.",
        fields={
            "limit": "1 to 100; a value beyond counts as the nearest bound. For more, repeat the call with `offset`",
            "offset": "",
            "type": TYPE_FOR_MODELS,
            "tags": "Only memories with any of these tags",
            "project": "Only memories of this project, an absolute directory; default: of all projects",
            "pinned": "",
            "since": SINCE_FOR_MODELS,
            "until": UNTIL_FOR_MODELS,
        },
        most={"limit": 100},
        shown={
            "memories": ("id", "content", "type", "tags", "pinned", "importance", "project", "created_at"),
            "total": (),
        },
    ),
)
MOST_USED: Final[Operation[MostUsedRequest, MostUsedReply]] = Operation(
    name="memories.most_used",
    summary="List the memories that recalls return most often",
    tag="Memories",
    paths=("/api/memories/most-used",),
    request=MostUsedRequest,
    example={"limit": 5},
    replies={200: MostUsedReply, **PROBLEMS},
    **MEMORY_READ,
)
FIND_BY_PREFIX: Final[Operation[FindByPrefixRequest, FoundByPrefixReply]] = Operation(
    name="memories.find_by_prefix",
    summary="Find memories by the first characters of their id",
    tag="Memories",
    paths=("/api/memories/by-prefix",),
    request=FindByPrefixRequest,
    example={"prefix": EXAMPLE_MEMORY[:6]},
    replies={200: FoundByPrefixReply, **PROBLEMS},
    **MEMORY_READ,
)
GET_MEMORY: Final[Operation[GetMemoryRequest, MemoryReply]] = Operation(
    name="memories.get",
    summary="Read a memory",
    tag="Memories",
    paths=("/api/memory/{id}",),
    request=GetMemoryRequest,
    memory_ids=("id",),
    example={"id": EXAMPLE_MEMORY},
    replies={200: MemoryReply, 404: Problem, **PROBLEMS},
    **MEMORY_READ,
    tool=Tool(
        name="memory_get",
        title="Read a memory",
        description="Read one memory in full by its id. Results of memory_search may be cut (`truncated`).",
        fields={"id": "The id of a memory, or the beginning of it that a memory in your context shows"},
        shown=dict.fromkeys(
            (
                *("id", "content", "type", "tags", "pinned", "importance", "project", "who"),
                *("source_path", "created_at", "updated_at", "is_deleted"),
            ),
            (),
        ),
    ),
)
GET_HISTORY: Final[Operation[GetHistoryRequest, HistoryReply]] = Operation(
    name="memories.history",
    summary="Audit trail of a memory",
    tag="Memories",
    paths=("/api/memory/{id}/history",),
    request=GetHistoryRequest,
    memory_ids=("id",),
    example={"id": EXAMPLE_MEMORY, "limit": 20},
    replies={200: HistoryReply, 404: HistoryProblem, **PROBLEMS},
    **MEMORY_READ,
)
OPERATIONS: Final = (LIST_MEMORIES, MOST_USED, FIND_BY_PREFIX, GET_MEMORY, GET_HISTORY)
