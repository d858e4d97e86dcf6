"""Read memories over HTTP: the list, one memory, its history.

Source: memory-api.txt "GET /api/memories", "GET /api/memory/:id", "GET /api/memory/:id/history"; docs/compatibility.md
"Reading memories"; docs/decisions.md 30-32, 35.
Departs: a history item has null for an unknown value, as in memory-api.txt; the reference daemon omits the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from signet_actors.domain.permissions import Permission
from signet_actors.errors import HTTP_STATUS, ErrorCode, NotFound
from signet_actors.gateway.http.request_reader import MAX_OFFSET, RequestReader, joined_tags, read_scope_of
from signet_actors.gateway.http.route import HttpRequest, HttpResponse, Parameter, Route
from signet_actors.protocol.http.memories import (
    HistoryItem,
    HistoryProblem,
    HistoryReply,
    ListedMemory,
    ListStats,
    MemoryListReply,
    MemoryReply,
)
from signet_actors.protocol.http.problem import Problem
from signet_actors.protocol.memories import HistoryEvent, Memory
from signet_actors.protocol.searcher import GetHistory, GetMemory, ListMemories

AGENT_PARAMETERS: Final = (
    Parameter("agentId", description="Agent whose read policy applies; also agent_id or x-signet-agent-id"),
    Parameter(
        "scope", description="Only memories of this scope; default: those without a scope. Access by id ignores it"
    ),
)
FILTER_PARAMETERS: Final = (
    Parameter("type", description="Memory type"),
    Parameter("tags", description="Comma-separated; memories with any of these tags"),
    Parameter("who", description="Author"),
    Parameter("pinned", "boolean", "1 or true: only pinned memories"),
    Parameter("importance_min", "number", "Minimum importance"),
    Parameter("since", description="ISO time: created then or later"),
    Parameter("until", description="ISO time: created then or earlier"),
    Parameter("project", description="Project"),
    Parameter("source_type", description="Kind of source"),
)
PROBLEMS: Final[Mapping[int, Any]] = {400: Problem, 503: Problem}


async def list_memories(request: HttpRequest) -> HttpResponse:
    """Return a page of live memories, newest first; with ``deleted=true`` a page of tombstones."""
    fields = RequestReader(request.query, warnings=request.warnings)
    deleted = fields.query_flag("deleted")
    page, _ = await request.state.bus.ask_searcher(
        ListMemories(
            read=read_scope_of(request),
            filters=fields.filters(query=True),
            limit=fields.query_integer("limit", 100, 1, 1000),
            offset=fields.query_integer("offset", 0, 0, MAX_OFFSET),
            deleted=deleted,
        ),
        trace_id=request.trace_id,
    )
    return HttpResponse(
        MemoryListReply(
            memories=[_listed(memory) for memory in page.memories],
            stats=ListStats(total=page.total, with_embeddings=page.with_embeddings, critical=page.critical),
            total=page.matching,
        )
    )


def _listed(memory: Memory) -> ListedMemory:
    return ListedMemory(
        id=memory.id,
        content=memory.content,
        created_at=memory.created_at,
        who=memory.who,
        importance=memory.importance,
        tags=joined_tags(memory.tags),
        source_type=memory.source_type,
        pinned=memory.pinned,
        type=memory.type,
        project=memory.project,
        version=memory.version,
        updated_at=memory.updated_at,
        deleted_at=memory.deleted_at if memory.deleted_at is not None else UNSET,
    )


async def get_memory(request: HttpRequest) -> HttpResponse:
    """Return the memory; a tombstone only on request, and never a memory outside the caller's scope."""
    found, _ = await request.state.bus.ask_searcher(
        GetMemory(
            id=request.path["id"],
            read=read_scope_of(request),
            include_deleted=RequestReader(request.query, warnings=request.warnings).query_flag(
                "include_deleted", "includeDeleted"
            ),
        ),
        trace_id=request.trace_id,
    )
    if found.memory is None:
        raise NotFound("not found")
    return HttpResponse(memory_reply(found.memory))


