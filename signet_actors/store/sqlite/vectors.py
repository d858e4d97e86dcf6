"""Stored vectors: the rows of ``embeddings`` are authoritative, the ``vec0`` table of each model is a cache of them.

The rowid of a ``vec0`` row is ``embeddings.seq``. Vectors are raw little-endian float32.

Source: architecture.txt "embeddings"; docs/decisions.md 5.
"""

from __future__ import annotations

import apsw


def vec_table(connection: apsw.Connection, model: str, dimensions: int) -> str | None:
    """Return the name of the ``vec0`` table of ``model`` at ``dimensions``, None if there is none yet."""
    row = connection.execute(
        "SELECT id FROM embedding_models WHERE model = ? AND dimensions = ?", (model, dimensions)
    ).fetchone()
    return None if row is None else f"vec_embeddings_{row[0]}"


_CHUNK_ROWS = 256
"""vec0 allocates vectors in chunks; a small chunk means that one insert writes little to the write-ahead log."""


def create_vec_table(connection: apsw.Connection, number: int, dimensions: int) -> str:
    """Create an empty ``vec0`` table for the model with this ``embedding_models.id``; return its name."""
    table = f"vec_embeddings_{number}"
    connection.execute(
        f"CREATE VIRTUAL TABLE {table} USING vec0("
        f"embedding float[{dimensions}] distance_metric=cosine, chunk_size={_CHUNK_ROWS})"
    )
    return table


def nearest(connection: apsw.Connection, table: str, query: bytes, k: int) -> list[tuple[int, float]]:
    """Return ``(embeddings.seq, cosine)`` of the ``k`` nearest (at most 4096) by an exact scan, best first."""
    rows = connection.execute(
        f"SELECT rowid, distance FROM {table} WHERE embedding MATCH ? AND k = ? ORDER BY distance",
        (query, min(k, 4096)),
    )
    return [(seq, 1.0 - distance) for seq, distance in rows if distance is not None]
