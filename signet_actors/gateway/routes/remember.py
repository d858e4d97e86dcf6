"""Remember over HTTP, on each of its three paths: a text becomes one memory, or several chunks if it is too long.

Source: memory-api.txt "Memories"; docs/compatibility.md "Remember", "Oversized content"; docs/decisions.md 4, 23, 26,
30, 31, 33.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET

from signet_actors.domain.memories import DEFAULT_IMPORTANCE, importance_to_store
from signet_actors.domain.permissions import Permission
from signet_actors.errors import InvalidRequest
from signet_actors.gateway.http.request_reader import RequestReader, joined_tags
from signet_actors.gateway.http.route import HttpRequest, HttpResponse, Route
from signet_actors.gateway.ingest import FieldRedactor, PreparedMemory, embed_texts, prepare_remembered_text
from signet_actors.gateway.redaction import RedactionFields, redaction_fields
from signet_actors.gateway.routes.memories import PROBLEMS
from signet_actors.operations.field_types import MAX_TEXT_CHARS
from signet_actors.operations.problem import Problem
from signet_actors.operations.remember import RememberChunksReply, RememberReply, RememberRequest
from signet_actors.protocol.writer import ChunksRemembered, NewMemory, Remember, RememberChunks, Remembered


async def remember(request: HttpRequest) -> HttpResponse:
    """Store the memory durably before replying; store an oversized one as chunks, all or none."""
    state = request.state
    body = request.json_object()
    fields = RequestReader(body)
    raw = fields.content()
    if raw is None:
        raise InvalidRequest("content is required", field="content")
    text = await prepare_remembered_text(state, raw)
    redactor = FieldRedactor(state)
    memory = _new_memory(request, body, fields, text, redactor)
    if not text.content:
        raise InvalidRequest("content is required", field="content")
    redaction = redaction_fields(text.redactions + redactor.redactions)
    if text.chunks:
        return await _remember_chunks(request, body, memory, text.chunks, redaction)
    frames: list[bytes] = []
    (vector,) = await embed_texts(state, [text.content], frames, trace_id=request.trace_id)
    stored = await state.bus.ask_writer(
        Remember(
            memory=msgspec.structs.replace(memory, vector=vector),
            principal=FieldRedactor(state).principal(request.principal(body)),
            idempotency=request.idempotency(body),
        ),
        trace_id=request.trace_id,
        frames=frames,
    )
    return await _remember_reply(request, stored, redaction)


async def _remember_reply(
    request: HttpRequest, stored: Remembered | ChunksRemembered, redaction: RedactionFields
) -> HttpResponse:
    """Return the reply for what is stored.

    A duplicate source may have been stored in the other form (single or chunked) before.
    """
    if isinstance(stored, ChunksRemembered):
        return HttpResponse(
            RememberChunksReply(
                chunk_count=len(stored.ids),
                ids=stored.ids,
                group_id=stored.group_id,
                deduped=True if stored.deduped else UNSET,
                redacted=redaction.redacted,
                redactions=redaction.redactions,
            )
        )
    embedded = stored.embedded
    if not embedded and not stored.deduped:
        # Skip a duplicate: it is not known here whether the existing memory still has an embedding job to wait for.
        embedded = stored.id in await request.state.vector_waits.wait_stored(request, {stored.id: stored.version})
    return HttpResponse(
        RememberReply(
            id=stored.id,
            type=stored.type,
            tags=joined_tags(stored.tags),
            pinned=stored.pinned,
            importance=stored.importance,
            content=stored.content,
            embedded=embedded,
            deduped=stored.deduped,
            redacted=redaction.redacted,
            redactions=redaction.redactions,
        )
    )


async def _remember_chunks(
    request: HttpRequest,
    body: Mapping[str, Any],
    memory: NewMemory,
    chunks: tuple[str, ...],
    redaction: RedactionFields,
) -> HttpResponse:
    state = request.state
    frames: list[bytes] = []
    vectors = [v for v in await embed_texts(state, chunks, frames, trace_id=request.trace_id) if v is not None]
    if len(vectors) != len(chunks):
        # Store a vector for each chunk or for none, so that all chunks of a text are found in the same way.
        vectors, frames = [], []
    async with state.chunk_writes.slot(len(chunks)):
        stored = await state.bus.ask_writer(
            RememberChunks(
                memory=memory,
                chunks=chunks,
                vectors=tuple(vectors),
                principal=FieldRedactor(state).principal(request.principal(body)),
                idempotency=request.idempotency(body),
            ),
            trace_id=request.trace_id,
            frames=frames,
        )
    return await _remember_reply(request, stored, redaction)


def _new_memory(
    request: HttpRequest, body: Mapping[str, Any], fields: RequestReader, text: PreparedMemory, redactor: FieldRedactor
) -> NewMemory:
    """Return the memory without its vector. Body fields take precedence over prefixes of the text."""
    _, metadata = fields.find("metadata")
    if metadata is not None and not isinstance(metadata, dict):
        raise InvalidRequest("metadata must be an object", field="metadata")
    if not isinstance(fields.find("structured")[1], dict | None):
        raise InvalidRequest("structured must be an object", field="structured")
    # The metadata object of an importer is used only for fields that the body lacks; both spellings are accepted.
    provenance = RequestReader(body, metadata) if metadata else fields
    pinned = fields.flag("pinned")
    key = provenance.text("idempotencyKey", "idempotency_key", max_chars=MAX_TEXT_CHARS)
    if key is not None and redactor.clean(key) != key:
        # Different keys must stay different: replace a key that holds a secret by its digest.
        key = f"redacted-{hashlib.sha256(key.encode()).hexdigest()}"
    return NewMemory(
        content=text.content,
        type=redactor.type_name(fields.memory_type()) or text.type,
        # The prefix implies pinned and importance 1; ``pinned: false`` in the body overrides only the pin.
        importance=importance_to_store(
            fields.importance("importance"), pinned=text.pinned or pinned, otherwise=DEFAULT_IMPORTANCE
        ),
        tags=redactor.tags(fields.tags() if fields.find("tags")[1] is not None else text.tags),
        pinned=text.pinned if pinned is None else pinned,
        who=redactor.clean(fields.text("who") or "daemon"),
        project=redactor.optional(fields.text("project")),
        scope=redactor.scope(fields.text("scope")),
        agent_id=redactor.identifier(request.agent_id(body), "agentId"),
        visibility=fields.visibility(),
        source_type=redactor.clean(fields.text("sourceType", "source_type") or "manual"),
        source_id=redactor.optional(fields.text("sourceId", "source_id", max_chars=MAX_TEXT_CHARS)),
        source_path=redactor.optional(provenance.text("sourcePath", "source_path", max_chars=MAX_TEXT_CHARS)),
        runtime_path=redactor.optional(provenance.text("runtimePath", "runtime_path", max_chars=MAX_TEXT_CHARS)),
        idempotency_key=key,
        session_bound=fields.has_text("transcript"),
        created_at=fields.past_timestamp("createdAt", "created_at", now_ms=request.state.clock.wall_ms()),
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
        description="`critical: text` pins the memory, `[a,b]: text` sets tags; body fields override these prefixes.",
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
