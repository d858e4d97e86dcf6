"""Stored vectors as searchers read them, from ``embeddings`` and from the ``vec0`` table of a model."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from signet_actors.store.sqlite import vectors
from signet_actors.store.sqlite.snapshot import Snapshot

_DATABASE_ID = "SELECT value FROM store_meta WHERE key = 'database_id'"
_MODELS = "SELECT model, dimensions FROM embedding_models"
_NEWEST = "SELECT max(seq) FROM embeddings WHERE model = ? AND dimensions = ?"
_AFTER = (
    "SELECT e.seq, m.seq, e.vector FROM embeddings e JOIN memories m ON m.id = e.source_id"
    " WHERE e.model = ? AND e.dimensions = ? AND e.seq > ? AND e.source_type = 'memory'"
    " ORDER BY e.seq LIMIT ?"
)
_CURRENT_OF_ROWS = (
    "SELECT m.seq, e.vector FROM memories m JOIN embeddings e ON e.seq = m.embedding_seq"
    " WHERE m.seq IN (SELECT value FROM json_each(?)) AND e.model = ? AND e.dimensions = ?"
)


def database_id(snapshot: Snapshot) -> str | None:
    """Return the id of the database, which a vector file names; None if it has none yet."""
    found: str | None = snapshot.value(_DATABASE_ID)
    return found


def models(snapshot: Snapshot) -> list[tuple[str, int]]:
    """Return the ``(model, dimensions)`` of which vectors were ever stored."""
    return [(model, dimensions) for model, dimensions in snapshot.rows(_MODELS)]


def newest_seq(snapshot: Snapshot, model: str, dimensions: int) -> int | None:
    """Return the highest ``embeddings.seq`` of the model, None if it has no vector."""
    newest: int | None = snapshot.value(_NEWEST, (model, dimensions))
    return newest


def after(snapshot: Snapshot, model: str, dimensions: int, seq: int, limit: int) -> list[tuple[int, int, bytes]]:
    """Return ``(embeddings.seq, memories.seq, vector)`` of the model after ``seq``, in order of ``embeddings.seq``."""
    return snapshot.rows(_AFTER, (model, dimensions, seq, limit))


def current_of_rows(snapshot: Snapshot, model: str, dimensions: int, seqs: Sequence[int]) -> dict[int, bytes]:
    """Return the newest vectors of the rows by ``memories.seq``, without rows whose newest is of another model."""
    return dict(snapshot.rows(_CURRENT_OF_ROWS, (msgspec.json.encode(seqs).decode(), model, dimensions)))


def table_of_model(snapshot: Snapshot, model: str, dimensions: int) -> str | None:
    """Return the ``vec0`` table of the model, to be given to ``nearest``; None if nothing was embedded with it."""
    return vectors.vec_table(snapshot.connection, model, dimensions)


def nearest(snapshot: Snapshot, table: str, query: bytes, k: int) -> list[tuple[int, float]]:
    """Return ``(embeddings.seq, cosine)`` of the ``k`` nearest (at most 4096) of the whole store, best first."""
    return vectors.nearest(snapshot.connection, table, query, k)
