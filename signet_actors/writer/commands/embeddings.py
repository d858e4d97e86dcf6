"""Vectors of memories: the ``embeddings`` row and its ``vec0`` row change together.

Source: architecture.txt "embeddings"; docs/decisions.md 5, 36.
"""

from __future__ import annotations

from signet_actors.protocol.writer import Vector
from signet_actors.store.vectors import create_vec_table, vec_table
from signet_actors.store.writes.inserts import Insert
from signet_actors.writer.command_context import CommandContext

_EMBEDDINGS = Insert(
    "embeddings",
    ("seq", "source_type", "source_id", "model", "dimensions", "vector", "content_hash", "created_at"),
)


def store(context: CommandContext, memory_id: str, content_hash: str, vector: Vector) -> int | None:
    """Store the memory's vector and index it; return ``embeddings.seq``, or None if the frame is unusable."""
    raw = context.vector_bytes(vector)
    if raw is None:
        return None
    space = (vector.model, vector.dimensions)
    index = context.row_cache.vec_tables.get(space)
    if index is None:
        index = context.row_cache.vec_tables[space] = Insert(_ensure_table(context, *space), ("rowid", "embedding"))
    seq = context.insert_buffer.next_seq("embeddings")
    context.insert_buffer.add(
        _EMBEDDINGS,
        (seq, "memory", memory_id, vector.model, vector.dimensions, raw, content_hash, context.now),
    )
    context.insert_buffer.add(index, (seq, raw))
    return seq


def remove(context: CommandContext, memory_id: str, *, model: str | None = None) -> None:
    """Delete the memory's vectors of every model, or only those of ``model``."""
    for seq, name, dimensions in context.tx.rows(
        "SELECT seq, model, dimensions FROM embeddings WHERE source_type = 'memory' AND source_id = ?"
        " AND (? IS NULL OR model = ?)",
        (memory_id, model, model),
    ):
        hide(context, seq, name, dimensions)
        context.tx.execute("DELETE FROM embeddings WHERE seq = ?", (seq,))


def hide(context: CommandContext, seq: int, model: str, dimensions: int) -> None:
    """Remove the vector from the search index; its ``embeddings`` row stays for a recovery."""
    table = vec_table(context.tx.connection, model, dimensions)
    if table is not None:
        context.tx.execute(f"DELETE FROM {table} WHERE rowid = ?", (seq,))


def hide_all(context: CommandContext, memory_id: str) -> None:
    """Call ``hide`` for every vector of the memory."""
    for seq, model, dimensions in context.tx.rows(
        "SELECT seq, model, dimensions FROM embeddings WHERE source_type = 'memory' AND source_id = ?", (memory_id,)
    ):
        hide(context, seq, model, dimensions)


def show_all(context: CommandContext, memory_id: str) -> None:
    """Put every stored vector of the memory back into its search index."""
    for seq, model, dimensions, raw in context.tx.rows(
        "SELECT seq, model, dimensions, vector FROM embeddings WHERE source_type = 'memory' AND source_id = ?",
        (memory_id,),
    ):
        table = _ensure_table(context, model, dimensions)
        context.tx.execute(f"DELETE FROM {table} WHERE rowid = ?", (seq,))
        context.tx.execute(f"INSERT INTO {table} (rowid, embedding) VALUES (?, ?)", (seq, raw))


def _ensure_table(context: CommandContext, model: str, dimensions: int) -> str:
    """Return the ``vec0`` table of ``model``, which is created in the transaction when the model is new."""
    known = vec_table(context.tx.connection, model, dimensions)
    if known is not None:
        return known
    context.tx.execute(
        "INSERT INTO embedding_models (model, dimensions, created_at) VALUES (?, ?, ?)",
        (model, dimensions, context.now),
    )
    connection = context.tx.connection
    return create_vec_table(connection, connection.last_insert_rowid(), dimensions)
