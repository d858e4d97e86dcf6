"""Stored embeddings with their memories, and the counts behind embedding health."""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

from signet_actors.protocol.embeddings import EmbeddingHealth
from signet_actors.protocol.memories import Memory, ReadScope
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, readable, readable_in_any_scope
from signet_actors.store.rows import MEMORY_COLUMNS, to_memory

_NEWEST_VECTOR = "JOIN embeddings e ON e.seq = m.embedding_seq"
_ONE = f"SELECT m.seq, e.vector, e.model FROM memories m {_NEWEST_VECTOR} WHERE {{}}"
_EMBEDDED = "m.is_deleted = 0 AND m.embedding_seq IS NOT NULL"
_COUNT = "SELECT count(*) FROM memories m WHERE {}"
_PAGE = "SELECT m.seq FROM memories m WHERE {} ORDER BY m.created_at DESC, m.seq DESC LIMIT :limit OFFSET :offset"
_LISTED = (
    f"SELECT {MEMORY_COLUMNS}, {{}} FROM ({{}}) i CROSS JOIN memories m {_NEWEST_VECTOR} WHERE m.seq = i.value"
    " ORDER BY m.created_at DESC, m.seq DESC"
)

_LIVE_COUNT = "SELECT count(*) FROM memories m WHERE m.is_deleted = 0"
_BY_KIND = (
    "SELECT e.model, e.dimensions, count(*), sum(e.content_hash <> m.content_hash)"
    f" FROM memories m {_NEWEST_VECTOR} WHERE m.is_deleted = 0 GROUP BY e.model, e.dimensions"
)
_SECOND = (
    "SELECT count(*) FROM memories m JOIN embeddings e ON e.source_type = 'memory' AND e.source_id = m.id"
    " WHERE m.is_deleted = 0 AND e.model = :model AND e.seq > m.embedding_seq"
)
_WRONG_LENGTH = "SELECT count(*) FROM embeddings e WHERE length(e.vector) <> 4 * e.dimensions"
_ORPHANED = (
    "SELECT count(*) FROM embeddings e WHERE e.source_type = 'memory'"
    " AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = e.source_id)"
)
_ROWS_AT_ONCE: Final = 100
_PAGE_CHARS: Final = 1_000_000


class StoredVector(NamedTuple):
    """The newest vector of a memory, float32 of any length, and the model that it is of."""

    memory_seq: int
    vector: bytes
    model: str


def newest_vector(snapshot: Snapshot, memory_id: str, read: ReadScope) -> StoredVector | None:
    """Return the vector of a live memory, in any scope; None if it is missing, not readable or not embedded."""
    policy = readable_in_any_scope(snapshot, read)
    where, bindings = conjunction(("m.id = :id AND m.is_deleted = 0", {"id": memory_id}), policy)
    row = snapshot.one(_ONE.format(where), bindings)
    return None if row is None else StoredVector(*row)


def page(
    snapshot: Snapshot, read: ReadScope, *, vectors: bool, limit: int, offset: int
) -> tuple[list[tuple[Memory, bytes | None]], int]:
    """Return a page of the live embedded memories, newest first, and how many there are.

    Each has its vector as raw float32, None unless ``vectors``. The memory whose text reaches ``_PAGE_CHARS`` ends the
    page.
    """
    where, bindings = conjunction((_EMBEDDED, {}), readable(snapshot, read))
    total = snapshot.value(_COUNT.format(where), bindings)
    seqs = [seq for (seq,) in snapshot.rows(_PAGE.format(where), {**bindings, "limit": limit, "offset": offset})]
    dialect = snapshot.dialect
    sql = _LISTED.format("e.vector" if vectors else "NULL", dialect.members("seqs"))
    found: list[tuple[Memory, bytes | None]] = []
    chars = 0
    for begin in range(0, len(seqs), _ROWS_AT_ONCE):
        for row in snapshot.rows(sql, {"seqs": dialect.listed(seqs[begin : begin + _ROWS_AT_ONCE])}):
            memory = to_memory(row)
            found.append((memory, row[-1]))
            chars += len(memory.content) + sum(map(len, memory.tags))
            if chars >= _PAGE_CHARS:
                return found, total
    return found, total


def health(snapshot: Snapshot, model: str, dimensions: int, second: str | None = None) -> EmbeddingHealth:
    """Return counts of live memories with and without vectors, and of rows that do not fit the model."""
    by_model: Counter[str] = Counter()
    wrong_dimensions = stale = 0
    for name, stored_dimensions, rows, outdated in snapshot.rows(_BY_KIND):
        by_model[name] += rows
        stale += outdated
        wrong_dimensions += rows * (name == model and stored_dimensions != dimensions)
    return EmbeddingHealth(
        memories=snapshot.value(_LIVE_COUNT),
        embedded=by_model.total(),
        by_model=by_model,
        wrong_dimensions=wrong_dimensions,
        null_vectors=snapshot.value(_WRONG_LENGTH),
        stale=stale,
        orphaned=snapshot.value(_ORPHANED),
        vec_missing=snapshot.unindexed_vectors(model, dimensions),
        second=0 if second is None else snapshot.value(_SECOND, {"model": second}),
    )
