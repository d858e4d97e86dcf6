"""Statements about attributes that later ones may replace: of one entity, aspect and group, without a claim key."""

from __future__ import annotations

from typing import Final, NamedTuple

from signet_actors.store.engine import Reads

_COMPARED: Final = (
    "a.claim_key IS NULL AND a.kind = 'attribute' AND a.source IN ('pipeline', 'linker') AND a.status <> 'deleted'"
)
_GROUP: Final = "coalesce(e.merged_into, e.id), p.canonical_name, coalesce(a.group_key, '')"
_JOINED: Final = "entity_attributes a JOIN entity_aspects p ON p.id = a.aspect_id JOIN entities e ON e.id = p.entity_id"
_GROUPS_OF_MEMORY: Final = f"SELECT DISTINCT {_GROUP} FROM {_JOINED} WHERE a.memory_id = :memory_id AND {_COMPARED}"
_GROUPS_OF_ASPECT: Final = f"SELECT DISTINCT {_GROUP} FROM {_JOINED} WHERE a.aspect_id = :aspect_id AND {_COMPARED}"
_GROUPS_OF_ENTITY: Final = (
    f"SELECT DISTINCT {_GROUP} FROM {_JOINED} WHERE (e.id = :entity_id OR e.merged_into = :entity_id) AND {_COMPARED}"
)
_ASPECTS_AFTER: Final = "SELECT p.id FROM entity_aspects p WHERE p.id > :after ORDER BY p.id LIMIT :limit"
_NAME: Final = "SELECT e.name FROM entities e WHERE e.id = :entity_id"
_SIBLINGS: Final = (
    "SELECT a.id, a.memory_id, a.aspect_id, a.content, a.source_at, a.status, a.superseded_by, a.superseded_how,"
    " m.pinned FROM entities e JOIN entity_aspects p ON p.entity_id = e.id JOIN entity_attributes a"
    " ON a.aspect_id = p.id JOIN memories m ON m.id = a.memory_id AND m.is_deleted = 0"
    " WHERE (e.id = :entity_id OR e.merged_into = :entity_id) AND p.canonical_name = :aspect"
    f" AND coalesce(a.group_key, '') = :group_key AND {_COMPARED} ORDER BY a.source_at DESC, a.seq DESC LIMIT :limit"
)
_PROPOSED: Final = (
    "SELECT 1 FROM memory_history h WHERE h.memory_id = :memory_id AND h.event = :event"
    " AND h.metadata ->> 'old_attribute_id' = :old AND h.metadata ->> 'new_attribute_id' = :new LIMIT 1"
)


class Group(NamedTuple):
    """Attributes that are compared: those of one entity, into which others may be merged, one aspect and one key."""

    entity_id: str
    aspect: str
    group_key: str


class Sibling(NamedTuple):
    """An attribute of a live memory, as it is compared."""

    id: str
    memory_id: str
    aspect_id: str
    content: str
    source_at: str
    status: str
    superseded_by: str | None
    superseded_how: str | None
    pinned: int


def groups_of_memory(reads: Reads, memory_id: str) -> list[Group]:
    """Return the groups to which the memory contributes, live or not."""
    return [Group(*row) for row in reads.rows(_GROUPS_OF_MEMORY, {"memory_id": memory_id})]


def groups_of_aspect(reads: Reads, aspect_id: str) -> list[Group]:
    """Return the groups of the aspect."""
    return [Group(*row) for row in reads.rows(_GROUPS_OF_ASPECT, {"aspect_id": aspect_id})]


def groups_of_entity(reads: Reads, entity_id: str) -> list[Group]:
    """Return the groups of the entity and of those that were merged into it."""
    return [Group(*row) for row in reads.rows(_GROUPS_OF_ENTITY, {"entity_id": entity_id})]


def aspects_after(reads: Reads, aspect_id: str, limit: int) -> list[str]:
    """Return the next aspects of the store in the order of their ids."""
    return [found for (found,) in reads.rows(_ASPECTS_AFTER, {"after": aspect_id, "limit": limit})]


def siblings(reads: Reads, group: Group, limit: int) -> list[Sibling]:
    """Return the newest attributes of live memories in the group, in the order of their time."""
    newest = reads.rows(_SIBLINGS, {**group._asdict(), "limit": limit})
    return [Sibling(*row) for row in reversed(newest)]


def name_of(reads: Reads, entity_id: str) -> str:
    """Return the name of the entity."""
    return reads.value(_NAME, {"entity_id": entity_id}) or ""


def is_proposed(reads: Reads, event: str, old: Sibling, new_id: str) -> bool:
    """Return whether the history of the older attribute's memory has such an event about the two."""
    pair = {"memory_id": old.memory_id, "event": event, "old": old.id, "new": new_id}
    return reads.value(_PROPOSED, pair) is not None
