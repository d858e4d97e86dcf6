"""The end of an embed job: store the vector of the memory's present content.

Source: memory-pipeline.txt "Embedding Tracker"; docs/decisions.md 5.
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.jobs import EMBED
from signet_actors.protocol.pipeline import StoreVector, VectorStored
from signet_actors.protocol.writer import Vector
from signet_actors.store.writes import memories as memory_rows
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
    memory_seq = memory_rows.live_seq_of_content(context.tx, memory_id, command.content_hash)
    vector = Vector(command.model, command.dimensions, 0, command.token_codes)
    if memory_seq is None or context.vector_bytes(vector) is None:
        return False
    embeddings.remove(context, memory_id, model=command.model)
    seq = embeddings.store(context, memory_id, command.content_hash, vector)
    memory_rows.set_embedding(context.tx, memory_seq, seq, command.model)
    return True
