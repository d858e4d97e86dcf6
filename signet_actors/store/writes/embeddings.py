"""Stored vectors and the search index of each model. Source: architecture.txt "embeddings"; docs/decisions.md 5, 36."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from signet_actors.protocol.pipeline import UnembeddedText
from signet_actors.store.engine import Insert, WriteTransaction


class EmbeddingRow(NamedTuple):
    seq: int
    source_type: str
    source_id: str
    model: str
    dimensions: int
    vector: bytes
    content_hash: str
    created_at: str
    token_codes: bytes | None


EMBEDDINGS: Final = Insert("embeddings", EmbeddingRow._fields)

_OF_MEMORY: Final = "embeddings e WHERE e.source_type = 'memory' AND e.source_id = :memory_id"
_SPACES: Final = f"SELECT e.seq, e.model, e.dimensions FROM {_OF_MEMORY}"
_VECTORS: Final = f"SELECT e.seq, e.model, e.dimensions, e.vector FROM {_OF_MEMORY}"
_WITH_SECOND: Final = (
    "SELECT e.seq, EXISTS (SELECT 1 FROM embeddings s WHERE s.source_type = e.source_type AND s.source_id = e.source_id"
    " AND s.model = :second AND s.seq > e.seq) FROM embeddings e"
    " WHERE e.model = :model AND e.dimensions = :dimensions AND e.seq > :after ORDER BY e.seq LIMIT :limit"
)
_TEXTS: Final = (
    "SELECT m.id, substr(m.content, 1, :chars), m.content_hash FROM embeddings e"
    " JOIN memories m ON m.id = e.source_id AND m.embedding_seq = e.seq AND m.is_deleted = 0"
    " WHERE e.seq IN ({}) AND e.source_type = 'memory' ORDER BY e.seq"
)
_HAS_FIRST: Final = (
    "SELECT 1 FROM memories m WHERE m.id = :memory_id AND m.content_hash = :hash AND m.is_deleted = 0"
    " AND m.embedding_seq IS NOT NULL"
)
MOST_CHARS: Final = 8192
"""More of a text is not needed for a vector."""
_DELETE: Final = "DELETE FROM embeddings WHERE seq = :seq"
_INSERT_MODEL: Final = (
    "INSERT INTO embedding_models (model, dimensions, created_at) VALUES (:model, :dimensions, :now) RETURNING id"
)


def index_insert(tx: WriteTransaction, model: str, dimensions: int, now: str) -> Insert:
    """Return the INSERT of ``(seq, vector)`` into the search index of the model, which is created if it is new."""
    known = tx.vector_index(model, dimensions)
    if known is not None:
        return known
    number = tx.value(_INSERT_MODEL, {"model": model, "dimensions": dimensions, "now": now})
    return tx.create_vector_index(number, dimensions)


def remove(tx: WriteTransaction, memory_id: str, model: str | None = None) -> None:
    """Delete the memory's vectors of every model, or only those of ``model``."""
    for seq, name, dimensions in tx.rows(_SPACES, {"memory_id": memory_id}):
        if model in {None, name}:
            tx.unindex_vector(name, dimensions, seq)
            tx.execute(_DELETE, {"seq": seq})


def with_second(
    tx: WriteTransaction, first: tuple[str, int], second: str, after: int, limit: int
) -> list[tuple[int, int]]:
    """Return ``seq`` of the vectors of a model after ``after``, and whether a later one of ``second`` is beside it."""
    model, dimensions = first
    bindings = {"model": model, "dimensions": dimensions, "second": second, "after": after, "limit": limit}
    return tx.rows(_WITH_SECOND, bindings)


def texts_of(tx: WriteTransaction, seqs: Sequence[int]) -> list[UnembeddedText]:
    """Return the live memories whose first vectors these are."""
    sql = _TEXTS.format(tx.dialect.members("seqs"))
    rows = tx.rows(sql, {"seqs": tx.dialect.listed(seqs), "chars": MOST_CHARS})
    return [UnembeddedText(*row) for row in rows]


def has_first(tx: WriteTransaction, memory_id: str, content_hash: str) -> bool:
    """Return whether the memory is live, has this content, and has a first vector."""
    return tx.value(_HAS_FIRST, {"memory_id": memory_id, "hash": content_hash}) is not None


def hide_all(tx: WriteTransaction, memory_id: str) -> None:
    """Remove the memory's vectors from the search indexes; their ``embeddings`` rows stay for a recovery."""
    for seq, model, dimensions in tx.rows(_SPACES, {"memory_id": memory_id}):
        tx.unindex_vector(model, dimensions, seq)


def show_all(tx: WriteTransaction, memory_id: str, now: str) -> None:
    """Put every stored vector of the memory back into its search index."""
    for seq, model, dimensions, raw in tx.rows(_VECTORS, {"memory_id": memory_id}):
        tx.unindex_vector(model, dimensions, seq)
        tx.insert(index_insert(tx, model, dimensions, now), (seq, raw))
