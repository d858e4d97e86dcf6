"""Remember, modify, forget and recover one memory, inside the open transaction.

Source: memory-api.txt; memory-system.txt "Modify and Forget", "Soft-Delete and Recovery"; docs/decisions.md 4, 32, 36,
38.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from signet_actors.domain.jobs import EXTRACT
from signet_actors.domain.normalization import content_hash, normalized_content
from signet_actors.domain.query_words import cjk_bigrams
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Principal
from signet_actors.protocol.writer import (
    ImportLine,
    NewMemory,
    Remember,
    Remembered,
)
from signet_actors.store.read_policy import readable_in_any_scope
from signet_actors.store.rows import decode_tags
from signet_actors.store.transaction import WriteTransaction
from signet_actors.store.writes.inserts import Insert
from signet_actors.writer.command_context import CommandContext
from signet_actors.writer.commands import (
    agents,
    embeddings,
    history,
    idempotency_keys,
    jobs,
)

REMEMBERED_AGAIN = "remembered again"
_DAY_MS = 86_400_000
INTERNAL_SOURCE_TYPES = ("chunk", jobs.DERIVED)
"""Source types whose ``source_id`` is an internal id, not an external source that could be remembered again."""
SAME_SCOPE = "m.agent_id = ? AND m.visibility = ? AND coalesce(m.project, '') = ? AND coalesce(m.scope, '') = ?"


class StoredRow(NamedTuple):
    """The columns that a change depends on."""

    seq: int
    id: str
    content: str
    content_hash: str
    type: str
    tags: str
    importance: float
    pinned: int
    who: str | None
    agent_id: str
    visibility: str
    project: str | None
    scope: str | None
    source_type: str | None
    source_id: str | None
    is_deleted: int
    deleted_at: str | None
    version: int
    updated_by: str | None
    embedding_seq: int | None


_COLUMNS = ", ".join(f"m.{name}" for name in StoredRow._fields)


class Derived(NamedTuple):
    """What a memory has in addition when the pipeline created it."""

    why: str
    model: str
    confidence: float
    evidence: history.Evidence
    reason: str
    """The reason of the change, for its history event."""


_MEMORIES = Insert(
    "memories",
    (
        "seq",
        "id",
        "type",
        "content",
        "normalized_content",
        "content_hash",
        "content_sha256",
        "cjk",
        "confidence",
        "importance",
        "source_type",
        "source_id",
        "source_path",
        "runtime_path",
        "idempotency_key",
        "session_id",
        "tags",
        "who",
        "why",
        "project",
        "scope",
        "agent_id",
        "visibility",
        "pinned",
        "extraction_status",
        "extraction_model",
        "embedding_model",
        "embedding_seq",
        "created_at",
        "updated_at",
        "updated_by",
        "access_count",
        "injected_count",
        "last_accessed",
    ),
)
_TAGS = Insert("memory_tags", ("tag", "memory_seq"), "INSERT OR IGNORE")
_EDGES = Insert("temporal_edges", ("subject_type", "subject_id", "facet", "start_at", "end_at", "created_at"))


def remember(context: CommandContext, command: Remember) -> Remembered:
    """Store the memory, or return unchanged the memory that it duplicates."""
    return remember_one(context, command.memory, command.principal)


def remember_one(
    context: CommandContext, memory: NewMemory, principal: Principal, import_line: ImportLine | None = None
) -> Remembered:
    """Store one memory; ``import_line`` describes a memory that comes from an export."""
    digest = content_hash(memory.content)
    existing = _duplicate(context, memory, digest, principal)
    if existing is not None:
        if jobs.DERIVED in {existing.who, existing.updated_by} and not existing.is_deleted:
            # The caller is told that the text is stored, so undoing the run that wrote it must not remove it.
            history.record(context, existing.id, "none", principal, reason=REMEMBERED_AGAIN)
        return _deduplicated(context, existing, memory, digest)
    agents.register(context, memory.agent_id)
    return insert(context, memory, principal, digest, import_line)


def insert(
    context: CommandContext,
    memory: NewMemory,
    principal: Principal,
    digest: str,
    import_line: ImportLine | None = None,
    derived: Derived | None = None,
    metadata: Mapping[str, object] | None = None,
) -> Remembered:
    """Insert a row with its vector, tags, temporal edges, history and jobs; ``metadata`` is for the created event."""
    memory_id = context.new_id() if import_line is None else _unused_id(context, import_line.id)
    embedding_seq = None
    if memory.vector is not None:
        embedding_seq = embeddings.store(context, memory_id, digest, memory.vector)
    kinds = jobs.required_kinds(
        context.config,
        derived=derived is not None or memory.source_type == jobs.DERIVED,
        embedded=embedding_seq is not None,
    )
    created_at = memory.created_at or context.now
    changed_by = principal.changed_by if principal.changed_by != "daemon" else (memory.who or principal.changed_by)
    seq = context.insert_buffer.next_seq("memories")
    context.insert_buffer.add(
        _MEMORIES,
        (
            seq,
            memory_id,
            memory.type,
            memory.content,
            normalized_content(memory.content),
            digest,
            hashlib.sha256(memory.content.encode()).digest(),
            cjk_bigrams(memory.content),
            None if derived is None else derived.confidence,
            memory.importance,
            memory.source_type,
            memory.source_id,
            memory.source_path,
            memory.runtime_path,
            memory.idempotency_key,
            principal.session_id if import_line is None else import_line.session_id,
            msgspec.json.encode(memory.tags).decode(),
            memory.who,
            None if derived is None else derived.why,
            memory.project,
            memory.scope,
            memory.agent_id,
            memory.visibility,
            int(memory.pinned),
            "pending" if EXTRACT in kinds else "none",
            None if derived is None else derived.model,
            memory.vector.model if memory.vector is not None and embedding_seq is not None else None,
            embedding_seq,
            created_at,
            context.now if import_line is None else import_line.updated_at or context.now,
            changed_by,
            0 if import_line is None else import_line.access_count,
            0 if import_line is None else import_line.injected_count,
            None if import_line is None else import_line.last_accessed,
        ),
        *_lookup_keys(memory_id, memory, digest),
    )
    for tag in memory.tags:
        context.insert_buffer.add(_TAGS, (tag, seq))
    for edge in memory.temporal:
        context.insert_buffer.add(_EDGES, ("memory", memory_id, edge.facet, edge.start, edge.end, context.now))
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
    for kind in kinds:
        jobs.enqueue_new(context, kind, memory_id)
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


def same_scope(memory: NewMemory) -> tuple[str, str, str, str]:
    """Return the bindings of the scope inside which two memories can be duplicates (docs/decisions.md 4)."""
    return (memory.agent_id, memory.visibility, memory.project or "", memory.scope or "")


def live_by_hash(context: CommandContext, memory: NewMemory, digest: str) -> StoredRow | None:
    """Return the live row with this content in the memory's scope."""
    return _row_by_lookup_key(
        context,
        ("hash", *same_scope(memory), digest),
        f"{SAME_SCOPE} AND m.content_hash = ? AND m.is_deleted = 0",
        (*same_scope(memory), digest),
    )


