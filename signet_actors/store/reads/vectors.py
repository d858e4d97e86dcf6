"""Stored vectors as searchers read them. ``Snapshot.nearest`` searches their index."""

from __future__ import annotations

from collections.abc import Sequence

from signet_actors.store.engine import Reads, Snapshot

_DATABASE_ID = "SELECT s.value FROM store_meta s WHERE s.key = 'database_id'"
_MODELS = "SELECT x.model, x.dimensions FROM embedding_models x"
_NEWEST = "SELECT max(e.seq) FROM embeddings e WHERE e.model = :model AND e.dimensions = :dimensions"
_AFTER = (
    "SELECT e.seq, m.seq, e.vector FROM embeddings e JOIN memories m ON m.id = e.source_id"
    " WHERE e.model = :model AND e.dimensions = :dimensions AND e.seq > :after AND e.source_type = 'memory'"
    " ORDER BY e.seq LIMIT :limit"
)
_CURRENT_OF_ROWS = (
    "SELECT m.seq, e.vector FROM memories m JOIN embeddings e ON e.source_id = m.id AND e.source_type = 'memory'"
    " WHERE m.seq IN ({}) AND e.model = :model AND e.dimensions = :dimensions AND e.seq >= m.embedding_seq"
)

_CODES_OF_VECTORS = "SELECT e.seq, e.model, e.token_codes FROM embeddings e WHERE e.seq IN ({})"
"""The model is compared by the caller: a condition on it makes SQLite walk the index of the model instead."""


def database_id(snapshot: Reads) -> str | None:
    """Return the id of the database, which a vector file names; None if it has none yet."""
    found: str | None = snapshot.value(_DATABASE_ID)
    return found


def models(snapshot: Reads) -> list[tuple[str, int]]:
    """Return the ``(model, dimensions)`` of which vectors were ever stored."""
    return [(model, dimensions) for model, dimensions in snapshot.rows(_MODELS)]


def newest_seq(snapshot: Snapshot, model: str, dimensions: int) -> int | None:
    """Return the highest ``embeddings.seq`` of the model, None if it has no vector."""
    newest: int | None = snapshot.value(_NEWEST, {"model": model, "dimensions": dimensions})
    return newest


def after(snapshot: Reads, model: str, dimensions: int, seq: int, limit: int) -> list[tuple[int, int, bytes]]:
    """Return ``(embeddings.seq, memories.seq, vector)`` of the model after ``seq``, in order of ``embeddings.seq``."""
    return snapshot.rows(_AFTER, {"model": model, "dimensions": dimensions, "after": seq, "limit": limit})


def current_of_rows(snapshot: Snapshot, model: str, dimensions: int, seqs: Sequence[int]) -> dict[int, bytes]:
    """Return the vectors of the rows' present words by ``memories.seq``, without rows that have none of this model."""
    dialect = snapshot.dialect
    sql = _CURRENT_OF_ROWS.format(dialect.members("seqs"))
    return dict(snapshot.rows(sql, {"seqs": dialect.listed(seqs), "model": model, "dimensions": dimensions}))


def token_codes(snapshot: Snapshot, model: str, numbers: Sequence[int]) -> dict[int, bytes]:
    """Return the token codes of vectors of ``model`` by ``embeddings.seq``, without vectors that have none."""
    dialect = snapshot.dialect
    sql = _CODES_OF_VECTORS.format(dialect.members("seqs"))
    rows = snapshot.rows(sql, {"seqs": dialect.listed(numbers)})
    return {seq: codes for seq, of, codes in rows if of == model and codes is not None}
