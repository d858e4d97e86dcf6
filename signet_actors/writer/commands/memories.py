"""Remember one memory, unless it duplicates another, inside the open transaction.

The idempotency key of a deleted memory is passed to a new memory that comes with it, and returned at a recovery.

Source: memory-api.txt "POST /api/memory/remember" (``idempotencyKey``), "POST /api/memory/:id/recover";
memory-system.txt "Soft-Delete and Recovery"; docs/decisions.md 4, 32.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from signet_actors.domain.extraction.injected_text import InjectedParts, Span
from signet_actors.domain.jobs import EXTRACT, PROSPECTIVE_INDEX
from signet_actors.domain.memories import AGGREGATE, DERIVED, INTERNAL_SOURCE_TYPES, MOVED_WITH, type_source
from signet_actors.domain.normalization import content_hash, normalized_content
from signet_actors.domain.written_forms import INDEXED_CHARS, indexed_beside
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import ImportLine, NewMemory, Remembered
from signet_actors.store.command_context import CommandContext
from signet_actors.store.rows import decode_tags
from signet_actors.store.writes import agents
from signet_actors.store.writes import history as history_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes.memories import MemoryRow, Scope, StoredRow
from signet_actors.writer.commands import deletion, embeddings, graph, history, jobs
from signet_actors.writer.commands.graph import Contributor

REMEMBERED_AGAIN = "remembered again"
RELEASED = "its idempotency key was given to another memory"


class Derived(NamedTuple):
    """What a memory has in addition when the pipeline created it."""

    why: str
    model: str
    confidence: float
    evidence: history.Evidence
    reason: str
    """The reason of the change, for its history event."""


def remember(
    context: CommandContext,
    memory: NewMemory,
    principal: Principal,
    import_line: ImportLine | None = None,
    metadata: Mapping[str, object] | None = None,
) -> Remembered:
    """Store the memory (of an export: ``import_line``), or return the one that it duplicates, unchanged."""
    digest = content_hash(memory.content)
    duplicate = _duplicate(context, memory, digest, principal)
    existing = deletion.make_room(context, duplicate, memory.source_type, principal)
    if existing is not None:
        if DERIVED in {existing.who, existing.updated_by} and not existing.is_deleted:
            # The caller is told that the text is stored, so undoing the run that wrote it must not remove it.
            history.record(context, existing.id, "none", principal, reason=REMEMBERED_AGAIN)
        state_again(context, existing, memory)
        return deduplicated(context, existing, memory, digest)
    if memory.agent_id not in context.row_cache.agents:
        agents.register(context, memory.agent_id)
    return insert(context, memory, principal, digest, import_line, metadata=metadata)


def state_again(context: CommandContext, row: StoredRow, memory: NewMemory) -> None:
    """Store what a caller states with a memory that is stored already, in ``row``."""
    if memory.structured is not None and not row.is_deleted:
        said_at = memory.created_at or context.now
        contributor = Contributor(row.id, row.seq, memory.agent_id, row.content, said_at)
        graph.state(context, contributor, memory.structured, renews=not is_sent_again(context, memory))


def insert(
    context: CommandContext,
    memory: NewMemory,
    principal: Principal,
    digest: str,
    import_line: ImportLine | None = None,
    derived: Derived | None = None,
    metadata: Mapping[str, object] | None = None,
    injected: Sequence[Span] = (),
) -> Remembered:
    """Insert a row with its vector, tags, temporal edges, history and jobs; ``metadata`` is for the created event.

    ``injected`` are the parts of a chunk that its jobs leave out.
    """
    memory_id = context.new_id() if import_line is None else _unused_id(context, import_line.id)
    embedding_seq = None
    if memory.vector is not None:
        embedding_seq = embeddings.store(context, memory_id, digest, memory.vector)
    kinds = jobs.required_kinds(
        context.config, memory.source_type, embedded=embedding_seq is not None, derived=derived is not None
    )
    if memory.structured is not None and memory.structured.hints:
        kinds = tuple(kind for kind in kinds if kind != PROSPECTIVE_INDEX)  # a model's would replace them
    created_at = memory.created_at or context.now
    changed_by = principal.changed_by if principal.changed_by != "daemon" else (memory.who or principal.changed_by)
    seq = context.insert_buffer.next_seq("memories")
    context.insert_buffer.add(
        memory_rows.MEMORIES,
        MemoryRow(
            seq=seq,
            id=memory_id,
            type=memory.type,
            type_source=type_source(memory.type, memory.content, named=memory.type_named),
            content=memory.content,
            normalized_content=normalized_content(memory.content),
            content_hash=digest,
            content_sha256=hashlib.sha256(memory.content.encode()).digest(),
            cjk=indexed_beside(memory.content[:INDEXED_CHARS]),
            confidence=None if derived is None else derived.confidence,
            importance=memory.importance,
            source_type=memory.source_type,
            source_id=memory.source_id,
            source_path=memory.source_path,
            runtime_path=memory.runtime_path,
            idempotency_key=memory.idempotency_key,
            session_id=principal.session_id if import_line is None else import_line.session_id,
            tags=msgspec.json.encode(memory.tags).decode(),
            who=memory.who,
            why=None if derived is None else derived.why,
            project=memory.project,
            scope=memory.scope,
            agent_id=memory.agent_id,
            visibility=memory.visibility,
            pinned=int(memory.pinned),
            extraction_status="pending" if EXTRACT in kinds else "none",
            extraction_model=None if derived is None else derived.model,
            embedding_model=memory.vector.model if memory.vector is not None and embedding_seq is not None else None,
            embedding_seq=embedding_seq,
            created_at=created_at,
            content_at=None if import_line is None else import_line.content_at,
            updated_at=context.now if import_line is None else import_line.updated_at or context.now,
            updated_by=changed_by,
            access_count=0 if import_line is None else import_line.access_count,
            injected_count=0 if import_line is None else import_line.injected_count,
            last_accessed=None if import_line is None else import_line.last_accessed,
        ),
        *_lookup_keys(memory_id, memory, digest),
    )
    for tag in memory.tags:
        context.insert_buffer.add(memory_rows.TAGS, (tag, seq))
    for edge in memory.temporal:
        context.insert_buffer.add(
            memory_rows.EDGES, ("memory", memory_id, edge.facet, edge.start, edge.end, context.now)
        )
    history.record(
        context,
        memory_id,
        "created",
        msgspec.structs.replace(principal, changed_by=changed_by),
        new_content=memory.content,
        reason="imported" if import_line is not None else derived.reason if derived is not None else None,
        metadata=metadata,
        evidence=None if derived is None else derived.evidence,
    )
    parts = msgspec.json.encode(InjectedParts(digest, list(injected))).decode() if injected else None
    for kind in kinds:
        jobs.enqueue_new(context, kind, memory_id, parts)
    if memory.source_type != AGGREGATE:
        contributor = Contributor(memory_id, seq, memory.agent_id, memory.content, created_at)
        graph.link(context, contributor, structured=memory.structured)
    return Remembered(
        id=memory_id,
        type=memory.type,
        tags=list(memory.tags),
        pinned=memory.pinned,
        importance=memory.importance,
        content=memory.content,
        embedded=embedding_seq is not None,
        deduped=False,
        version=1,
    )


def same_scope(memory: NewMemory) -> Scope:
    """Return the scope inside which two memories can be duplicates (docs/decisions.md 4)."""
    return (memory.agent_id, memory.visibility, memory.project or "", memory.scope or "")


def live_by_hash(context: CommandContext, memory: NewMemory, digest: str) -> StoredRow | None:
    """Return the live row with this content in the memory's scope."""
    scope = same_scope(memory)
    return memory_rows.live_by_hash(context.tx_for(("hash", *scope, digest)), scope, digest)