def memory_reply(memory: Memory) -> MemoryReply:
    """Return the memory in the form of ``GET /api/memory/{id}``."""
    return MemoryReply(
        id=memory.id,
        content=memory.content,
        type=memory.type,
        importance=memory.importance,
        tags=joined_tags(memory.tags),
        pinned=memory.pinned,
        who=memory.who,
        source_id=memory.source_id,
        source_type=memory.source_type,
        source_path=memory.source_path,
        runtime_path=memory.runtime_path,
        idempotency_key=memory.idempotency_key,
        source_path_alias=memory.source_path,
        runtime_path_alias=memory.runtime_path,
        idempotency_key_alias=memory.idempotency_key,
        project=memory.project,
        scope=memory.scope,
        agent_id=memory.agent_id,
        visibility=memory.visibility,
        session_id=memory.session_id,
        confidence=memory.confidence,
        access_count=memory.access_count,
        last_accessed=memory.last_accessed,
        is_deleted=memory.is_deleted,
        deleted_at=memory.deleted_at,
        extraction_status=memory.extraction_status,
        embedding_model=memory.embedding_model,
        version=memory.version,
        created_at=memory.created_at,
        updated_at=memory.updated_at,
        updated_by=memory.updated_by,
    )


async def get_history(request: HttpRequest) -> HttpResponse:
    """Return the audit trail, oldest first, also of a deleted memory."""
    memory_id = request.path["id"]
    found, _ = await request.state.bus.ask_searcher(
        GetHistory(
            memory_id=memory_id,
            read=read_scope_of(request),
            limit=RequestReader(request.query, warnings=request.warnings).query_integer("limit", 200, 1, 1000),
        ),
        trace_id=request.trace_id,
    )
    if found.events is None:
        problem = HistoryProblem(error="Not found", code=ErrorCode.NOT_FOUND.value, memory_id=memory_id)
        return HttpResponse(problem, status=HTTP_STATUS[ErrorCode.NOT_FOUND])
    items = [_history_item(event) for event in found.events]
    return HttpResponse(HistoryReply(memory_id=memory_id, count=len(items), history=items))


def _history_item(event: HistoryEvent) -> HistoryItem:
    metadata: Any = event.metadata
    if event.metadata is not None:
        try:
            metadata = msgspec.json.decode(event.metadata)
        except (msgspec.DecodeError, RecursionError):
            metadata = event.metadata
    return HistoryItem(
        id=event.id,
        event=event.event,
        old_content=event.old_content,
        new_content=event.new_content,
        changed_by=event.changed_by,
        actor_type=event.actor_type,
        reason=event.reason,
        metadata=metadata,
        created_at=event.created_at,
        session_id=event.session_id,
        request_id=event.request_id,
    )


ROUTES: tuple[Route, ...] = (
    Route(
        method="GET",
        path="/api/memories",
        handler=list_memories,
        permission=Permission.RECALL,
        summary="List memories",
        tag="Memories",
        query=(
            Parameter("limit", "integer", "Records to return, 1 to 1000; default 100"),
            Parameter("offset", "integer", "Records to skip"),
            Parameter("deleted", "boolean", "true: deleted memories instead of live ones"),
            *FILTER_PARAMETERS,
            *AGENT_PARAMETERS,
        ),
        replies={200: MemoryListReply, **PROBLEMS},
    ),
    Route(
        method="GET",
        path="/api/memory/{id}",
        handler=get_memory,
        permission=Permission.RECALL,
        summary="Read a memory",
        tag="Memories",
        query=(Parameter("include_deleted", "boolean", "1 or true: also return a deleted memory"), *AGENT_PARAMETERS),
        replies={200: MemoryReply, 404: Problem, **PROBLEMS},
    ),
    Route(
        method="GET",
        path="/api/memory/{id}/history",
        handler=get_history,
        permission=Permission.RECALL,
        summary="Audit trail of a memory",
        tag="Memories",
        query=(Parameter("limit", "integer", "Events, 1 to 1000; default 200"), *AGENT_PARAMETERS),
        replies={200: HistoryReply, 404: HistoryProblem, **PROBLEMS},
    ),
)
