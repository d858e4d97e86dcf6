"""Remember over HTTP: a text becomes one memory, or chunks if it is long (docs/decisions.md 4, 23, 26, 30, 31, 33)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET

from signet_actors.domain.memories import DEFAULT_IMPORTANCE, importance_to_store
from signet_actors.domain.transcripts.turns import TranscriptTooLong
from signet_actors.errors import InvalidRequest, OutcomeUnknown, SignetError
from signet_actors.gateway import ingest
from signet_actors.gateway.http.responses import fill, joined_tags
from signet_actors.gateway.http.route import Call, HttpResponse, Route, serve
from signet_actors.gateway.sessions.hook_runner import REQUEST_SHARE
from signet_actors.gateway.transcript_capture import Capture, capture_for, store_capture
from signet_actors.gateway.transcript_files import TranscriptRefused
from signet_actors.gateway.vector_waits import wait_stored
from signet_actors.operations import remember as api
from signet_actors.operations.field_types import MAX_NAME_CHARS
from signet_actors.operations.transcripts import session_key
from signet_actors.protocol import writer as messages
from signet_actors.protocol.memories import Filters
from signet_actors.protocol.searcher import Recall
from signet_actors.protocol.transcripts import ListPastSessions

ASKS_FOR_SIMILAR: Final = ("agent", "operator")
"""Callers that can replace a memory: the memory tools and the command line say that they are one of these."""
MOST_SIMILAR: Final = 3
SIMILAR_QUERY_CHARS: Final = 1000
LONG_CHARS: Final = 400
"""Not every word of a longer text has to be in a similar one."""
SIMILAR_CHARS: Final = 500
SIMILAR_POOL: Final = 20
SIMILAR_WAIT_S: Final = 0.25
"""From the beginning of the write on; without them the reply says the same."""
ANSWERS: Final = 0.5
"""The relevance from which on a memory is about the same."""


async def remember(call: Call[api.RememberRequest]) -> HttpResponse:
    """Store the memory durably before replying; store an oversized one as chunks, all or none."""
    await name_project(call)
    text = await ingest.prepare_remembered_text(call.state, call.request.content, prefixes=call.request.prefixes)
    session = None if call.request.transcript is None else session_key(call.request.source_id or "")
    with call.state.transcript_readers.capturing(call.agent_id, session):
        found = await _captured(call)
        if found is not None:
            call.redactions = (*call.redactions, *found.kinds)
        stored = await store_text(call, text)
        await note_remembered(call, stored)
        if found is not None:
            await _store_transcript(call, found)
    return HttpResponse(stored)


async def name_project(call: Call[Any]) -> None:
    """Give a memory whose request says nothing of a project that of the caller's session, if it is known.

    A blank project says that there is none. Raises SignetError.
    """
    if call.body.get("project") is None and call.session_key is not None and await call.is_owner():
        context = await call.state.ledger.context(call.session_key, call.agent_id, trace_id=call.trace_id)
        project = await call.state.projects.to_keep(context.began_in or context.project)
        call.request = msgspec.structs.replace(call.request, project=project)


async def _captured(call: Call[api.RememberRequest]) -> Capture | None:
    """Return the transcript that is to be stored with the memory; None, with a warning, if it cannot be."""
    request = call.request
    if request.transcript is None:
        return None
    if not request.source_id or len(session_key(request.source_id)) > MAX_NAME_CHARS:
        call.warnings.append("transcript is not stored, because sourceId names no session")
        return None
    if not await call.is_owner():
        return None
    raw = request.transcript.encode("utf-8", "replace")
    try:
        seconds = REQUEST_SHARE * call.state.config.gateway.request_timeout_ms / 1000
        return await call.state.transcript_readers.run(lambda check: capture_for(call, raw, check), hash(raw), seconds)
    except (TranscriptTooLong, TranscriptRefused) as error:
        call.warnings.append(f"transcript: {error}")
        return None


async def _store_transcript(call: Call[api.RememberRequest], found: Capture) -> None:
    """Store the transcript of the session after the memory. Raises OutcomeUnknown; a retry stores the rest.

    Source: memory-pipeline.txt "Lossless Session Transcripts".
    """
    request = call.request
    if found.is_off or call.state.ledger.is_bypassed(session_key(request.source_id or "")):
        call.warnings.append("transcript is not stored, because memory is switched off in this session")
        return
    assert request.source_id is not None, "the transcript was captured for it"
    try:
        added = await store_capture(
            call,
            found,
            session_key(request.source_id),
            harness=None,
            project=request.project,
            captured_at=request.created_at,
        )
    except SignetError as error:
        raise OutcomeUnknown(f"the memory is stored, its transcript is not ({error.detail}); retry") from error
    if added is None:
        call.warnings.append("transcript is not stored, because that of this session was forgotten")


async def note_remembered(call: Call[Any], stored: api.RememberReply | api.RememberChunksReply) -> None:
    """Note for the next checkpoint of the caller's session what it stored."""
    ids = stored.ids if isinstance(stored, api.RememberChunksReply) else [stored.id]
    if call.session_key is not None and await call.is_owner():
        call.state.checkpoints.remembered(call.session_key, call.agent_id, ids)


