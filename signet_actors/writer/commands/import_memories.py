"""Import: many memories in one commit, each stored, recognised or refused by itself.

Source: docs/performance.md "Write targets" (bulk import); docs/decisions.md 3-5.
"""

from __future__ import annotations

from signet_actors.errors import SignetError
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import ImportLine, ImportMemories, LineRefused, MemoriesImported, RememberChunks
from signet_actors.writer.command_context import Session
from signet_actors.writer.commands import chunks, memories


def import_memories(session: Session, command: ImportMemories) -> MemoriesImported:
    """Each line is a memory, the one that it repeats, or refused with nothing of it applied."""
    session.frames = _vectors(session.frames[0], command.dimensions) if session.frames else ()
    imported = deduped = 0
    refused: list[LineRefused] = []
    for line in command.lines:
        try:
            if _store(session, line, command.principal):
                deduped += 1
            else:
                imported += 1
        except SignetError as error:
            refused.append(LineRefused(line.line, error.code, error.detail, error.field))
    return MemoriesImported(imported=imported, deduped=deduped, refused=refused)


def _store(session: Session, line: ImportLine, principal: Principal) -> bool:
    """The line is stored; True when it was there already."""
    memory = line.memory
    if line.chunks:
        return _store_parts(session, line, principal)
    if chunks.by_source(session, memory) is not None:
        return True
    if memory.idempotency_key is not None:
        chunks.refuse_chunked_key(session, memory.idempotency_key, memory)
    return memories.remember_one(session, memory, principal, line).deduped


def _store_parts(session: Session, line: ImportLine, principal: Principal) -> bool:
    """All of its parts are stored or none: the one kind of line that may be refused after it has written."""
    command = RememberChunks(memory=line.memory, chunks=line.chunks, vectors=line.vectors, principal=principal)
    with session.tx.savepoint():
        try:
            parts = chunks.remember(session, command)
            session.new_rows.flush()
        except BaseException:
            session.new_rows.discard()
            session.known.forget()
            raise
    return parts.deduped


def _vectors(raw: bytes, dimensions: int) -> list[bytes]:
    """The one frame as a frame for each vector; none where its length makes no sense."""
    size = 4 * dimensions
    if size <= 0 or len(raw) % size:
        return []
    return [raw[begin : begin + size] for begin in range(0, len(raw), size)]
