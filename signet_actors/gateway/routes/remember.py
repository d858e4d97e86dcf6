"""Remember over HTTP, under each of its three paths: one text becomes one memory, or its chunks.

Source: memory-api.txt "Memories"; wire.md 1.2; decisions.md 4, 23, 26, 30, 31, 33.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from signet_actors.domain.chunking import chunk_by_sentence
from signet_actors.domain.memories import CRITICAL_IMPORTANCE, DEFAULT_IMPORTANCE, infer_type, parse_prefixes
from signet_actors.domain.normalization import content_hash
from signet_actors.domain.permissions import Permission
from signet_actors.errors import ErrorCode, InvalidRequest
from signet_actors.gateway.fields import MAX_TEXT_CHARS, Fields, agent_of, joined_tags
from signet_actors.gateway.route import Call, Reply, Route
from signet_actors.gateway.routes.memories import PROBLEMS
from signet_actors.gateway.stored_text import StoredText, stored_text, stored_vectors
from signet_actors.protocol.http.memories import RememberChunksReply, RememberReply, RememberRequest
from signet_actors.protocol.http.problem import Problem
from signet_actors.protocol.writer import NewMemory, Remember, RememberChunks

MAX_CHUNKS: Final = 4000
"""Chunks of one content; with their vectors they are one message of some 6 MB and one transaction."""


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


_REMEMBER_REPLIES: Final[Mapping[int, Any]] = {
    200: RememberReply | RememberChunksReply,
    409: Problem,
    413: Problem,
    504: Problem,
    507: Problem,
    **PROBLEMS,
}

ROUTES: tuple[Route, ...] = (
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
)
