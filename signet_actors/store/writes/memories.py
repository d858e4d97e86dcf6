"""Statements about rows of ``memories`` with their tags and temporal edges, inside a write transaction.

Two memories can be duplicates only inside one ``Scope``: agent, visibility, project and scope.

Source: memory-api.txt; docs/decisions.md 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from signet_actors.domain.memories import INTERNAL_SOURCE_TYPES
from signet_actors.protocol.memories import ReadScope
from signet_actors.store.access import Reads
from signet_actors.store.read_policy import readable_in_any_scope
from signet_actors.store.sqlite.transaction import WriteTransaction
from signet_actors.store.writes.inserts import Insert

Scope = tuple[str, str, str, str]
"""Agent, visibility, project and scope; the last two are empty if there is none."""

SAME_SCOPE: Final = "m.agent_id = ? AND m.visibility = ? AND coalesce(m.project, '') = ? AND coalesce(m.scope, '') = ?"
"""The predicate of a ``Scope`` over the alias ``m``."""


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

    @property
    def duplicate_scope(self) -> Scope:
        """The scope inside which another memory can be a duplicate of this one."""
        return self.agent_id, self.visibility, self.project or "", self.scope or ""


class MemoryRow(NamedTuple):
    """A new row of ``memories``."""

    seq: int
    id: str
    type: str
    content: str
    normalized_content: str
    content_hash: str
    content_sha256: bytes
    cjk: str | None
    confidence: float | None
    importance: float
    source_type: str | None
    source_id: str | None
    source_path: str | None
    runtime_path: str | None
    idempotency_key: str | None
    session_id: str | None
    tags: str
    who: str | None
    why: str | None
    project: str | None
    scope: str | None
    agent_id: str
    visibility: str
    pinned: int
    extraction_status: str
    extraction_model: str | None
    embedding_model: str | None
    embedding_seq: int | None
    created_at: str
    updated_at: str
    updated_by: str
    access_count: int
    injected_count: int
    last_accessed: str | None


MEMORIES: Final = Insert("memories", MemoryRow._fields)
TAGS: Final = Insert("memory_tags", ("tag", "memory_seq"), "INSERT OR IGNORE")
EDGES: Final = Insert("temporal_edges", ("subject_type", "subject_id", "facet", "start_at", "end_at", "created_at"))

_COLUMNS: Final = ", ".join(f"m.{name}" for name in StoredRow._fields)
_SELECT: Final = f"SELECT {_COLUMNS} FROM memories m WHERE"
_BY_ID: Final = f"{_SELECT} m.id = ? LIMIT 1"
_LIVE_BY_HASH: Final = f"{_SELECT} {SAME_SCOPE} AND m.content_hash = ? AND m.is_deleted = 0 LIMIT 1"
_OTHER_LIVE_BY_HASH: Final = (
    f"{_SELECT} {SAME_SCOPE} AND m.content_hash = ? AND m.is_deleted = 0 AND m.seq <> ? LIMIT 1"
)
_BY_IDEMPOTENCY_KEY: Final = f"{_SELECT} {SAME_SCOPE} AND m.idempotency_key = ? LIMIT 1"
# The unary plus keeps SQLite from scanning the whole scope by the index of the contents.
_LIVE_BY_SOURCE: Final = (
    f"{_SELECT} m.source_id = ? AND coalesce(m.source_type, '') NOT IN {INTERNAL_SOURCE_TYPES}"
    f" AND +{SAME_SCOPE} AND m.is_deleted = 0 LIMIT 1"
)
_EXISTS: Final = "SELECT 1 FROM memories WHERE id = ?"
_EXISTS_LIVE: Final = "SELECT 1 FROM memories WHERE id = ? AND is_deleted = 0"
_ID_WAS_USED: Final = (
    "SELECT 1 FROM memories WHERE id = :id UNION ALL SELECT 1 FROM memory_history WHERE memory_id = :id"
    " UNION ALL SELECT 1 FROM memory_jobs WHERE memory_id = :id AND status IN ('pending', 'leased') LIMIT 1"
)
_LIVE_SEQ_OF_CONTENT: Final = "SELECT seq FROM memories WHERE id = ? AND content_hash = ? AND is_deleted = 0"
_SEQS: Final = "SELECT m.id, m.seq FROM json_each(?) i CROSS JOIN memories m ON m.id = i.value"
_CONTENT_BYTES: Final = "SELECT octet_length(content) FROM memories WHERE id = ?"
_CURRENT_TEXT: Final = "SELECT content, tags, embedding_seq IS NOT NULL FROM memories WHERE id = ?"
_IS_EMBEDDED: Final = "SELECT embedding_seq IS NOT NULL FROM memories WHERE id = ?"

_SET_EMBEDDING: Final = "UPDATE memories SET embedding_seq = ?, embedding_model = ? WHERE seq = ?"
_CLEAR_EMBEDDING: Final = "UPDATE memories SET embedding_seq = NULL, embedding_model = NULL WHERE seq = ?"
_SET_EXTRACTION_STATUS: Final = "UPDATE memories SET extraction_status = ? WHERE seq = ?"
_SET_IDEMPOTENCY_KEY: Final = "UPDATE memories SET idempotency_key = ? WHERE seq = ?"
_CLEAR_IDEMPOTENCY_KEY: Final = "UPDATE memories SET idempotency_key = NULL WHERE seq = ?"
_MARK_DELETED: Final = (
    "UPDATE memories SET is_deleted = 1, deleted_at = ?, version = version + 1, updated_at = ?, updated_by = ?"
    " WHERE seq = ?"
)
_MARK_LIVE: Final = (
    "UPDATE memories SET is_deleted = 0, deleted_at = NULL, version = version + 1, updated_at = ?, updated_by = ?"
    " WHERE seq = ?"
)
_DELETE: Final = "DELETE FROM memories WHERE seq = ?"
_DELETE_TAGS: Final = "DELETE FROM memory_tags WHERE memory_seq = ? AND tag IN (SELECT value FROM json_each(?))"
_INSERT_TAG: Final = "INSERT OR IGNORE INTO memory_tags (tag, memory_seq) VALUES (?, ?)"
_DELETE_EDGES: Final = "DELETE FROM temporal_edges WHERE subject_type = 'memory' AND subject_id = ?"
_COUNT_RECALLS: Final = "UPDATE memories SET access_count = access_count + ?, last_accessed = ? WHERE id = ?"
_COUNT_INJECTIONS: Final = "UPDATE memories SET injected_count = injected_count + ? WHERE id = ?"


def by_id(tx: WriteTransaction, memory_id: str) -> StoredRow | None:
    """Return the row, live or deleted, without a check of the read policy."""
    return _row(tx, _BY_ID, (memory_id,))


def readable_by_id(tx: WriteTransaction, memory_id: str, read: ReadScope) -> StoredRow | None:
    """Return the row, live or deleted, if the read policy allows it."""
    predicate, bindings = readable_in_any_scope(tx.connection, read.agent_id)
    return _row(tx, f"{_SELECT} m.id = :id AND {predicate} LIMIT 1", {"id": memory_id, **bindings})


def live_by_hash(tx: WriteTransaction, scope: Scope, digest: str) -> StoredRow | None:
    """Return the live row with this content in the scope."""
    return _row(tx, _LIVE_BY_HASH, (*scope, digest))


def other_live_by_hash(tx: WriteTransaction, scope: Scope, digest: str, seq: int) -> StoredRow | None:
    """Return the live row with this content in the scope that is not row ``seq``."""
    return _row(tx, _OTHER_LIVE_BY_HASH, (*scope, digest, seq))


def by_idempotency_key(tx: WriteTransaction, scope: Scope, key: str) -> StoredRow | None:
    """Return the row, live or deleted, that has this idempotency key in the scope."""
    return _row(tx, _BY_IDEMPOTENCY_KEY, (*scope, key))


def live_by_source(tx: WriteTransaction, scope: Scope, source_id: str) -> StoredRow | None:
    """Return the live row in the scope that came from this external source."""
    return _row(tx, _LIVE_BY_SOURCE, (source_id, *scope))


def exists(tx: WriteTransaction, memory_id: str) -> bool:
    """Return whether the memory is stored, live or deleted."""
    return tx.one(_EXISTS, (memory_id,)) is not None


def exists_live(tx: WriteTransaction, memory_id: str) -> bool:
    """Return whether the memory is stored and not deleted."""
    return tx.one(_EXISTS_LIVE, (memory_id,)) is not None


def id_was_used(tx: WriteTransaction, memory_id: str) -> bool:
    """Return whether a memory, a history event or an unfinished job has this id."""
    return tx.one(_ID_WAS_USED, {"id": memory_id}) is not None


def live_seq_of_content(tx: WriteTransaction, memory_id: str | None, content_hash: str | None) -> int | None:
    """Return the ``seq`` of the memory if it is live and still has this content."""
    row = tx.one(_LIVE_SEQ_OF_CONTENT, (memory_id, content_hash))
    return None if row is None else int(row[0])


def seqs_of(tx: WriteTransaction, memory_ids: Iterable[str]) -> dict[str, int]:
    """Return the ``seq`` of each of the memories that is stored, by id."""
    return dict(tx.rows(_SEQS, (msgspec.json.encode(sorted(memory_ids)).decode(),)))


def content_bytes(tx: WriteTransaction, memory_id: str) -> int:
    """Return the length of the memory's content in bytes; 0 if there is no such memory."""
    row = tx.one(_CONTENT_BYTES, (memory_id,))
    return 0 if row is None else int(row[0])


