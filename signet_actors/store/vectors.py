"""Stored vectors: ``embeddings`` rows are the truth, one ``vec0`` table per model is a cache of them.

The rowid of a ``vec0`` row is ``embeddings.seq``. Vectors are raw little-endian float32.

Source: architecture.txt "embeddings"; docs/decisions.md 5.
"""

from __future__ import annotations

import apsw


def vec_table(connection: apsw.Connection, model: str, dimensions: int) -> str | None:
    """Name of the ``vec0`` table of ``model`` at that many dimensions, None when there is none yet."""
    row = connection.execute(
        "SELECT id FROM embedding_models WHERE model = ? AND dimensions = ?", (model, dimensions)
    ).fetchone()
    return None if row is None else f"vec_embeddings_{row[0]}"


_CHUNK_ROWS = 256
"""vec0 allocates vectors in blocks; a small block keeps the write-ahead log of one insert small."""


def create_vec_table(connection: apsw.Connection, number: int, dimensions: int) -> str:
    """The empty ``vec0`` table of the model with that ``embedding_models.id`` exists; returns its name."""
    table = f"vec_embeddings_{number}"
    connection.execute(
        f"CREATE VIRTUAL TABLE {table} USING vec0("
        f"embedding float[{dimensions}] distance_metric=cosine, chunk_size={_CHUNK_ROWS})"
    )
    return table


def nearest(connection: apsw.Connection, table: str, query: bytes, k: int) -> list[tuple[int, float]]:
    """``(embeddings.seq, cosine similarity)`` of the ``k`` nearest by an exact scan, best first; k at most 4096."""
    rows = connection.execute(
        f"SELECT rowid, distance FROM {table} WHERE embedding MATCH ? AND k = ? ORDER BY distance",
        (query, min(k, 4096)),
    )
    return [(seq, 1.0 - distance) for seq, distance in rows if distance is not None]
