"""One memory over HTTP: remember, list, read, history, patch, delete, recover.

Source: memory-api.txt "Memories"; wire.md 1.2; decisions.md 3, 4, 23, 26, 30-33, 35.
Departs: a history item shows null for what it does not know, as memory-api.txt does, where the reference daemon
leaves the key out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from signet_actors.domain.chunking import chunk_by_sentence
from signet_actors.domain.memories import CRITICAL_IMPORTANCE, DEFAULT_IMPORTANCE, infer_type, parse_prefixes
from signet_actors.domain.normalization import content_hash
from signet_actors.domain.permissions import Permission
from signet_actors.errors import HTTP_STATUS, ErrorCode, InvalidRequest, NotFound
from signet_actors.gateway.fields import (
    MAX_OFFSET,
    MAX_TEXT_CHARS,
    Fields,
    agent_of,
    joined_tags,
    read_scope_of,
)
from signet_actors.gateway.refusals import refusal
from signet_actors.gateway.route import Call, Parameter, Reply, Route
from signet_actors.gateway.stored_text import StoredText, stored_text, stored_vectors
from signet_actors.protocol.http.memories import (
    DeleteReply,
    DeleteRequest,
    HistoryItem,
    HistoryProblem,
    HistoryReply,
    ListedMemory,
    ListStats,
    MemoryListReply,
    MemoryReply,
    PatchReply,
    PatchRequest,
    RecoverReply,
    RecoverRequest,
    Refusal,
    RememberChunksReply,
    RememberReply,
    RememberRequest,
)
from signet_actors.protocol.http.problem import Problem
from signet_actors.protocol.memories import HistoryEvent, Memory
from signet_actors.protocol.searcher import GetHistory, GetMemory, ListMemories
from signet_actors.protocol.writer import (
    ForgetMemory,
    MemoryPatch,
    ModifyMemory,
    NewMemory,
    RecoverMemory,
    Remember,
    RememberChunks,
)

if TYPE_CHECKING:
    from signet_actors.gateway.state import GatewayState

MAX_CHUNKS: Final = 4000
"""Chunks of one content; with their vectors they are one message of some 6 MB and one transaction."""

AGENT_PARAMETERS: Final = (
    Parameter("agentId", description="Agent whose read policy applies; also agent_id or x-signet-agent-id"),
    Parameter("scope", description="Also the rows of exactly this scope"),
)
CHANGE_PARAMETERS: Final = (
    Parameter("reason", description="Why; instead of the body's"),
    Parameter("if_version", "integer", "Refuse unless this is the current version; instead of the body's"),
    *AGENT_PARAMETERS,
)
FILTER_PARAMETERS: Final = (
    Parameter("type", description="Memory type"),
    Parameter("tags", description="Any of these, comma-separated"),
    Parameter("who", description="Author"),
    Parameter("pinned", "boolean", "1 or true: pinned ones only"),
    Parameter("importance_min", "number", "Least importance"),
    Parameter("since", description="ISO time: created then or later"),
    Parameter("until", description="ISO time: created then or earlier"),
    Parameter("project", description="Project"),
    Parameter("source_type", description="Kind of source"),
)
PROBLEMS: Final[Mapping[int, Any]] = {400: Problem, 503: Problem}


async def remember(call: Call) -> Reply:
    """The memory is on disk once this answers; an oversized one as chunks, all or none."""
    state = call.state
    body = call.json_object()
    fields = Fields(body)
    raw = fields.content()
    if raw is None:
        raise InvalidRequest("content is required", field="content")
    prefixes = parse_prefixes(raw)
    template = _new_memory(call, body, fields, pinned=prefixes.pinned, tags=prefixes.tags)
    text = await stored_text(state, prefixes.content)
    if not text.content:
        raise InvalidRequest("content is required", field="content")
    memory = msgspec.structs.replace(template, content=text.content, type=template.type or infer_type(text.content))
    if len(text.content) > state.config.memory.pipeline_v2.guardrails.max_content_chars:
        return await _remember_chunks(call, body, memory, text)
    frames: list[bytes] = []
    (vector,) = await stored_vectors(state, [text.content], frames, trace_id=call.trace_id)
    kept = await state.bus.ask_writer(
        Remember(
            memory=msgspec.structs.replace(memory, vector=vector),
            principal=call.principal(body),
            idempotency=call.idempotency(),
        ),
        trace_id=call.trace_id,
        frames=frames,
    )
    return Reply(
        RememberReply(
            id=kept.id,
            type=kept.type,
            tags=joined_tags(kept.tags),
            pinned=kept.pinned,
            importance=kept.importance,
            content=kept.content,
            embedded=kept.embedded,
            deduped=kept.deduped,
            redacted=True if text.redacted else UNSET,
        )
    )


async def _remember_chunks(call: Call, body: Mapping[str, Any], memory: NewMemory, text: StoredText) -> Reply:
    state = call.state
    target = state.config.memory.pipeline_v2.guardrails.chunk_target_chars
    # A text that repeats itself is no conflict with itself: each chunk is stored once, where it stands first.
    unique: dict[str, str] = {}
    for chunk in chunk_by_sentence(text.content, target):
        unique.setdefault(content_hash(chunk), chunk)
    chunks = list(unique.values())
    if len(chunks) > MAX_CHUNKS:
        raise InvalidRequest(
            f"content falls into {len(chunks)} chunks, more than {MAX_CHUNKS}",
            code=ErrorCode.PAYLOAD_TOO_LARGE,
            field="content",
        )
    frames: list[bytes] = []
    vectors = [v for v in await stored_vectors(state, chunks, frames, trace_id=call.trace_id) if v is not None]
    if len(vectors) != len(chunks):
        # One vector per chunk or none at all: a chunk without one is found by keyword like the others then.
        vectors, frames = [], []
    kept = await state.bus.ask_writer(
        RememberChunks(
            memory=memory,
            chunks=tuple(chunks),
            vectors=tuple(vectors),
            principal=call.principal(body),
            idempotency=call.idempotency(),
        ),
        trace_id=call.trace_id,
        frames=frames,
    )
    return Reply(
        RememberChunksReply(
            chunk_count=len(kept.ids),
            ids=kept.ids,
            group_id=kept.group_id,
            deduped=True if kept.deduped else UNSET,
            redacted=True if text.redacted else UNSET,
        )
    )


def _new_memory(
    call: Call, body: Mapping[str, Any], fields: Fields, *, pinned: bool, tags: tuple[str, ...]
) -> NewMemory:
    """Everything but the content; ``type`` is empty when it has to be inferred. Body fields beat prefixes."""
    _, metadata = fields.find("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise InvalidRequest("metadata must be an object", field="metadata")
    # An importer's metadata object is asked last, and in both spellings like everything else.
    provenance = Fields(body, metadata or {})
    importance = fields.importance("importance")
    if importance is None:
        importance = CRITICAL_IMPORTANCE if pinned else DEFAULT_IMPORTANCE
    chosen = fields.flag("pinned")
    return NewMemory(
        content="",
        type=fields.memory_type() or "",
        importance=importance,
        tags=fields.tags() if fields.find("tags")[1] is not None else tags,
        pinned=pinned if chosen is None else chosen,
        who=fields.text("who") or "daemon",
        project=fields.text("project"),
        scope=fields.text("scope"),
        agent_id=agent_of(call, body),
        visibility=fields.visibility(),
        source_type=fields.text("sourceType", "source_type") or "manual",
        source_id=fields.text("sourceId", "source_id", max_chars=MAX_TEXT_CHARS),
        source_path=provenance.text("sourcePath", "source_path", max_chars=MAX_TEXT_CHARS),
        runtime_path=provenance.text("runtimePath", "runtime_path", max_chars=MAX_TEXT_CHARS),
        idempotency_key=provenance.text("idempotencyKey", "idempotency_key", max_chars=MAX_TEXT_CHARS),
        session_bound=fields.has_text("transcript"),
        created_at=fields.timestamp("createdAt", "created_at"),
        temporal=fields.temporal_edges(),
    )


async def list_memories(call: Call) -> Reply:
    """A page of live memories, newest first; of tombstones with ``deleted=true``."""
    fields = Fields(call.query)
    deleted = fields.query_flag("deleted")
    page, _ = await call.state.bus.ask_searcher(
        ListMemories(
            read=read_scope_of(call),
            filters=fields.filters(query=True),
            limit=fields.query_integer("limit", 100, 1, 1000),
            offset=fields.query_integer("offset", 0, 0, MAX_OFFSET),
            deleted=deleted,
        ),
        trace_id=call.trace_id,
    )
    return Reply(
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


async def get_memory(call: Call) -> Reply:
    """The memory; a tombstone only when asked for, and never one outside the caller's scope."""
    found, _ = await call.state.bus.ask_searcher(
        GetMemory(
            id=call.path["id"],
            read=read_scope_of(call),
            include_deleted=Fields(call.query).query_flag("include_deleted", "includeDeleted"),
        ),
        trace_id=call.trace_id,
    )
    if found.memory is None:
        raise NotFound("not found")
    return Reply(memory_reply(found.memory))


