"""Vectors of memories: the ``embeddings`` row and its ``vec0`` row change together.

Source: architecture.txt "embeddings"; docs/decisions.md 5, 36.
"""

from __future__ import annotations

from signet_actors.protocol.writer import Vector
from signet_actors.store.writes import embeddings as embedding_rows
from signet_actors.store.writes.embeddings import EMBEDDINGS, EmbeddingRow
from signet_actors.writer.command_context import CommandContext


def store(context: CommandContext, memory_id: str, content_hash: str, vector: Vector) -> int | None:
    """Store the memory's vector and index it; return ``embeddings.seq``, or None if the frame is unusable."""
    raw = context.vector_bytes(vector)
    if raw is None:
        return None
    space = (vector.model, vector.dimensions)
    index = context.row_cache.vec_tables.get(space)
    if index is None:
        index = embedding_rows.index_insert(context.tx, *space, context.now)
        context.row_cache.vec_tables[space] = index
    seq = context.insert_buffer.next_seq("embeddings")
    context.insert_buffer.add(
        EMBEDDINGS,
        EmbeddingRow(
            seq,
            "memory",
            memory_id,
            vector.model,
            vector.dimensions,
            raw,
            content_hash,
            context.now,
            vector.token_codes,
        ),
    )
    context.insert_buffer.add(index, (seq, raw))
    return seq


def remove(context: CommandContext, memory_id: str, *, model: str | None = None) -> None:
    """Delete the memory's vectors of every model, or only those of ``model``."""
    embedding_rows.remove(context.tx, memory_id, model)


def hide_all(context: CommandContext, memory_id: str) -> None:
    """Remove the memory's vectors from the search indexes; their ``embeddings`` rows stay for a recovery."""
    embedding_rows.hide_all(context.tx, memory_id)


def show_all(context: CommandContext, memory_id: str) -> None:
    """Put every stored vector of the memory back into its search index."""
    embedding_rows.show_all(context.tx, memory_id, context.now)
