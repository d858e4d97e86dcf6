"""Import many memories in one commit; each line is stored, recognised as a duplicate or refused on its own.

Source: docs/performance.md "Write targets" (bulk import); docs/decisions.md 3-5.
"""

from __future__ import annotations

from typing import NamedTuple

from signet_actors.domain.normalization import content_hash
from signet_actors.errors import SignetError
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import (
    ChunksRemembered,
    ImportLine,
    ImportMemories,
    LineRefused,
    MemoriesImported,
    NewMemory,
    RememberChunks,
    Remembered,
)
from signet_actors.store.writes import memories as memory_rows
from signet_actors.writer.command_context import CommandContext
from signet_actors.writer.commands import chunks, memories


class _Stored(NamedTuple):
    """What a line became: so many new ``rows``, or none if ``id`` was there already, perhaps with another text."""

    rows: int
    id: str
    differs: bool = False


def import_memories(context: CommandContext, command: ImportMemories) -> MemoriesImported:
    """Import each line; a refused line leaves nothing behind."""
    context.frames = _vectors(context.frames[0], command.dimensions) if context.frames else ()
    imported = deduped = rows = forgotten = 0
    refused: list[LineRefused] = []
    differing: list[tuple[int, str]] = []
    for line in command.lines:
        context.heartbeat()
        if not command.restore and _is_forgotten(context, line):
            forgotten += 1
            continue
        try:
            stored = _store(context, line, command.principal)
        except SignetError as error:
            refused.append(LineRefused(line.line, error.code, error.detail, error.field))
            continue
        rows += stored.rows
        imported += stored.rows > 0
        deduped += stored.rows == 0
        if stored.differs:
            differing.append((line.line, stored.id))
    return MemoriesImported(
        imported=imported,
        deduped=deduped,
        refused=refused,
        receipt=context.new_id(),
        memories=rows,
        differing=differing,
        forgotten=forgotten,
    )


def _is_forgotten(context: CommandContext, line: ImportLine) -> bool:
    """Return whether the memory of the line was deleted here, and not stored again since.

    It is known by its id as long as its history is kept; else by its source or content as long as the deleted row is.
    """
    memory, digest = line.memory, content_hash(line.memory.content)
    scope = memories.same_scope(memory)
    if line.id is not None:
        tx = context.tx_for(("id", line.id))
        is_deleted = memory_rows.id_was_used(tx, line.id) and not memory_rows.exists_live(tx, line.id)
    else:
        by_source = memory.source_id is not None and not memory.session_bound
        is_deleted = (
            memory_rows.is_content_deleted(context.tx, scope, digest)
            or (by_source and memory_rows.is_source_deleted(context.tx, scope, str(memory.source_id)))
            or (bool(line.chunks) and chunks.is_deleted(context, memory, digest))
        )
    if not is_deleted or memories.live_by_hash(context, memory, digest) is not None:
        return False
    return memories.row_of_source(context, memory) is None and chunks.by_source(context, memory) is None


def _store(context: CommandContext, line: ImportLine, principal: Principal) -> _Stored:
    """Store the line as one memory or as chunks, or find what it repeats."""
    memory = line.memory
    if line.chunks:
        return _outcome(context, memory, _store_parts(context, line, principal))
    group = chunks.by_source(context, memory)
    if group is not None:
        return _outcome(context, memory, group)
    if memory.idempotency_key is not None:
        chunks.refuse_chunked_key(context, memory.idempotency_key, memory)
    return _outcome(context, memory, memories.remember(context, memory, principal, line))


def _outcome(context: CommandContext, memory: NewMemory, stored: Remembered | ChunksRemembered) -> _Stored:
    first, count = (stored.id, 1) if isinstance(stored, Remembered) else (stored.ids[0], len(stored.ids))
    if not stored.deduped:
        return _Stored(count, first)
    known = content_hash(stored.content) if isinstance(stored, Remembered) else chunks.hash_of(context, stored.group_id)
    return _Stored(0, first, known is not None and known != content_hash(memory.content))


def _store_parts(context: CommandContext, line: ImportLine, principal: Principal) -> Remembered | ChunksRemembered:
    """Store all chunks of the line or none: only this kind of line can be refused after it has written."""
    command = RememberChunks(
        memory=line.memory, chunks=line.chunks, vectors=line.vectors, principal=principal, may_repeat=True
    )
    with context.tx.savepoint():
        try:
            parts = chunks.remember(context, command)
            context.insert_buffer.flush()
        except BaseException:
            context.insert_buffer.discard()
            context.row_cache.clear()
            raise
    return parts


def _vectors(raw: bytes, dimensions: int) -> list[bytes]:
    """Split the one frame into a frame per vector; return none if its length does not fit."""
    size = 4 * dimensions
    if size <= 0 or len(raw) % size:
        return []
    return [raw[begin : begin + size] for begin in range(0, len(raw), size)]
