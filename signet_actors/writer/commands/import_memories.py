"""Import many memories in one commit; each line is stored, recognised as a duplicate or refused on its own.

Source: docs/performance.md "Write targets" (bulk import); docs/decisions.md 3-5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from signet_actors.domain.normalization import content_hash
from signet_actors.domain.said_again import says_no_more, statement_of, without_forgotten
from signet_actors.errors import Conflict, SignetError
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import (
    ChunksRemembered,
    ForgetMemory,
    ImportLine,
    ImportMemories,
    LineRefused,
    MemoriesImported,
    NewMemory,
    RememberChunks,
    Remembered,
)
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import agents
from signet_actors.store.writes import memories as memory_rows
from signet_actors.writer.commands import chunks, memories, memory_changes


class _Stored(NamedTuple):
    """The rows that a line became; if it is ``deduped``, that were there already, perhaps with another text."""

    ids: Sequence[str]
    deduped: bool
    differs: bool = False


def import_memories(context: CommandContext, command: ImportMemories) -> MemoriesImported:
    """Import each line; a refused line leaves nothing behind."""
    context.frames = _vectors(context.frames[0], command.dimensions) if context.frames else ()
    imported = deduped = rows = forgotten = superseded = 0
    refused: list[LineRefused] = []
    differing: list[tuple[int, str]] = []
    for given in command.lines:
        context.heartbeat()
        try:
            agents.refuse_archived(context, given.memory.agent_id)
        except Conflict as error:
            refused.append(LineRefused(given.line, error.code, error.detail))
            continue
        line = given if command.restore else _without_forgotten(context, given)
        if line is None:
            forgotten += 1
            continue
        try:
            stored = _store(context, line, command.principal)
        except SignetError as error:
            refused.append(LineRefused(line.line, error.code, error.detail, error.field))
            continue
        rows += 0 if stored.deduped else len(stored.ids)
        imported += not stored.deduped
        deduped += stored.deduped
        if stored.differs:
            differing.append((line.line, stored.ids[0]))
        replaced, kept = _supersede(context, line, stored.ids, command.principal)
        superseded += replaced
        differing += [(line.line, memory_id) for memory_id in kept]
    return MemoriesImported(
        imported=imported,
        deduped=deduped,
        refused=refused,
        receipt=context.new_id(),
        memories=rows,
        differing=differing,
        forgotten=forgotten,
        superseded=superseded,
    )


def _supersede(
    context: CommandContext, line: ImportLine, stored: Sequence[str], principal: Principal
) -> tuple[int, list[str]]:
    """Delete the memories with the former text of the line; return how many, and those that are kept.

    What was changed or pinned here is kept, and all if there are several former texts: it is not known whose the new
    one is.
    """
    if line.supersedes is None:
        return 0, []
    tx = context.tx_for(("supersedes", line.supersedes))  # the rows of this import are not looked for
    found = memory_rows.with_former_text(tx, *_former(line, line.supersedes))
    if len({row.text for row in found}) != 1:
        return 0, []
    former = [row for row in found if row.id not in stored]
    kept = [row.id for row in former if row.version > 1 or row.pinned]
    for row in former:
        if row.id not in kept:
            read = ReadScope(line.memory.agent_id)
            command = ForgetMemory(row.id, memory_rows.SUPERSEDED, principal, read=read)
            memory_changes.forget(context, command)
    return len(former) - len(kept), kept


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
    is_deleted = is_deleted or _says_forgotten(context, line)
    if not is_deleted or memories.live_by_hash(context, memory, digest) is not None:
        return False
    return memories.row_of_source(context, memory) is None and chunks.by_source(context, memory) is None


def _says_forgotten(context: CommandContext, line: ImportLine) -> bool:
    """Return whether the line says hardly more than a former text of it that was deleted here, the last one it had.

    A long line is compared by its sentences (``_without_forgotten``).
    """
    if line.supersedes is None or line.chunks:
        return False
    tx = context.tx_for(("supersedes", line.supersedes))
    forgotten = memory_rows.forgotten_texts(tx, *_former(line, line.supersedes))
    if not forgotten or memory_rows.with_former_text(tx, *_former(line, line.supersedes)):
        return False
    return any(says_no_more(line.memory.content, statement_of(text)) for text in forgotten)


def _without_forgotten(context: CommandContext, line: ImportLine) -> ImportLine | None:
    """Return the line without what was deleted here of a former text of it; None if nothing is left.

    Then its chunks have no vectors yet.
    """
    if _is_forgotten(context, line):
        return None
    if line.supersedes is None or not line.chunks:
        return line
    tx = context.tx_for(("supersedes", line.supersedes))
    forgotten = memory_rows.forgotten_texts(tx, *_former(line, line.supersedes))
    if not forgotten:
        return line
    left = []
    for part in without_forgotten(line.chunks, forgotten):
        context.heartbeat()
        left.append(part)
    parts = tuple(filter(None, left))
    if parts == line.chunks or not parts:
        return line if parts else None
    memory = msgspec.structs.replace(line.memory, content="\n\n".join(parts))
    return msgspec.structs.replace(line, memory=memory, chunks=parts, vectors=())


def _former(line: ImportLine, first: str) -> tuple[memory_rows.Scope, str, str, str]:
    """Return what names the former texts of the line: scope, beginning of the source id, source id, path."""
    memory = line.memory
    return memories.same_scope(memory), first, str(memory.source_id), str(memory.source_path)


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
    ids = [stored.id] if isinstance(stored, Remembered) else stored.ids
    if not stored.deduped:
        return _Stored(ids, deduped=False)
    known = content_hash(stored.content) if isinstance(stored, Remembered) else chunks.hash_of(context, stored.group_id)
    return _Stored(ids, deduped=True, differs=known is not None and known != content_hash(memory.content))


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
