"""What a memory contributes to the graph is counted while it is live, and removed with it.

Source: knowledge-graph.txt "Graph Persistence" (txDecrementEntityMentions, propagateMemoryStatus).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from signet_actors.domain.graph.names import CHUNK_GROUP
from signet_actors.store.engine import WriteTransaction
from signet_actors.store.writes.graph import count_statement

_OF_MEMORY: Final = "SELECT x.entity_id FROM memory_entity_mentions x WHERE x.memory_id = :memory_id"
_IS_GROUP: Final = f"SELECT 1 FROM entities e WHERE e.id = :id AND e.entity_type = '{CHUNK_GROUP}'"
_DELETE: Final = "DELETE FROM memory_entity_mentions WHERE memory_id = :memory_id AND entity_id = :entity_id"
_DELETE_BARE: Final = (
    f"{_DELETE} AND NOT EXISTS (SELECT 1 FROM entity_attributes a"
    " WHERE a.memory_id = :memory_id AND a.entity_id = :entity_id)"
)
_DELETE_RELATION: Final = (
    "DELETE FROM memory_relation_mentions WHERE memory_id = :memory_id AND relation_id = :relation_id"
)
_COUNT_DOWN: Final = "UPDATE entities SET mentions = mentions - 1 WHERE id = :id AND mentions > 0"
_COUNT: Final = (
    "UPDATE entities SET mentions = CASE WHEN mentions + :change > 0 THEN mentions + :change ELSE 0 END WHERE id IN"
    " (SELECT x.entity_id FROM memory_entity_mentions x WHERE x.memory_id = :memory_id)"
    f" AND entity_type <> '{CHUNK_GROUP}'"
)
_COUNT_PART: Final = (
    f"UPDATE entities SET mentions = mentions - 1 WHERE id = :id AND mentions > 0 AND entity_type = '{CHUNK_GROUP}'"
)
_DELETE_UNMENTIONED: Final = (
    "DELETE FROM entities WHERE id = :id AND pinned = 0"
    " AND NOT EXISTS (SELECT 1 FROM memory_entity_mentions x WHERE x.entity_id = :id)"
    " AND NOT EXISTS (SELECT 1 FROM entities o WHERE o.merged_into = :id)"
)
_MERGED_INTO: Final = "SELECT e.merged_into FROM entities e WHERE e.id = :id"
_RELATIONS: Final = "SELECT s.relation_id, s.confidence FROM memory_relation_mentions s WHERE s.memory_id = :memory_id"
_DELETE_RELATIONS: Final = "DELETE FROM memory_relation_mentions WHERE memory_id = :memory_id"
_ASPECTS: Final = (
    "SELECT DISTINCT a.aspect_id FROM entity_attributes a WHERE a.memory_id = :memory_id AND a.aspect_id <> ''"
)
_DELETE_ATTRIBUTES: Final = "DELETE FROM entity_attributes WHERE memory_id = :memory_id"
_ATTRIBUTES: Final = "SELECT a.id FROM entity_attributes a WHERE a.memory_id = :memory_id"
_DELETE_ATTRIBUTE: Final = "DELETE FROM entity_attributes WHERE memory_id = :memory_id AND id = :id"
_DELETE_ASPECT: Final = (
    "DELETE FROM entity_aspects WHERE id = :id"
    " AND NOT EXISTS (SELECT 1 FROM entity_attributes a WHERE a.aspect_id = :id)"
)
# What a model has found is kept: nothing finds it again when the memory comes back.
_PROPAGATE: Final = (
    "UPDATE entity_attributes SET status = :status, updated_at = :now,"
    " superseded_by = CASE WHEN superseded_how = 'semantic' THEN superseded_by END,"
    " superseded_how = CASE WHEN superseded_how = 'semantic' THEN superseded_how END"
    " WHERE memory_id = :memory_id AND status <> 'deleted'"
)
_OF_GRAPH: Final = (
    "SELECT 1 FROM memory_entity_mentions x JOIN entities e ON e.id = x.entity_id"
    f" WHERE x.memory_id = :memory_id AND e.entity_type <> '{CHUNK_GROUP}'"
)


def contributes(tx: WriteTransaction, memory_id: str) -> bool:
    """Return whether the memory mentions an entity; without one it contributes nothing else either."""
    return bool(tx.value(_OF_GRAPH, {"memory_id": memory_id}))


def count_live(tx: WriteTransaction, memory_id: str, now: str, new_id: Callable[[], str], *, live: bool) -> None:
    """Count the contributions of a memory that has just become ``live``, or no more those of one that is not.

    The caller then settles the memory's claims.
    """
    tx.execute(_COUNT, {"memory_id": memory_id, "change": 1 if live else -1})
    status = "active" if live else "superseded"
    tx.execute(_PROPAGATE, {"memory_id": memory_id, "status": status, "now": now})
    for relation, confidence in tx.rows(_RELATIONS, {"memory_id": memory_id}):
        count_statement(tx, relation, confidence, 1 if live else -1, now, new_id)


def entities_of(tx: WriteTransaction, memory_id: str) -> list[str]:
    """Return the ids of the entities that the memory mentions."""
    return [entity for (entity,) in tx.rows(_OF_MEMORY, {"memory_id": memory_id})]


def relations_of(tx: WriteTransaction, memory_id: str) -> list[str]:
    """Return the ids of the relations that the memory states."""
    return [relation for relation, _ in tx.rows(_RELATIONS, {"memory_id": memory_id})]


def attributes_of(tx: WriteTransaction, memory_id: str) -> list[str]:
    """Return the ids of the attributes that the memory contributes."""
    return [attribute for (attribute,) in tx.rows(_ATTRIBUTES, {"memory_id": memory_id})]


def remove_attributes(tx: WriteTransaction, memory_id: str, attributes: Sequence[str]) -> None:
    """Delete these attributes of the memory, and aspects that have none then. The caller settles what they replaced."""
    aspects = [aspect for (aspect,) in tx.rows(_ASPECTS, {"memory_id": memory_id})]
    for attribute in attributes:
        tx.execute(_DELETE_ATTRIBUTE, {"memory_id": memory_id, "id": attribute})
    for aspect in aspects:
        tx.execute(_DELETE_ASPECT, {"id": aspect})


def take_back(
    tx: WriteTransaction,
    memory_id: str,
    entities: Sequence[str],
    relations: Sequence[str],
    now: str,
    new_id: Callable[[], str],
    *,
    live: bool,
) -> None:
    """Delete these relations and mentions of a memory, but no mention of an entity about which it says more."""
    stated = dict(tx.rows(_RELATIONS, {"memory_id": memory_id}))
    for relation in stated.keys() & set(relations):
        tx.execute(_DELETE_RELATION, {"memory_id": memory_id, "relation_id": relation})
        count_statement(tx, relation, stated[relation], -1 if live else 0, now, new_id)
    for entity in entities:
        tx.execute(_DELETE_BARE, {"memory_id": memory_id, "entity_id": entity})
        if tx.changes():
            if live:
                tx.execute(_COUNT_DOWN, {"id": entity})
            _delete_unmentioned(tx, entity)


def remove(
    tx: WriteTransaction, memory_id: str, now: str, new_id: Callable[[], str], *, keeps_group: bool = False
) -> int:
    """Delete the contributions of a memory that is not counted any more; return the number of its mentions.

    ``keeps_group``: but not its link to the group of the parts of a long text.
    Deleted with them: entities without any mention that are not pinned, with all that belongs to them; relations that
    no memory states; aspects without attributes.
    """
    relations = relations_of(tx, memory_id)
    aspects = [aspect for (aspect,) in tx.rows(_ASPECTS, {"memory_id": memory_id})]
    entities = entities_of(tx, memory_id)
    if keeps_group:
        entities = [entity for entity in entities if not tx.value(_IS_GROUP, {"id": entity})]
    tx.execute(_DELETE_RELATIONS, {"memory_id": memory_id})
    for relation in relations:
        count_statement(tx, relation, 0.0, 0, now, new_id)
    tx.execute(_DELETE_ATTRIBUTES, {"memory_id": memory_id})
    for aspect in aspects:
        tx.execute(_DELETE_ASPECT, {"id": aspect})
    for entity in entities:
        tx.execute(_DELETE, {"memory_id": memory_id, "entity_id": entity})
        tx.execute(_COUNT_PART, {"id": entity})
        _delete_unmentioned(tx, entity)
    return len(entities)


def _delete_unmentioned(tx: WriteTransaction, entity: str) -> None:
    target = tx.value(_MERGED_INTO, {"id": entity})
    tx.execute(_DELETE_UNMENTIONED, {"id": entity})
    if target is not None and tx.changes():
        tx.execute(_DELETE_UNMENTIONED, {"id": target})
