"""Statements about ``embeddings`` and the search index of each model's vectors.

Source: architecture.txt "embeddings"; docs/decisions.md 5, 36.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from signet_actors.store.engine import Insert, WriteTransaction


class EmbeddingRow(NamedTuple):
    """A new vector."""

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


def hide_all(tx: WriteTransaction, memory_id: str) -> None:
    """Remove the memory's vectors from the search indexes; their ``embeddings`` rows stay for a recovery."""
    for seq, model, dimensions in tx.rows(_SPACES, {"memory_id": memory_id}):
        tx.unindex_vector(model, dimensions, seq)


def show_all(tx: WriteTransaction, memory_id: str, now: str) -> None:
    """Put every stored vector of the memory back into its search index."""
    for seq, model, dimensions, raw in tx.rows(_VECTORS, {"memory_id": memory_id}):
        tx.unindex_vector(model, dimensions, seq)
        tx.insert(index_insert(tx, model, dimensions, now), (seq, raw))
