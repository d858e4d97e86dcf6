"""Store oversized content as chunks, all or none, and recognise it when it is sent again.

A chunk row has ``source_type`` ``chunk`` and the id of its group as ``source_id``; with an idempotency key its own key
is ``<key>:chunk:<i>``. The group is an entity to which its chunks are linked. A row of ``chunk_groups`` holds the hash
of the whole text and the source that the caller named.

Source: memory-pipeline "Configuration Reference" (guardrails); docs/operations.md "Long texts".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from signet_actors.domain.extraction.injected_text import injected_parts
from signet_actors.domain.memories import CHUNK, COMPACTION, INTERNAL_SOURCE_TYPES
from signet_actors.domain.normalization import content_hash, normalized_content
from signet_actors.errors import CHUNK_EXISTS, Conflict
from signet_actors.protocol.writer import ChunksRemembered, NewMemory, RememberChunks, Remembered, Vector
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import agents
from signet_actors.store.writes import chunks as chunk_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes.chunks import GroupRow, MentionRow, Part
from signet_actors.writer.commands import memories, memory_changes

CHUNK_GROUP: Final = "chunk_group"
"""``entity_type`` of a group of chunks."""


def remember(context: CommandContext, command: RememberChunks) -> ChunksRemembered | Remembered:
    """Store every chunk as a row of one group, or return what the content duplicates.

    A duplicate has the same source id, else the same idempotency key, else the same text (unless the caller names
    another key). Raises ``Conflict`` with the documented texts; the caller's savepoint then undoes the inserts. A text
    that ``may_repeat`` others is stored although some of its chunks are stored already.
    """
    memory = command.memory
    found: ChunksRemembered | Remembered | None = by_source(context, memory) or memories.by_source(context, memory)
    if found is None and memory.idempotency_key is not None:
        found = _replay(context, command, memory.idempotency_key)
    if found is None:
        found = _group_of_same_text(context, command)
    known = () if found is None else (found.id,) if isinstance(found, Remembered) else found.ids
    memory_changes.replace_summary(context, memory, command.principal, known)
    if found is not None:
        first = None if memory.structured is None else memory_rows.by_id(context.tx, next(iter(known)))
        if first is not None:
            memories.state_again(context, first, memory)
        return found
    vectors: Sequence[Vector | None] = command.vectors or [None] * len(command.chunks)
    chunks = list(zip(command.chunks, vectors, strict=True))
    if command.may_repeat:
        chunks = _distinct_from_stored(context, memory, chunks)
    return _insert(context, command, chunks) if chunks else memories.of_same_text(context, memory)


def of_later_compaction(context: CommandContext, memory: NewMemory) -> ChunksRemembered | Remembered | None:
    """Return what holds the summary of a later compaction of the session, or is of the same request, live or deleted.

    Only a report that was sent late tells when the compaction was.
    """
    if memory.source_type != COMPACTION or memory.source_id is None:
        return None
    at, request = memory.created_at or "~", memory.idempotency_key or ""
    row = memory_rows.later_summary(context.tx, memory.agent_id, memory.source_id, at, request)
    if row is None or row.source_type != CHUNK or row.source_id is None:
        return row and memories.deduplicated(context, row, memory, content_hash(memory.content))
    live = [part.id for part in _parts(context, memory, row.source_id) if not part.is_deleted]
    return ChunksRemembered(ids=live or [row.id], group_id=row.source_id, deduped=True)


def by_source(context: CommandContext, memory: NewMemory) -> ChunksRemembered | None:
    """Return the live chunks of the long text that came from the memory's source."""
    if memory.source_id is None or memory.session_bound or memory.source_type in INTERNAL_SOURCE_TYPES:
        return None
    scope = memories.same_scope(memory)
    # Groups and their chunks are never left in the buffer, so this look-up needs no flush.
    for group_id in chunk_rows.groups_by_source(context.tx_for((CHUNK_GROUP,)), scope, memory.source_id):
        live = [part.id for part in _parts(context, memory, group_id) if not part.is_deleted]
        if live:
            return ChunksRemembered(ids=live, group_id=group_id, deduped=True)
    return None


