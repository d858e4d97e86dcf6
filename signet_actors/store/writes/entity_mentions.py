"""Statements about ``memory_entity_mentions``, the links of memories to entities, and their counts in ``entities``.

Source: knowledge-graph.txt "Graph Persistence" (txDecrementEntityMentions).
"""

from __future__ import annotations

from typing import Final

from signet_actors.store.engine import WriteTransaction

_OF_MEMORY: Final = "SELECT x.entity_id FROM memory_entity_mentions x WHERE x.memory_id = :memory_id"
_DELETE: Final = "DELETE FROM memory_entity_mentions WHERE memory_id = :memory_id AND entity_id = :entity_id"
_COUNT_DOWN: Final = "UPDATE entities SET mentions = mentions - 1 WHERE id = :id AND mentions > 0"
_DELETE_UNMENTIONED: Final = "DELETE FROM entities WHERE id = :id AND mentions = 0 AND pinned = 0"


def remove(tx: WriteTransaction, memory_id: str) -> int:
    """Delete the memory's links, and the entities without any mention left; return the number of links."""
    entities = [entity for (entity,) in tx.rows(_OF_MEMORY, {"memory_id": memory_id})]
    for entity in entities:
        tx.execute(_DELETE, {"memory_id": memory_id, "entity_id": entity})
        tx.execute(_COUNT_DOWN, {"id": entity})
        tx.execute(_DELETE_UNMENTIONED, {"id": entity})
    return len(entities)