def by_idempotency_key(context: CommandContext, memory: NewMemory, key: str) -> StoredRow | None:
    """Return the row, live or deleted, that has this idempotency key in the memory's scope."""
    scope = same_scope(memory)
    return memory_rows.by_idempotency_key(context.tx_for(("key", *scope, key)), scope, key)


def _unused_id(context: CommandContext, wanted: str | None) -> str:
    """Return ``wanted`` if no memory has or ever had this id here, else a new id.

    Jobs, proposals and reviews of an erased memory may still be in progress. They name it by id and version, and must
    not act on an imported memory with the same id.
    """
    if wanted is None:
        return context.new_id()
    used = memory_rows.id_was_used(context.tx_for(("id", wanted)), wanted)
    return context.new_id() if used else wanted


def _lookup_keys(memory_id: str, memory: NewMemory, digest: str) -> list[tuple[str, ...]]:
    """Return the lookup keys of a new memory row; see ``CommandContext.tx_for``."""
    scope = same_scope(memory)
    lookup_keys: list[tuple[str, ...]] = [("id", memory_id), ("hash", *scope, digest)]
    if memory.idempotency_key is not None:
        lookup_keys.append(("key", *scope, memory.idempotency_key))
    if memory.source_id is not None and memory.source_type not in INTERNAL_SOURCE_TYPES:
        lookup_keys.append(("source", *scope, memory.source_id))
    return lookup_keys