def is_deleted(context: CommandContext, memory: NewMemory, digest: str) -> bool:
    """Return whether the long text was stored, by its source or as a whole, and none of its chunks is left."""
    scope, tx = memories.same_scope(memory), context.tx_for((CHUNK_GROUP,))
    groups = chunk_rows.groups_by_hash(tx, scope, digest)
    if memory.source_id is not None and not memory.session_bound:
        groups += chunk_rows.groups_by_source(tx, scope, memory.source_id)
    parts = [part for group in groups for part in _parts(context, memory, group)]
    return bool(groups) and all(memory_rows.is_forgotten(context.tx, part.id) for part in parts)


def hash_of(context: CommandContext, group_id: str) -> str | None:
    """Return the hash of a group's whole text; None for a group of an earlier release, which had none."""
    return chunk_rows.hash_of(context.tx, group_id)


def refuse_chunked_key(context: CommandContext, key: str, memory: NewMemory) -> None:
    """Raise ``Conflict`` if the key belongs to a chunked import: it cannot also name a small memory."""
    row = memories.by_idempotency_key(context, memory, f"{key}:chunk:0")
    if row is not None and not row.is_deleted:
        raise Conflict("idempotency key was already used for chunked content")


def _distinct_from_stored(
    context: CommandContext, memory: NewMemory, chunks: Iterable[tuple[str, Vector | None]]
) -> list[tuple[str, Vector | None]]:
    """Return the text in chunks of which none is stored, in text order; none if the whole text is one stored memory.

    As in ``distinct_chunks``, a chunk that is stored also takes the chunks after it until it differs, and if the text
    ends before that, the last chunks become one. Such a chunk has no vector yet.
    """
    text = memory.content
    distinct: dict[str, tuple[int, int, Vector | None]] = {}

    def is_new(digest: str) -> bool:
        return digest not in distinct and memories.live_by_hash(context, memory, digest) is None

    begin, end = None, 0
    for chunk, vector in chunks:
        context.heartbeat()
        first = text.index(chunk, end)
        end = first + len(chunk)
        is_joined, begin = begin is not None, first if begin is None else begin
        digest = content_hash(text[begin:end])
        if is_new(digest):
            distinct[digest] = begin, end, None if is_joined else vector
            begin = None
    while begin is not None and distinct:
        _, (begin, _, _) = distinct.popitem()
        digest = content_hash(text[begin:end])
        if is_new(digest):
            distinct[digest] = begin, end, None
            begin = None
    return [(text[begin:end], vector) for begin, end, vector in distinct.values()]


def _insert(
    context: CommandContext, command: RememberChunks, chunks: Sequence[tuple[str, Vector | None]]
) -> ChunksRemembered:
    memory, key = command.memory, command.memory.idempotency_key
    if memory.agent_id not in context.row_cache.agents:
        agents.register(context, memory.agent_id)
    group_id = _new_group(context, memory, len(chunks))
    ids: list[str] = []
    injected = injected_parts(memory.content, [text for text, _ in chunks])
    for index, (text, vector) in enumerate(chunks):
        context.heartbeat()
        part = msgspec.structs.replace(
            memory,
            content=text,
            source_type=CHUNK,
            source_id=group_id,
            idempotency_key=None if key is None else f"{key}:chunk:{index}",
            vector=vector,
            structured=memory.structured if index == 0 else None,
        )
        digest = content_hash(text)
        if memories.live_by_hash(context, part, digest) is not None:
            raise Conflict(CHUNK_EXISTS)
        metadata = {"groupId": group_id, "chunk": index, "chunks": len(chunks)}
        metadata |= {"sourceType": memory.source_type, "sourceId": memory.source_id}
        chunk_id = memories.insert(
            context, part, command.principal, digest, metadata=metadata, injected=injected[index]
        ).id
        context.insert_buffer.add(chunk_rows.MENTIONS, MentionRow(chunk_id, group_id, context.now))
        ids.append(chunk_id)
    context.insert_buffer.flush()
    return ChunksRemembered(ids=ids, group_id=group_id, deduped=False)