def current_text(reads: Reads, memory_id: str) -> tuple[str, str, bool] | None:
    """Return content, tags (JSON) and whether there is a vector; None if there is no such memory."""
    row = reads.one(_CURRENT_TEXT, (memory_id,))
    return None if row is None else (row[0], row[1], bool(row[2]))


def is_embedded(reads: Reads, memory_id: str) -> bool:
    """Return whether the memory exists and has a vector."""
    row = reads.one(_IS_EMBEDDED, (memory_id,))
    return row is not None and bool(row[0])


def update(tx: WriteTransaction, seq: int, columns: Mapping[str, Any], *, updated_at: str, updated_by: str) -> None:
    """Set the columns of a row and raise its version; also its text index, which may take long."""
    assignments = ", ".join(f"{column} = ?" for column in columns)
    tx.execute_long(
        f"UPDATE memories SET {assignments}, version = version + 1, update_count = update_count + 1,"
        " updated_at = ?, updated_by = ? WHERE seq = ?",
        (*columns.values(), updated_at, updated_by, seq),
    )


def mark_deleted(tx: WriteTransaction, seq: int, *, deleted_at: str, updated_by: str) -> None:
    """Soft-delete the row, which also leaves the text index."""
    tx.execute_long(_MARK_DELETED, (deleted_at, deleted_at, updated_by, seq))


