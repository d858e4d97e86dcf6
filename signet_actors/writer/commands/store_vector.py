"""The end of an embed job: store the vector of the memory's present content.

Source: memory-pipeline.txt "Embedding Tracker"; docs/decisions.md 5.
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.jobs import EMBED
from signet_actors.protocol.pipeline import StoreVector, VectorStored
from signet_actors.protocol.writer import Vector
from signet_actors.writer.command_context import CommandContext
from signet_actors.writer.commands import embeddings, leases


def store(context: CommandContext, command: StoreVector) -> VectorStored:
    """Store and index the vector if the memory's content is still the embedded one, and complete the job.

    Vectors of other models stay beside it; the job's result names the model of this one. Raises ``lease_lost``.
    """
    job = leases.active_lease(context, command.job_id, command.lease_id)
    leases.require_kind(job, EMBED)
    stored = job.memory_id is not None and _store(context, job.memory_id, command)
    result = {"stored": stored, "model": command.model, "dimensions": command.dimensions}
    leases.complete_leased(context, job, msgspec.json.encode(result).decode())
    return VectorStored(stored)


def _store(context: CommandContext, memory_id: str, command: StoreVector) -> bool:
    row = context.tx.one(
        "SELECT seq FROM memories WHERE id = ? AND content_hash = ? AND is_deleted = 0",
        (memory_id, command.content_hash),
    )
    vector = Vector(command.model, command.dimensions, 0)
    if row is None or context.vector_bytes(vector) is None:
        return False
    embeddings.remove(context, memory_id, model=command.model)
    seq = embeddings.store(context, memory_id, command.content_hash, vector)
    context.tx.execute(
        "UPDATE memories SET embedding_seq = ?, embedding_model = ? WHERE seq = ?", (seq, command.model, row[0])
    )
    return True