def by_idempotency_key(context: CommandContext, memory: NewMemory, key: str) -> StoredRow | None:
    """Return the row, live or deleted, that has this idempotency key in the memory's scope."""
    return _row_by_lookup_key(
        context,
        ("key", *same_scope(memory), key),
        f"{SAME_SCOPE} AND m.idempotency_key = ?",
        (*same_scope(memory), key),
    )


def _unused_id(context: CommandContext, wanted: str | None) -> str:
    """Return ``wanted`` if no memory has or ever had this id here, else a new id.

    Jobs, proposals and reviews of an erased memory may still be in progress. They name it by id and version, and must
    not act on an imported memory with the same id.
    """
    if wanted is None:
        return context.new_id()
    known = context.tx_for(("id", wanted)).one(
        "SELECT 1 FROM memories WHERE id = :id UNION ALL SELECT 1 FROM memory_history WHERE memory_id = :id"
        f" UNION ALL SELECT 1 FROM memory_jobs WHERE memory_id = :id AND {jobs.UNFINISHED} LIMIT 1",
        {"id": wanted},
    )
    return wanted if known is None else context.new_id()


def _lookup_keys(memory_id: str, memory: NewMemory, digest: str) -> list[tuple[str, ...]]:
    """Return the lookup keys of a new memory row; see ``CommandContext.tx_for``."""
    scope = same_scope(memory)
    lookup_keys: list[tuple[str, ...]] = [("id", memory_id), ("hash", *scope, digest)]
    if memory.idempotency_key is not None:
        lookup_keys.append(("key", *scope, memory.idempotency_key))
    if memory.source_id is not None and memory.source_type not in INTERNAL_SOURCE_TYPES:
        lookup_keys.append(("source", *scope, memory.source_id))
    return lookup_keys


