"""Statements about ``embeddings`` and the ``vec0`` table of each model, which is the search index of its vectors.

Source: architecture.txt "embeddings"; docs/decisions.md 5, 36.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from signet_actors.store.sqlite.transaction import WriteTransaction
from signet_actors.store.sqlite.vectors import create_vec_table, vec_table
from signet_actors.store.writes.inserts import Insert


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


EMBEDDINGS: Final = Insert("embeddings", EmbeddingRow._fields)

_OF_MEMORY: Final = "embeddings WHERE source_type = 'memory' AND source_id = ?"
_SPACES: Final = f"SELECT seq, model, dimensions FROM {_OF_MEMORY}"
_SPACES_OF_MODEL: Final = f"{_SPACES} AND (? IS NULL OR model = ?)"
_VECTORS: Final = f"SELECT seq, model, dimensions, vector FROM {_OF_MEMORY}"
_DELETE: Final = "DELETE FROM embeddings WHERE seq = ?"
_INSERT_MODEL: Final = "INSERT INTO embedding_models (model, dimensions, created_at) VALUES (?, ?, ?)"


def index_insert(tx: WriteTransaction, model: str, dimensions: int, now: str) -> Insert:
    """Return the INSERT of ``(rowid, embedding)`` into the index of the model, which is created if it is new."""
    return Insert(_ensure_table(tx, model, dimensions, now), ("rowid", "embedding"))


def remove(tx: WriteTransaction, memory_id: str, model: str | None) -> None:
    """Delete the memory's vectors of every model, or only those of ``model``."""
    for seq, name, dimensions in tx.rows(_SPACES_OF_MODEL, (memory_id, model, model)):
        _hide(tx, seq, name, dimensions)
        tx.execute(_DELETE, (seq,))


def hide_all(tx: WriteTransaction, memory_id: str) -> None:
    """Remove the memory's vectors from the search indexes; their ``embeddings`` rows stay for a recovery."""
    for seq, model, dimensions in tx.rows(_SPACES, (memory_id,)):
        _hide(tx, seq, model, dimensions)


def show_all(tx: WriteTransaction, memory_id: str, now: str) -> None:
    """Put every stored vector of the memory back into its search index."""
    for seq, model, dimensions, raw in tx.rows(_VECTORS, (memory_id,)):
        table = _ensure_table(tx, model, dimensions, now)
        tx.execute(f"DELETE FROM {table} WHERE rowid = ?", (seq,))
        tx.execute(f"INSERT INTO {table} (rowid, embedding) VALUES (?, ?)", (seq, raw))


def _hide(tx: WriteTransaction, seq: int, model: str, dimensions: int) -> None:
    table = vec_table(tx.connection, model, dimensions)
    if table is not None:
        tx.execute(f"DELETE FROM {table} WHERE rowid = ?", (seq,))


def _ensure_table(tx: WriteTransaction, model: str, dimensions: int, now: str) -> str:
    """Return the ``vec0`` table of ``model``, which is created in the transaction when the model is new."""
    known = vec_table(tx.connection, model, dimensions)
    if known is not None:
        return known
    tx.execute(_INSERT_MODEL, (model, dimensions, now))
    return create_vec_table(tx.connection, tx.connection.last_insert_rowid(), dimensions)