async def store_text(
    call: Call[api.RememberRequest], text: ingest.PreparedMemory, *, may_repeat: bool = False
) -> api.RememberReply | api.RememberChunksReply:
    """Store the prepared text with the fields of the request; an oversized one as chunks. Raises SignetError.

    ``may_repeat``: a long text is stored although a part of it is stored already.
    """
    state = call.state
    state.note_tool(call.headers)
    if not text.content:
        raise InvalidRequest("content is required", field="content")
    memory = _new_memory(call, text)
    redaction = ingest.redaction_fields(text.redactions + call.redactions)
    if text.chunks:
        return await _remember_chunks(call, memory, text.chunks, redaction, may_repeat=may_repeat)
    frames: list[bytes] = []
    (vector,) = await ingest.embed_texts(state, [text.content], frames, trace_id=call.trace_id)
    wanted = call.request.similar
    if wanted is None:
        wanted = call.headers.get("x-signet-actor-type", "").strip().lower() in ASKS_FOR_SIMILAR
    similar = asyncio.ensure_future(_similar(call, text.content, vector, frames)) if wanted else None
    try:
        stored = await call.ask_writer(
            messages.Remember(
                memory=msgspec.structs.replace(memory, vector=vector),
                principal=call.principal,
            ),
            frames=frames,
        )
        reply = await _remember_reply(call, stored, redaction)
        await _warn_of_unknown_project(call)
        if similar is None or not isinstance(reply, api.RememberReply) or reply.deduped:
            return reply
        found = [row for row in await similar if row.id != reply.id][:MOST_SIMILAR]
        return msgspec.structs.replace(reply, similar=found or UNSET)
    finally:
        if similar is not None:
            similar.cancel()


async def _warn_of_unknown_project(call: Call[api.RememberRequest]) -> None:
    """Tell an agent that no session has run in a directory of the name that it gives as the project."""
    project = call.request.project
    is_agent = call.headers.get("x-signet-actor-type", "").strip().lower() == "agent"
    if not is_agent or not project or "/" in project or not await call.is_owner():
        return
    with contextlib.suppress(SignetError, TimeoutError):
        async with asyncio.timeout(SIMILAR_WAIT_S):
            found = await call.ask_searcher(ListPastSessions(call.read, 1, 1, project=project))
        if not found.sessions:
            call.warnings.append(
                f"No session has run in a directory named {project} yet; only those in such a directory see the memory."
            )


async def _similar(
    call: Call[api.RememberRequest], content: str, vector: messages.Vector | None, frames: Sequence[bytes]
) -> list[api.SimilarMemory]:
    """Return memories about the same, best first; none if a searcher does not answer in time."""
    request, config = call.request, call.state.config
    query = Recall(
        query=content[:SIMILAR_QUERY_CHARS],
        read=call.read,
        filters=Filters(
            project=request.project,
            former_project=call.former_project,
            or_no_project=request.project is not None,
            no_project=request.project is None,
        ),
        limit=MOST_SIMILAR + 1,
        fusion=config.search.fusion,
        alpha=config.search.alpha,
        pool=SIMILAR_POOL,
        min_relevance=ANSWERS,
        vector_model=None if vector is None else vector.model,
        common_words_version=None,
        content_chars=SIMILAR_CHARS,
        context=False,
        priors=False,
        episode_order=False,
        is_part=len(content) > LONG_CHARS,
    )
    try:
        async with asyncio.timeout(SIMILAR_WAIT_S):
            found = await call.ask_searcher(query, frames=[] if vector is None else [frames[vector.frame]])
    except (SignetError, TimeoutError):
        return []
    return [api.SimilarMemory(row.id, row.content, row.created_at, row.relevance) for row in found.rows]