def _restore_key(context: CommandContext, row: StoredRow, principal: Principal) -> dict[str, object] | None:
    """Give a recovered row its idempotency key back; return the metadata for its history event."""
    key = idempotency_keys.released(context, row.seq)
    if key is None:
        return None
    holder = _row(
        context,
        f"{SAME_SCOPE} AND m.idempotency_key = ?",
        (row.agent_id, row.visibility, row.project or "", row.scope or "", key),
    )
    if holder is not None and not holder.is_deleted:
        return {"idempotencyKeyHeldBy": holder.id}
    if holder is not None:
        idempotency_keys.release(context, holder.seq, holder.id, key, principal)
    idempotency_keys.restore(context, row.seq, key)
    return {"idempotencyKeyRestored": True}


def by_source(context: CommandContext, memory: NewMemory) -> Remembered | None:
    """Return the live memory that came from the memory's source, for a content that would be stored as chunks."""
    row = _row_of_source(context, memory)
    return None if row is None else _deduplicated(context, row, memory, content_hash(memory.content))


def _row_of_source(context: CommandContext, memory: NewMemory) -> StoredRow | None:
    if memory.source_id is None or memory.session_bound:
        return None
    return _row_by_lookup_key(
        context,
        ("source", *same_scope(memory), memory.source_id),
        # The unary plus keeps SQLite from scanning the whole scope by the index of the contents.
        f"m.source_id = ? AND coalesce(m.source_type, '') NOT IN {INTERNAL_SOURCE_TYPES}"
        f" AND +{SAME_SCOPE} AND m.is_deleted = 0",
        (memory.source_id, *same_scope(memory)),
    )


def _duplicate(context: CommandContext, memory: NewMemory, digest: str, principal: Principal) -> StoredRow | None:
    """Return the row that the memory duplicates: by source id, else by idempotency key, else by content hash."""
    row = _row_of_source(context, memory)
    if row is not None:
        return row
    if memory.idempotency_key is not None:
        row = by_idempotency_key(context, memory, memory.idempotency_key)
        if row is not None and row.is_deleted:
            idempotency_keys.release(context, row.seq, row.id, memory.idempotency_key, principal)
        elif row is not None:
            return row
    return live_by_hash(context, memory, digest)


def _deduplicated(context: CommandContext, row: StoredRow, memory: NewMemory, digest: str) -> Remembered:
    embedding_seq = row.embedding_seq
    if embedding_seq is None and memory.vector is not None and row.content_hash == digest:
        embedding_seq = embeddings.store(context, row.id, digest, memory.vector)
        if embedding_seq is not None:
            context.tx.execute(
                "UPDATE memories SET embedding_seq = ?, embedding_model = ? WHERE seq = ?",
                (embedding_seq, memory.vector.model, row.seq),
            )
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


def by_id(context: CommandContext, memory_id: str) -> StoredRow | None:
    """Return the row, live or deleted, without a check of the read policy."""
    return _row(context, "m.id = ?", (memory_id,))


def readable_by_id(context: CommandContext, memory_id: str, read: ReadScope) -> StoredRow | None:
    """Return the row, live or deleted, if the caller may read it."""
    return _readable_row(context, memory_id, read)


def _row(context: CommandContext, predicate: str, bindings: Any) -> StoredRow | None:
    return _select_row(context.tx, predicate, bindings)


def _row_by_lookup_key(
    context: CommandContext, lookup_key: tuple[str, ...], predicate: str, bindings: Any
) -> StoredRow | None:
    """Return a row, and insert the buffered rows first only if one of them has ``lookup_key``."""
    return _select_row(context.tx_for(lookup_key), predicate, bindings)


def _select_row(tx: WriteTransaction, predicate: str, bindings: Any) -> StoredRow | None:
    row = tx.one(f"SELECT {_COLUMNS} FROM memories m WHERE {predicate} LIMIT 1", bindings)
    return None if row is None else StoredRow(*row)


def _readable_row(context: CommandContext, memory_id: str, read: ReadScope) -> StoredRow | None:
    """Return the row if the read policy allows it; another agent's private memory looks like a missing one."""
    predicate, bindings = readable_in_any_scope(context.tx.connection, read.agent_id)
    return _row(context, f"m.id = :id AND {predicate}", {"id": memory_id, **bindings})
