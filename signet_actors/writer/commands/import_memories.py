"""Import many memories in one commit; each line is stored, recognised as a duplicate or refused on its own.

Source: docs/performance.md "Write targets" (bulk import); docs/decisions.md 3-5.
"""

from __future__ import annotations

from signet_actors.errors import SignetError
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import ImportLine, ImportMemories, LineRefused, MemoriesImported, RememberChunks
from signet_actors.writer.command_context import CommandContext
from signet_actors.writer.commands import chunks, memories


def import_memories(context: CommandContext, command: ImportMemories) -> MemoriesImported:
    """Import each line; a refused line leaves nothing behind."""
    context.frames = _vectors(context.frames[0], command.dimensions) if context.frames else ()
    imported = deduped = 0
    refused: list[LineRefused] = []
    for line in command.lines:
        context.heartbeat()
        try:
            if _store(context, line, command.principal):
                deduped += 1
            else:
                imported += 1
        except SignetError as error:
            refused.append(LineRefused(line.line, error.code, error.detail, error.field))
    return MemoriesImported(imported=imported, deduped=deduped, refused=refused, receipt=context.new_id())


def _store(context: CommandContext, line: ImportLine, principal: Principal) -> bool:
    """Store the line; return True if the memory was there already."""
    memory = line.memory
    if line.chunks:
        return _store_parts(context, line, principal)
    if chunks.by_source(context, memory) is not None:
        return True
    if memory.idempotency_key is not None:
        chunks.refuse_chunked_key(context, memory.idempotency_key, memory)
    return memories.remember(context, memory, principal, line).deduped


def _store_parts(context: CommandContext, line: ImportLine, principal: Principal) -> bool:
    """Store all chunks of the line or none: only this kind of line can be refused after it has written."""
    command = RememberChunks(memory=line.memory, chunks=line.chunks, vectors=line.vectors, principal=principal)
    with context.tx.savepoint():
        try:
            parts = chunks.remember(context, command)
            context.insert_buffer.flush()
        except BaseException:
            context.insert_buffer.discard()
            context.row_cache.clear()
            raise
    return parts.deduped


def _vectors(raw: bytes, dimensions: int) -> list[bytes]:
    """Split the one frame into a frame per vector; return none if its length does not fit."""
    size = 4 * dimensions
    if size <= 0 or len(raw) % size:
        return []
    return [raw[begin : begin + size] for begin in range(0, len(raw), size)]
