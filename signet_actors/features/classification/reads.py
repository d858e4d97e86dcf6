"""Read the facts of an entity that a model is to classify."""

from __future__ import annotations

from typing import Final

from signet_actors.domain.graph.classification import MAX_ASPECTS_SHOWN
from signet_actors.features.classification.api import EntityFact, EntityFacts, FindUnclassified
from signet_actors.store.engine import Snapshot

_ENTITY: Final = "SELECT e.name, e.entity_type FROM entities e WHERE e.id = :entity"
_ASPECTS: Final = (
    "SELECT p.name FROM entity_aspects p WHERE p.entity_id = :entity"
    " ORDER BY p.weight DESC, p.canonical_name LIMIT :limit"
)
_FACT: Final = (
    "SELECT a.seq, a.id, a.content, coalesce(p.canonical_name, ''), a.source_at FROM entity_attributes a"
    " JOIN memories m ON m.id = a.memory_id LEFT JOIN entity_aspects p ON p.id = a.aspect_id"
    " WHERE a.entity_id = :entity AND a.status = 'active' AND m.is_deleted = 0"
)
_UNCLASSIFIED: Final = f"{_FACT} AND a.aspect_id IS NULL AND a.seq > :after ORDER BY a.seq LIMIT :limit"
_SIBLINGS: Final = (
    f"{_FACT} AND a.aspect_id IS NOT NULL AND a.kind = 'attribute' AND a.claim_key IS NULL AND a.group_key IS NULL"
    " AND a.source IN ('pipeline', 'linker') ORDER BY a.source_at DESC, a.seq DESC LIMIT :limit"
)


def find(snapshot: Snapshot, asked: FindUnclassified) -> EntityFacts:
    """Return what a model is shown of the entity."""
    entity = {"entity": asked.part.entity}
    name, entity_type = snapshot.one(_ENTITY, entity) or ("", "")
    unclassified = {**entity, "after": asked.part.after, "limit": asked.limit}
    return EntityFacts(
        name,
        entity_type,
        [aspect for (aspect,) in snapshot.rows(_ASPECTS, {**entity, "limit": MAX_ASPECTS_SHOWN})],
        [EntityFact(*row) for row in snapshot.rows(_UNCLASSIFIED, unclassified)],
        [EntityFact(*row) for row in snapshot.rows(_SIBLINGS, {**entity, "limit": asked.siblings})],
    )


READS: Final = {FindUnclassified: find}