def memory_reply(memory: Memory) -> MemoryReply:
    """A memory as ``GET /api/memory/{id}`` shows it."""
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


async def get_history(call: Call) -> Reply:
    """The audit trail, oldest first; of a deleted memory too."""
    memory_id = call.path["id"]
    found, _ = await call.state.bus.ask_searcher(
        GetHistory(
            memory_id=memory_id,
            read=read_scope_of(call),
            limit=Fields(call.query).query_integer("limit", 200, 1, 1000),
        ),
        trace_id=call.trace_id,
    )
    if found.events is None:
        problem = HistoryProblem(error="Not found", code=ErrorCode.NOT_FOUND.value, memory_id=memory_id)
        return Reply(problem, status=HTTP_STATUS[ErrorCode.NOT_FOUND])
    items = [_history_item(event) for event in found.events]
    return Reply(HistoryReply(memory_id=memory_id, count=len(items), history=items))


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


async def patch_memory(call: Call) -> Reply:
    """The changes are on disk (``updated``), or there was nothing to change."""
    body = call.json_object()
    fields = Fields(body)
    frames: list[bytes] = []
    reason = fields.required("reason")
    patch, redacted = await read_patch(call.state, call.path["id"], reason, fields, frames, trace_id=call.trace_id)
    done = await call.state.bus.ask_writer(
        ModifyMemory(
            patch=patch,
            principal=call.principal(body),
            read=read_scope_of(call, body),
            idempotency=call.idempotency(),
        ),
        trace_id=call.trace_id,
        frames=frames,
    )
    if done.status not in {"updated", "no_changes"}:
        return refusal(
            done.id,
            done.status,
            current_version=done.current_version,
            duplicate_memory_id=done.duplicate_memory_id,
        )
    return Reply(
        PatchReply(
            id=done.id,
            status="updated" if done.status == "updated" else "no_changes",
            current_version=_given(done.current_version),
            new_version=_given(done.new_version),
            content_changed=done.content_changed,
            embedded=done.embedded if done.content_changed else UNSET,
            redacted=True if redacted else UNSET,
        )
    )


