"""Store the map of an agent."""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.features.projection.api import Stored, StoreProjection
from signet_actors.store.command_context import CommandContext

_PUT: Final = (
    "INSERT INTO umap_cache (id, agent_id, dimensions, embedding_count, newest_embedding, result_json, cached_at)"
    " VALUES (:id, :agent_id, :dimensions, :count, :newest, :result, :now)"
    " ON CONFLICT (agent_id, dimensions) DO UPDATE SET embedding_count = excluded.embedding_count,"
    " newest_embedding = excluded.newest_embedding, result_json = excluded.result_json, cached_at = excluded.cached_at"
)


def store(context: CommandContext, command: StoreProjection) -> Stored:
    """Store the map. Storing it again changes nothing."""
    made = command.projection
    row = {"id": context.new_id(), "agent_id": command.agent_id, "dimensions": command.dimensions, "now": context.now}
    row |= {"count": made.count, "newest": made.newest, "result": msgspec.json.encode(made.points).decode()}
    context.tx.execute(_PUT, row)
    return Stored()


WRITES: Final = {StoreProjection: store}
