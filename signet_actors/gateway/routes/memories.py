"""Read memories over HTTP: the list, one memory, its history, a summary with the memories made from it.

Source: memory-api.txt "GET /api/memories", "GET /api/memory/:id", "GET /api/memory/:id/history"; docs/compatibility.md
"Reading memories"; docs/decisions.md 30-32, 35.
Departs: a history item has null for an unknown value, as in memory-api.txt; the reference daemon omits the key.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

import msgspec
from msgspec import UNSET

from signet_actors.domain.timestamps import moved
from signet_actors.errors import HTTP_STATUS, ErrorCode, InvalidRequest, NotFound
from signet_actors.features.facets.api import CountFacets, FacetsRequest
from signet_actors.features.session_summaries.api import EXPAND, ExpandSummaryReply, ExpandSummaryRequest
from signet_actors.gateway.features import ask
from signet_actors.gateway.http.responses import fill, joined_tags
from signet_actors.gateway.http.route import Call, HttpResponse, Route, filters_of, serve
from signet_actors.gateway.state import GatewayState
from signet_actors.operations import memories as api
from signet_actors.protocol.memories import Memory
from signet_actors.protocol.searcher import FindByPrefix, GetHistory, GetMemory, ListMemories


async def list_memories(call: Call[api.ListMemoriesRequest]) -> HttpResponse:
    """Return a page of live memories, newest first; with ``deleted=true`` a page of tombstones."""
    request = call.request
    words = tuple(request.words.split()) if request.words else ()
    page = await call.ask_searcher(
        ListMemories(
            read=call.read,
            filters=filters_of(request, call.former_project),
            limit=request.limit,
            offset=request.offset,
            deleted=request.deleted,
            words=words,
        )
    )
    return HttpResponse(
        api.MemoryListReply(
            memories=[_listed(memory, call.state) for memory in page.memories],
            stats=api.ListStats(total=page.total, with_embeddings=page.with_embeddings, critical=page.critical),
            total=page.matching,
            complete=page.complete if words else UNSET,
        )
    )


async def most_used(call: Call[api.MostUsedRequest]) -> HttpResponse:
    """Return the live memories that recalls returned most often."""
    page = await call.ask_searcher(
        ListMemories(
            read=call.read,
            filters=filters_of(call.request, call.former_project),
            limit=call.request.limit,
            most_used=True,
        )
    )
    return HttpResponse(api.MostUsedReply(memories=[_used(memory, call.state) for memory in page.memories]))


async def facets(call: Call[FacetsRequest]) -> HttpResponse:
    """Return counts of the memories that the list with these filters has."""
    request = call.request
    filters = filters_of(request, call.former_project)
    return HttpResponse(
        await call.ask_searcher(CountFacets(call.read, filters, request.top, request.deleted, request.alternatives))
    )


async def find_by_prefix(call: Call[api.FindByPrefixRequest]) -> HttpResponse:
    """Return the memories whose ids begin with the prefix, in any scope; deleted ones too unless the request says."""
    prefix, limit, deleted = call.request.prefix, call.request.limit, call.request.deleted
    if len(prefix) < api.MIN_PREFIX_CHARS:
        raise InvalidRequest(f"prefix must have at least {api.MIN_PREFIX_CHARS} characters", field="prefix")
    found = await call.ask_searcher(FindByPrefix(prefix=prefix, read=call.read, limit=limit, deleted=deleted))
    return HttpResponse(api.FoundByPrefixReply(memories=[_listed(memory, call.state) for memory in found.memories]))


def _used(memory: Memory, state: GatewayState) -> api.UsedMemory:
    return api.UsedMemory(**msgspec.structs.asdict(_listed(memory, state)), access_count=memory.access_count)


def _listed(memory: Memory, state: GatewayState) -> api.ListedMemory:
    kept = timedelta(milliseconds=state.config.retention.tombstone_retention_ms)
    deleted_at = memory.deleted_at
    return fill(
        api.ListedMemory,
        memory,
        tags=joined_tags(memory.tags),
        recoverable_until=UNSET if deleted_at is None else moved(deleted_at, kept),
        source_path=memory.source_path or UNSET,
    )


NO_MEMORIES: Final = {
    "turn:": "what was said in a session; find it by its session_key (session_search, `signet show SESSION`)",
    "temporal:": "an entry of a list of times; read what it is about by its `subject_id`",
}
"""What ids that a recall returns stand for if it is no memory, by their beginnings."""


async def get_memory(call: Call[api.GetMemoryRequest]) -> HttpResponse:
    """Return the memory; a tombstone only on request, and never a memory outside the caller's scope."""
    found = await call.ask_searcher(
        GetMemory(
            id=call.path["id"],
            read=call.read,
            include_deleted=call.request.include_deleted,
            with_parts=call.request.with_parts,
        )
    )
    if found.memory is None:
        kind = next((kind for prefix, kind in NO_MEMORIES.items() if call.path["id"].startswith(prefix)), None)
        raise NotFound("not found" if kind is None else f"not found: this is {kind}")
    reply = memory_reply(found.memory)
    if found.parts is not None:
        reply = msgspec.structs.replace(reply, parts=[api.MemoryPart(*part) for part in found.parts])
        call.warnings += left_out(found.parts)
    return HttpResponse(reply)


def left_out(texts: Iterable[tuple[str, str | None]]) -> list[str]:
    """Return a warning if contents were left out of a reply, each with the id of its memory."""
    count = sum(content is None for _, content in texts)
    return [f"{count} contents are left out, as the response would be too long; read each by its id"] if count else []


async def expand_summary(call: Call[ExpandSummaryRequest]) -> HttpResponse:
    """Return a summary with the memories made from it, and the beginning of its transcript."""
    found = (await ask(call, EXPAND, call.request)).read(ExpandSummaryReply)
    call.warnings += left_out((memory.id, memory.content) for memory in found.linked_memories)
    return HttpResponse(found)


def memory_reply(memory: Memory) -> api.MemoryReply:
    """Return the memory in the form of ``GET /api/memory/{id}``."""
    return fill(
        api.MemoryReply,
        memory,
        tags=joined_tags(memory.tags),
        source_path_alias=memory.source_path,
        runtime_path_alias=memory.runtime_path,
        idempotency_key_alias=memory.idempotency_key,
    )


async def get_history(call: Call[api.GetHistoryRequest]) -> HttpResponse:
    """Return the audit trail, oldest first, also of a deleted memory."""
    memory_id = call.path["id"]
    found = await call.ask_searcher(GetHistory(memory_id=memory_id, read=call.read, limit=call.request.limit))
    if found.events is None:
        problem = api.HistoryProblem(error="Not found", code=ErrorCode.NOT_FOUND.value, memory_id=memory_id)
        return HttpResponse(problem, status=HTTP_STATUS[ErrorCode.NOT_FOUND])
    items = [_history_item(event) for event in found.events]
    return HttpResponse(api.HistoryReply(memory_id=memory_id, count=len(items), history=items))


def _history_item(event: api.HistoryItem) -> api.HistoryItem:
    if event.metadata is None:
        return event
    try:
        return msgspec.structs.replace(event, metadata=msgspec.json.decode(event.metadata))
    except (msgspec.DecodeError, RecursionError):
        return event


ROUTES: tuple[Route, ...] = (
    *serve(api.LIST_MEMORIES, list_memories),
    *serve(api.MOST_USED, most_used),
    *serve(api.FIND_BY_PREFIX, find_by_prefix),
    *serve(api.GET_MEMORY, get_memory),
    *serve(api.GET_HISTORY, get_history),
)