async def read_patch(
    state: GatewayState,
    id: str,  # noqa: A002  the name in the message
    reason: str,
    fields: Fields,
    frames: list[bytes],
    *,
    trace_id: str,
    with_who: bool = False,
) -> tuple[MemoryPatch, bool]:
    """The patch that ``fields`` ask for, its new content embedded into ``frames``, and whether a secret was cut.

    Prefixes are content here: only an explicit remember reads them (decisions.md 39). Raises InvalidRequest.
    """
    if_version = fields.if_version()
    wanted = {
        "type": fields.memory_type(),
        "tags": fields.tags() if fields.has("tags") else None,
        "importance": fields.importance("importance"),
        "pinned": fields.flag("pinned"),
        "who": fields.text("who") if with_who else None,
    }
    changes: dict[str, Any] = {name: value for name, value in wanted.items() if value is not None}
    raw = fields.content()
    redacted = False
    if raw is not None:
        text = await stored_text(state, raw)
        if not text.content:
            raise InvalidRequest("content must be a non-empty string", field="content")
        (vector,) = await stored_vectors(state, [text.content], frames, trace_id=trace_id)
        changes |= {"content": text.content, "vector": vector}
        redacted = text.redacted
    if not changes:
        raise InvalidRequest("at least one of content, type, tags, importance, pinned is required")
    return MemoryPatch(id=id, reason=reason, if_version=if_version, **changes), redacted


async def delete_memory(call: Call) -> Reply:
    """The memory is a tombstone; ``reason``, ``force`` and ``if_version`` may stand in the body or in the query."""
    body = call.json_object(required=False)
    fields = Fields(body, call.query)
    done = await call.state.bus.ask_writer(
        ForgetMemory(
            id=call.path["id"],
            reason=fields.required("reason"),
            principal=call.principal(body),
            force=fields.flag("force") is True,
            if_version=fields.if_version(),
            read=read_scope_of(call, body),
            idempotency=call.idempotency(),
        ),
        trace_id=call.trace_id,
    )
    if done.status != "deleted":
        return refusal(done.id, done.status, current_version=done.current_version)
    return Reply(
        DeleteReply(id=done.id, current_version=_given(done.current_version), new_version=_given(done.new_version))
    )


