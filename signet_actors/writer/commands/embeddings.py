"""Vectors of memories: the ``embeddings`` row and its ``vec0`` row change together.

Source: architecture.txt "embeddings"; memory-pipeline.txt "Embedding Tracker"; docs/decisions.md 5, 36.
"""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.config.embedding_models import configured_space, second_space
from signet_actors.domain.jobs import EMBED, SECOND_VECTOR
from signet_actors.protocol import pipeline as messages
from signet_actors.protocol.writer import Vector
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import embeddings as embedding_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes.embeddings import EMBEDDINGS, EmbeddingRow
from signet_actors.writer.commands import leases

MOST_LOOKED_AT: Final = 500
"""First vectors that one request looks at: some milliseconds, in which no write runs."""


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
    if space != second_space(context.config.embedding):
        context.queue_changes.ready.add(SECOND_VECTOR)
    return seq


def store_vector(context: CommandContext, command: messages.StoreVector) -> messages.VectorStored:
    """Complete an embed job: store and index its vector if the memory still has the content that was embedded.

    Vectors of other models stay beside it; the job's result names the model of this one. Raises ``lease_lost``.
    """
    job = leases.active_lease(context, command.job_id, command.lease_id)
    leases.require_kind(job, EMBED)
    stored = job.memory_id is not None and _replace(context, job.memory_id, command)
    result = {"stored": stored, "model": command.model, "dimensions": command.dimensions}
    leases.complete_leased(context, job, msgspec.json.encode(result).decode())
    return messages.VectorStored(stored)


def find_unembedded(context: CommandContext, command: messages.FindUnembedded) -> messages.UnembeddedFound:
    """Return memories whose first vector follows ``after``, and that have no second one of the same words."""
    first, second = configured_space(context.config.embedding), second_space(context.config.embedding)
    if first is None or second is None:
        return messages.UnembeddedFound([], command.after, more=False)
    looked_at = embedding_rows.with_second(context.tx, first, second[0], command.after, MOST_LOOKED_AT)
    lacking = [seq for seq, has_second in looked_at if not has_second][: command.limit]
    is_full = len(lacking) == command.limit
    last = lacking[-1] if is_full else looked_at[-1][0] if looked_at else command.after
    texts = embedding_rows.texts_of(context.tx, lacking)
    return messages.UnembeddedFound(texts, last, more=is_full or len(looked_at) == MOST_LOOKED_AT)


def store_second_vectors(context: CommandContext, command: messages.StoreSecondVectors) -> messages.SecondVectorsStored:
    """Store and index the vectors whose memories are live, have a first vector, and still have the embedded words."""
    second, stored = second_space(context.config.embedding), 0
    for frame, one in enumerate(command.vectors if second is not None else ()):
        assert second is not None
        context.heartbeat()
        if embedding_rows.has_first(context.tx, one.memory_id, one.content_hash):
            embedding_rows.remove(context.tx, one.memory_id, second[0])
            stored += (
                store(context, one.memory_id, one.content_hash, Vector(*second, frame, one.token_codes)) is not None
            )
    return messages.SecondVectorsStored(stored)


def _replace(context: CommandContext, memory_id: str, command: messages.StoreVector) -> bool:
    memory_seq = memory_rows.live_seq_of_content(context.tx, memory_id, command.content_hash)
    vector = Vector(command.model, command.dimensions, 0, command.token_codes)
    if memory_seq is None or context.vector_bytes(vector) is None:
        return False
    embedding_rows.remove(context.tx, memory_id, command.model)
    seq = store(context, memory_id, command.content_hash, vector)
    memory_rows.set_embedding(context.tx, memory_seq, seq, command.model)
    return True
