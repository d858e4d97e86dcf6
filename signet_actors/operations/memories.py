"""Read memories: the list, one memory, its history.

Names and spellings are those of the documents; ``tags`` is a comma string or null here (docs/decisions.md 31).
Source: memory-api.txt "Memories"; docs/compatibility.md "Reading memories".
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Clamped, Flag
from signet_actors.operations.operation import Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import AgentFields, FilterFields, Offset


class MemoryReply(msgspec.Struct, frozen=True):
    """One whole memory; ``pinned`` and ``is_deleted`` are 0 or 1. Provenance is given in both spellings."""

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


class ListedMemory(msgspec.Struct, frozen=True):
    """A memory in a list; ``deleted_at`` only if deleted memories were requested."""

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


class ListStats(msgspec.Struct, frozen=True, rename="camel"):
    """Counts over every live memory that the caller may read; ``critical``: importance of 0.9 or more."""

    total: int
    with_embeddings: int
    critical: int


class MemoryListReply(msgspec.Struct, frozen=True):
    """A page, newest first; ``total`` counts what the filters admit."""

    memories: list[ListedMemory]
    stats: ListStats
    total: int


class UsedMemory(ListedMemory, frozen=True, kw_only=True):
    """A memory in a list, with how often recalls returned it."""

    access_count: int


class MostUsedReply(msgspec.Struct, frozen=True):
    """Memories that recalls return most often, in descending order."""

    memories: list[UsedMemory]


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


class MostUsedRequest(FilterFields, frozen=True, kw_only=True):
    """How many memories to return."""

    limit: Annotated[int, Clamped(low=1, high=1000), Meta(description="Memories to return")] = 10


class GetMemoryRequest(AgentFields, frozen=True, kw_only=True):
    """How to read one memory."""

    include_deleted: Annotated[bool, Flag(), Meta(description="true: also return a deleted memory")] = False


class GetHistoryRequest(AgentFields, frozen=True, kw_only=True):
    """How much of the audit trail to return."""

    limit: Annotated[int, Clamped(low=1, high=1000), Meta(description="Events to return")] = 200


LIST_MEMORIES: Final = Operation(
    name="memories.list",
    summary="List memories",
    tag="Memories",
    method="GET",
    paths=("/api/memories",),
    request=ListMemoriesRequest,
    replies={200: MemoryListReply, **PROBLEMS},
    permission=Permission.RECALL,
    served_by="searcher",
)
MOST_USED: Final = Operation(
    name="memories.most_used",
    summary="List the memories that recalls return most often",
    tag="Memories",
    method="GET",
    paths=("/api/memories/most-used",),
    request=MostUsedRequest,
    replies={200: MostUsedReply, **PROBLEMS},
    permission=Permission.RECALL,
    served_by="searcher",
)
GET_MEMORY: Final = Operation(
    name="memories.get",
    summary="Read a memory",
    tag="Memories",
    method="GET",
    paths=("/api/memory/{id}",),
    request=GetMemoryRequest,
    replies={200: MemoryReply, 404: Problem, **PROBLEMS},
    permission=Permission.RECALL,
    served_by="searcher",
)
GET_HISTORY: Final = Operation(
    name="memories.history",
    summary="Audit trail of a memory",
    tag="Memories",
    method="GET",
    paths=("/api/memory/{id}/history",),
    request=GetHistoryRequest,
    replies={200: HistoryReply, 404: HistoryProblem, **PROBLEMS},
    permission=Permission.RECALL,
    served_by="searcher",
)
OPERATIONS: Final = (LIST_MEMORIES, MOST_USED, GET_MEMORY, GET_HISTORY)
