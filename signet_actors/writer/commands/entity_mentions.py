"""Links between memories and entities, kept consistent with the entities' mention counts.

Source: knowledge-graph.txt "Graph Persistence" (txDecrementEntityMentions).
"""

from __future__ import annotations

from signet_actors.writer.command_context import CommandContext


def remove(context: CommandContext, memory_id: str) -> int:
    """Delete the memory's links, and the entities without any mention left; return the number of links."""
    entities = [
        entity
        for (entity,) in context.tx.rows(
            "SELECT entity_id FROM memory_entity_mentions WHERE memory_id = ?", (memory_id,)
        )
    ]
    for entity in entities:
        context.tx.execute(
            "DELETE FROM memory_entity_mentions WHERE memory_id = ? AND entity_id = ?", (memory_id, entity)
        )
        context.tx.execute("UPDATE entities SET mentions = max(0, mentions - 1) WHERE id = ?", (entity,))
        context.tx.execute("DELETE FROM entities WHERE id = ? AND mentions = 0 AND pinned = 0", (entity,))
    return len(entities)