async def recover_memory(call: Call) -> Reply:
    """The tombstone is live again."""
    body = call.json_object(required=False)
    fields = Fields(body, call.query)
    done = await call.state.bus.ask_writer(
        RecoverMemory(
            id=call.path["id"],
            reason=fields.required("reason"),
            principal=call.principal(body),
            if_version=fields.if_version(),
            read=read_scope_of(call, body),
            idempotency=call.idempotency(),
        ),
        trace_id=call.trace_id,
    )
    if done.status != "recovered":
        return refusal(
            done.id,
            done.status,
            current_version=done.current_version,
            duplicate_memory_id=done.duplicate_memory_id,
            days=done.retention_days,
        )
    return Reply(
        RecoverReply(
            id=done.id,
            retention_days=done.retention_days,
            current_version=_given(done.current_version),
            new_version=_given(done.new_version),
        )
    )


def _given(version: int | None) -> int | UnsetType:
    return UNSET if version is None else version


_REMEMBER_REPLIES: Final[Mapping[int, Any]] = {
    200: RememberReply | RememberChunksReply,
    409: Problem,
    413: Problem,
    504: Problem,
    507: Problem,
    **PROBLEMS,
}
_CHANGE_PROBLEMS: Final[Mapping[int, Any]] = {404: Refusal, 409: Refusal, 504: Problem, 507: Problem, **PROBLEMS}

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
            Parameter("deleted", "boolean", "true: tombstones instead of live memories"),
            *FILTER_PARAMETERS,
            *AGENT_PARAMETERS,
        ),
        replies={200: MemoryListReply, **PROBLEMS},
    ),
    Route(
        method="POST",
        path="/api/memory/remember",
        handler=remember,
        permission=Permission.REMEMBER,
        summary="Remember",
        tag="Memories",
        body=RememberRequest,
        replies=_REMEMBER_REPLIES,
        mutates=True,
        description="`critical: text` pins, `[a,b]: text` tags; fields of the body beat prefixes.",
    ),
    Route(
        method="POST",
        path="/api/memory/save",
        handler=remember,
        permission=Permission.REMEMBER,
        summary="Remember (alias)",
        tag="Memories",
        body=RememberRequest,
        replies=_REMEMBER_REPLIES,
        mutates=True,
    ),
    Route(
        method="POST",
        path="/api/hook/remember",
        handler=remember,
        permission=Permission.REMEMBER,
        summary="Remember (alias of a Claude Code skill)",
        tag="Memories",
        body=RememberRequest,
        replies=_REMEMBER_REPLIES,
        mutates=True,
    ),
    Route(
        method="GET",
        path="/api/memory/{id}",
        handler=get_memory,
        permission=Permission.RECALL,
        summary="Read a memory",
        tag="Memories",
        query=(Parameter("include_deleted", "boolean", "1 or true: also a tombstone"), *AGENT_PARAMETERS),
        replies={200: MemoryReply, 404: Problem, **PROBLEMS},
    ),
    Route(
        method="PATCH",
        path="/api/memory/{id}",
        handler=patch_memory,
        permission=Permission.MODIFY,
        summary="Change a memory",
        tag="Memories",
        body=PatchRequest,
        query=AGENT_PARAMETERS,
        replies={200: PatchReply, **_CHANGE_PROBLEMS},
        limit="modify",
        mutates=True,
    ),
    Route(
        method="DELETE",
        path="/api/memory/{id}",
        handler=delete_memory,
        permission=Permission.FORGET,
        summary="Forget a memory",
        tag="Memories",
        body=DeleteRequest,
        query=(Parameter("force", "boolean", "true: also a pinned memory"), *CHANGE_PARAMETERS),
        replies={200: DeleteReply, 403: Refusal, **_CHANGE_PROBLEMS},
        limit="forget",
        mutates=True,
        description="Soft delete; `reason` is required in the body or in the query.",
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
    Route(
        method="POST",
        path="/api/memory/{id}/recover",
        handler=recover_memory,
        permission=Permission.RECOVER,
        summary="Recover a forgotten memory",
        tag="Memories",
        body=RecoverRequest,
        query=CHANGE_PARAMETERS,
        replies={200: RecoverReply, **_CHANGE_PROBLEMS},
        mutates=True,
    ),
)