def _new_group(context: CommandContext, memory: NewMemory, chunks: int) -> str:
    group_id = context.new_id()
    group = GroupRow(
        id=group_id,
        agent_id=memory.agent_id,
        visibility=memory.visibility,
        project=memory.project,
        scope=memory.scope,
        content_hash=content_hash(memory.content),
        source_type=memory.source_type,
        source_id=None if memory.session_bound else memory.source_id,
        created_at=context.now,
    )
    name = f"chunk group {group_id}"
    chunk_rows.insert_group(context.tx, group, name=name, entity_type=CHUNK_GROUP, chunks=chunks)
    return group_id


def _replay(context: CommandContext, command: RememberChunks, key: str) -> ChunksRemembered | None:
    memory = command.memory
    small = memories.by_idempotency_key(context, memory, key)
    if small is not None and not small.is_deleted:
        raise Conflict("idempotency key was already used for non-chunk content")
    keyed = chunk_rows.parts_by_key(context.tx_for((CHUNK_GROUP,)), memories.same_scope(memory), key)
    live = [part for part in keyed if not part.is_deleted]
    if not live:
        for part in keyed:
            if part.key is not None:
                memories.release_key(context, part.seq, part.id, part.key, command.principal)
        return None
    group_id = keyed[0].group_id or ""
    known = chunk_rows.hash_of(context.tx, group_id)
    if known != content_hash(memory.content) if known is not None else not _same_letters(keyed, command.chunks):
        raise Conflict("idempotency key was already used for different chunked content")
    if len(live) < len(keyed):
        raise Conflict(
            "some chunks of this import were forgotten; recover them, or import under another idempotency key"
        )
    return ChunksRemembered(ids=[part.id for part in keyed], group_id=group_id, deduped=True)


def _group_of_same_text(context: CommandContext, command: RememberChunks) -> ChunksRemembered | None:
    """Return the group that holds the same text. Raises ``Conflict`` if the caller names another key for it."""
    memory = command.memory
    found = chunk_rows.groups_by_hash(context.tx, memories.same_scope(memory), content_hash(memory.content))
    groups: dict[str, None] = dict.fromkeys(found)
    # Groups of earlier releases have no hash; they are found by the hash of their first chunk.
    first = memories.live_by_hash(context, memory, content_hash(command.chunks[0]))
    if first is not None and first.source_type == CHUNK and first.source_id is not None:
        groups[first.source_id] = None
    for group_id in groups:
        if chunk_rows.hash_of(context.tx, group_id) not in (None, content_hash(memory.content)):
            continue  # only white space differs, which may be all that two commands differ in
        live = [part for part in _parts(context, memory, group_id) if not part.is_deleted]
        if _same_letters(live, command.chunks):
            if memory.idempotency_key is not None and not command.may_repeat:
                raise Conflict(CHUNK_EXISTS)
            return ChunksRemembered(ids=[part.id for part in live], group_id=group_id, deduped=True)
    return None


def _parts(context: CommandContext, memory: NewMemory, group_id: str) -> list[Part]:
    """Return the rows of a group in the memory's scope, in order of the text."""
    return chunk_rows.parts(context.tx_for((CHUNK_GROUP,)), memories.same_scope(memory), group_id)


def _same_letters(parts: Iterable[Part], chunks: Iterable[str]) -> bool:
    """Return whether the parts hold the text of ``chunks``, wherever it was cut; normalized texts are compared."""
    return _letters(part.content for part in parts) == _letters(chunks)


def _letters(texts: Iterable[str]) -> str:
    return "".join(normalized_content("\n".join(texts)).split())