def mark_live(tx: WriteTransaction, seq: int, *, updated_at: str, updated_by: str) -> None:
    """Undo a soft delete; the row enters the text index again."""
    tx.execute_long(_MARK_LIVE, (updated_at, updated_by, seq))


def delete(tx: WriteTransaction, seq: int) -> None:
    """Delete the row."""
    tx.execute_long(_DELETE, (seq,))


def set_embedding(tx: WriteTransaction, seq: int, embedding_seq: int | None, model: str) -> None:
    """Set the vector by which the memory is searched."""
    tx.execute(_SET_EMBEDDING, (embedding_seq, model, seq))


def clear_embedding(tx: WriteTransaction, seq: int) -> None:
    """Record that the memory has no vector."""
    tx.execute(_CLEAR_EMBEDDING, (seq,))


def set_extraction_status(tx: WriteTransaction, seq: int, status: str) -> None:
    """Record how far the extraction of facts from the memory is."""
    tx.execute(_SET_EXTRACTION_STATUS, (status, seq))


def set_idempotency_key(tx: WriteTransaction, seq: int, key: str) -> None:
    """Give the row the key, which no other row of its scope may have."""
    tx.execute(_SET_IDEMPOTENCY_KEY, (key, seq))


def clear_idempotency_key(tx: WriteTransaction, seq: int) -> None:
    """Take the row's key from it."""
    tx.execute(_CLEAR_IDEMPOTENCY_KEY, (seq,))


def delete_tags(tx: WriteTransaction, seq: int, tags: str) -> None:
    """Delete the rows of these tags (a JSON array) of a memory."""
    tx.execute(_DELETE_TAGS, (seq, tags))


def add_tags(tx: WriteTransaction, seq: int, tags: Iterable[str]) -> None:
    """Insert a row for each tag of a memory that has none."""
    for tag in tags:
        tx.execute(_INSERT_TAG, (tag, seq))


def delete_temporal_edges(tx: WriteTransaction, memory_id: str) -> None:
    """Delete the memory's temporal edges."""
    tx.execute(_DELETE_EDGES, (memory_id,))


def count_recalls(tx: WriteTransaction, memory_id: str, count: int, *, last_accessed: str) -> None:
    """Add to the number of times that the memory was recalled."""
    tx.execute(_COUNT_RECALLS, (count, last_accessed, memory_id))


def count_injections(tx: WriteTransaction, memory_id: str, count: int) -> None:
    """Add to the number of times that the memory was injected into a prompt."""
    tx.execute(_COUNT_INJECTIONS, (count, memory_id))


def _row(tx: WriteTransaction, sql: str, bindings: Any) -> StoredRow | None:
    row = tx.one(sql, bindings)
    return None if row is None else StoredRow(*row)