def release_key(context: CommandContext, seq: int, memory_id: str, key: str, principal: Principal) -> None:
    """Take the key from a deleted row, so that it can be used again; the row's history keeps it."""
    memory_rows.clear_idempotency_key(context.tx, seq)
    history.record(context, memory_id, "none", principal, reason=RELEASED, metadata={history_rows.KEY: key})


def restore_key(context: CommandContext, row: StoredRow, principal: Principal) -> dict[str, object] | None:
    """Give a row that was recovered or moved its idempotency key back; return the metadata for its history event."""
    key = history_rows.released_key(context.tx, row.seq, RELEASED)
    if key is None:
        return None
    holder = memory_rows.by_idempotency_key(context.tx, row.duplicate_scope, key)
    if holder is not None and not holder.is_deleted:
        return {"idempotencyKeyHeldBy": holder.id}
    if holder is not None:
        release_key(context, holder.seq, holder.id, key, principal)
    memory_rows.set_idempotency_key(context.tx, row.seq, key)
    return {"idempotencyKeyRestored": True}


def keep_key_unique(context: CommandContext, row: StoredRow, project: str | None, principal: Principal) -> None:
    """Release the key that the row would share with another one in ``project``: that of a deleted one, or its own."""
    key = memory_rows.idempotency_key(context.tx, row.seq)
    holder = None if key is None else memory_rows.by_idempotency_key(context.tx, row.scope_in(project), key)
    if key is not None and holder is not None:
        released = holder if holder.is_deleted and not row.is_deleted else row
        release_key(context, released.seq, released.id, key, principal)


def move_with_source(context: CommandContext, row: StoredRow, project: str | None, principal: Principal) -> None:
    """Move the row to the project that a memory it was made of has now."""
    keep_key_unique(context, row, project, principal)
    memory_rows.move(context.tx, row.seq, project, updated_at=context.now, updated_by=principal.changed_by)
    if not row.is_deleted:
        restore_key(context, row._replace(project=project), principal)
    metadata = {"before": {"project": row.project}, "after": {"project": project}}
    history.record(context, row.id, "updated", principal, reason=MOVED_WITH, metadata=metadata)


def by_source(context: CommandContext, memory: NewMemory) -> Remembered | None:
    """Return the live memory that came from the memory's source, for a content that would be stored as chunks."""
    row = row_of_source(context, memory)
    return None if row is None else deduplicated(context, row, memory, content_hash(memory.content))


def of_same_text(context: CommandContext, memory: NewMemory) -> Remembered:
    """Return the live memory that holds the text, of which it is known that there is one."""
    digest = content_hash(memory.content)
    row = live_by_hash(context, memory, digest)
    assert row is not None
    return deduplicated(context, row, memory, digest)


def row_of_source(context: CommandContext, memory: NewMemory) -> StoredRow | None:
    if memory.source_id is None or memory.session_bound:
        return None
    scope = same_scope(memory)
    return memory_rows.live_by_source(context.tx_for(("source", *scope, memory.source_id)), scope, memory.source_id)


def is_sent_again(context: CommandContext, memory: NewMemory) -> bool:
    """Return whether a live memory has the source id or the idempotency key, so that this is no new wish."""
    held = None if memory.idempotency_key is None else by_idempotency_key(context, memory, memory.idempotency_key)
    return row_of_source(context, memory) is not None or (held is not None and not held.is_deleted)


def _duplicate(context: CommandContext, memory: NewMemory, digest: str, principal: Principal) -> StoredRow | None:
    """Return the row that the memory duplicates: by source id, else by idempotency key, else by content hash."""
    row = row_of_source(context, memory)
    if row is not None:
        return row
    if memory.idempotency_key is not None:
        row = by_idempotency_key(context, memory, memory.idempotency_key)
        if row is not None and row.is_deleted:
            release_key(context, row.seq, row.id, memory.idempotency_key, principal)
        elif row is not None:
            return row
    return live_by_hash(context, memory, digest)


def deduplicated(context: CommandContext, row: StoredRow, memory: NewMemory, digest: str) -> Remembered:
    """Return the row as what the memory duplicates, with the memory's vector if it has none."""
    embedding_seq = row.embedding_seq
    if embedding_seq is None and memory.vector is not None and row.content_hash == digest and not row.is_deleted:
        embedding_seq = embeddings.store(context, row.id, digest, memory.vector)
        if embedding_seq is not None:
            memory_rows.set_embedding(context.tx, row.seq, embedding_seq, memory.vector.model)
    return Remembered(
        id=row.id,
        type=row.type,
        tags=decode_tags(row.tags),
        pinned=bool(row.pinned),
        importance=row.importance,
        content=row.content,
        embedded=embedding_seq is not None,
        deduped=True,
        version=row.version,
    )