async def _remember_reply(
    call: Call[Any], stored: messages.Remembered | messages.ChunksRemembered, redaction: dict[str, Any]
) -> api.RememberReply | api.RememberChunksReply:
    """Return the reply for what is stored; a duplicate source may be in the other form (single or chunked)."""
    if isinstance(stored, messages.ChunksRemembered):
        return api.RememberChunksReply(
            chunk_count=len(stored.ids),
            ids=stored.ids,
            group_id=stored.group_id,
            deduped=True if stored.deduped else UNSET,
            **redaction,
        )
    embedded = stored.embedded
    if not embedded and not stored.deduped:
        # Skip a duplicate: it is not known here whether the existing memory still has an embedding job to wait for.
        embedded = stored.id in await wait_stored(call, {stored.id: stored.version})
    return fill(api.RememberReply, stored, tags=joined_tags(stored.tags), embedded=embedded, **redaction)


async def _remember_chunks(
    call: Call[api.RememberRequest],
    memory: messages.NewMemory,
    chunks: tuple[str, ...],
    redaction: dict[str, Any],
    *,
    may_repeat: bool,
) -> api.RememberReply | api.RememberChunksReply:
    state = call.state
    frames: list[bytes] = []
    vectors = [v for v in await ingest.embed_texts(state, chunks, frames, trace_id=call.trace_id) if v is not None]
    if len(vectors) != len(chunks):
        # Store a vector for each chunk or for none, so that all chunks of a text are found in the same way.
        vectors, frames = [], []
    async with state.chunk_writes.slot(len(chunks)):
        stored = await call.ask_writer(
            messages.RememberChunks(
                memory=memory,
                chunks=chunks,
                vectors=tuple(vectors),
                principal=call.principal,
                may_repeat=may_repeat,
            ),
            frames=frames,
        )
    return await _remember_reply(call, stored, redaction)


def _new_memory(call: Call[api.RememberRequest], text: ingest.PreparedMemory) -> messages.NewMemory:
    """Return the memory without its vector. Fields of the body take precedence over prefixes of the text."""
    fields = call.request
    # The metadata object of an importer is used only for fields that the body lacks.
    metadata = fields.metadata or api.ProvenanceFields()
    return messages.NewMemory(
        content=text.content,
        type=fields.type or text.type,
        type_named=fields.type is not None,
        # The prefix implies pinned and importance 1; ``pinned: false`` in the body overrides only the pin.
        importance=importance_to_store(
            fields.importance, pinned=text.pinned or fields.pinned, otherwise=DEFAULT_IMPORTANCE
        ),
        tags=text.tags if fields.tags is None else fields.tags,
        pinned=text.pinned if fields.pinned is None else fields.pinned,
        who=fields.who or "daemon",
        project=fields.project,
        scope=fields.scope,
        agent_id=call.agent_id,
        visibility=fields.visibility,
        source_type=fields.source_type or "manual",
        source_id=fields.source_id,
        source_path=fields.source_path or metadata.source_path,
        runtime_path=fields.runtime_path or metadata.runtime_path,
        idempotency_key=fields.idempotency_key or metadata.idempotency_key,
        session_bound=fields.transcript is not None,
        created_at=fields.created_at,
        temporal=_temporal_edges(fields),
        structured=fields.structured,
    )


def _temporal_edges(fields: api.RememberRequest) -> tuple[messages.TemporalEdge, ...]:
    """Return the explicit times of a memory. Source: memory-api.txt "POST /api/memory/remember"."""
    moments = (
        ("occurred", fields.occurred_at),
        ("observed", fields.observed_at),
        ("source", fields.source_created_at),
    )
    edges = [
        messages.TemporalEdge(facet=facet, start=moment, end=moment) for facet, moment in moments if moment is not None
    ]
    start, end = fields.valid_from, fields.valid_until
    if start is not None and end is not None and end <= start:
        raise InvalidRequest("validUntil must be after validFrom", field="validUntil")
    if start is not None or end is not None:
        edges.append(messages.TemporalEdge(facet="valid", start=start, end=end))
    return tuple(edges)


ROUTES: tuple[Route, ...] = serve(api.REMEMBER, remember)
