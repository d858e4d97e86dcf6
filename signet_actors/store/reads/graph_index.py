"""What searchers hold of the knowledge graph in memory, and what of it changed since the last time."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import conjunction, matching, readable
from signet_actors.store.reads.columns import ChangeFeed

_OLDEST_CHANGE = "SELECT min(c.change) FROM graph_changes c"
_CHANGES = "SELECT c.change, c.kind, c.id FROM graph_changes c WHERE c.change > :after ORDER BY c.change LIMIT :limit"
_ENTITY_IDS = (
    "SELECT e.id FROM entities e WHERE e.id > :after AND e.entity_type <> 'chunk_group' ORDER BY e.id LIMIT :limit"
)
_ENTITIES = (
    "SELECT e.id, e.agent_id, e.canonical_name, e.entity_type, e.pinned, e.merged_into, p.pin_type, p.weight_override"
    " FROM entities e LEFT JOIN entity_pinning p ON p.entity_id = e.id"
    " WHERE e.id IN ({}) AND e.entity_type <> 'chunk_group'"
)
_ASPECTS = "SELECT a.id, a.weight FROM entity_aspects a WHERE a.entity_id IN ({})"
_DEPENDENCIES = (
    "SELECT d.source_entity_id, d.target_entity_id, d.strength FROM entity_dependencies d"
    " WHERE d.source_entity_id IN ({})"
)
_RELATIONS = (
    "SELECT r.source_entity_id, r.target_entity_id, r.mentions FROM relations r WHERE r.source_entity_id IN ({})"
)
_SEQS = "SELECT m.seq FROM memories m WHERE m.id IN ({})"
_MENTIONED = (
    "SELECT m.seq, x.entity_id FROM memories m JOIN memory_entity_mentions x ON x.memory_id = m.id"
    " JOIN entities e ON e.id = x.entity_id WHERE {} AND e.entity_type <> 'chunk_group'"
)
_ATTRIBUTES = (
    "SELECT m.seq, a.entity_id, a.aspect_id, a.importance, a.kind = 'constraint', a.source = 'structured'"
    " FROM memories m JOIN entity_attributes a ON a.memory_id = m.id WHERE {} AND a.status = 'active'"
)
_FOCAL = (
    "SELECT c.focal_entity_ids FROM session_checkpoints c WHERE c.agent_id = :agent AND {} = :value"
    " AND c.focal_entity_ids IS NOT NULL ORDER BY c.seq DESC LIMIT 1"
)
_DESCRIBED = "SELECT e.id, e.name, e.entity_type FROM entities e WHERE e.id IN ({})"
_FACTS = (
    "SELECT a.memory_id, a.content, a.kind, coalesce(p.name, ''), m.seq FROM entity_attributes a"
    " JOIN memories m ON m.id = a.memory_id LEFT JOIN entity_aspects p ON p.id = a.aspect_id"
    " WHERE a.entity_id IN ({}) AND a.status = 'active' AND m.is_deleted = 0 AND {}"
    " ORDER BY CASE a.kind WHEN 'constraint' THEN 0 ELSE 1 END, a.importance * coalesce(p.weight, 0.5) DESC, a.seq DESC"
    " LIMIT :limit"
)
_STATED = (
    "SELECT e.name, coalesce(p.name, ''), a.content FROM entity_attributes a JOIN entities e ON e.id = a.entity_id"
    " JOIN memories m ON m.id = a.memory_id LEFT JOIN entity_aspects p ON p.id = a.aspect_id"
    " WHERE m.seq = :seq AND a.entity_id IN ({}) AND a.status = 'active' ORDER BY a.importance DESC, a.seq LIMIT 1"
)
_DEPENDS = (
    "SELECT d.dependency_type FROM entity_dependencies d"
    " WHERE d.source_entity_id IN ({}) AND d.target_entity_id IN ({})"
    " ORDER BY d.strength DESC, d.dependency_type LIMIT 1"
)
_IN_RANGE = "m.seq >= :first AND m.seq < :end"


class StoredEntity(NamedTuple):
    """An entity. ``pin_type``: pin, suppress or None."""

    id: str
    agent_id: str
    canonical_name: str
    entity_type: str
    pinned: int
    merged_into: str | None
    pin_type: str | None
    weight_override: float | None


class StoredAttribute(NamedTuple):
    """An active attribute; ``aspect_id`` is None until it is classified."""

    memory_seq: int
    entity_id: str
    aspect_id: str | None
    importance: float
    is_constraint: int
    is_structured: int


def change_feed(snapshot: Snapshot) -> ChangeFeed:
    """Return the ends of the list of changes."""
    return ChangeFeed(snapshot.value(_OLDEST_CHANGE), snapshot.last_number("graph_changes"))


def changes_after(snapshot: Snapshot, change: int, limit: int) -> list[tuple[int, str, str]]:
    """Return ``(change, kind, id)`` of the next changes, oldest first."""
    return snapshot.rows(_CHANGES, {"after": change, "limit": limit})


def entity_ids_after(snapshot: Snapshot, after: str, limit: int) -> list[str]:
    """Return the next ids of entities in their order."""
    return [entity for (entity,) in snapshot.rows(_ENTITY_IDS, {"after": after, "limit": limit})]


def entities(snapshot: Snapshot, ids: Sequence[str]) -> list[StoredEntity]:
    """Return those of the entities that exist."""
    return [StoredEntity(*row) for row in _of(snapshot, _ENTITIES, ids)]


def aspects(snapshot: Snapshot, entity_ids: Sequence[str]) -> list[tuple[str, float]]:
    """Return id and weight of the aspects of the entities."""
    return _of(snapshot, _ASPECTS, entity_ids)


def dependencies(snapshot: Snapshot, entity_ids: Sequence[str]) -> list[tuple[str, str, float]]:
    """Return ``(source, target, strength)`` of what the entities depend on."""
    return _of(snapshot, _DEPENDENCIES, entity_ids)


def relations(snapshot: Snapshot, entity_ids: Sequence[str]) -> list[tuple[str, str, int]]:
    """Return ``(source, target, mentions)`` of the relations from the entities."""
    return _of(snapshot, _RELATIONS, entity_ids)


def seqs(snapshot: Snapshot, memory_ids: Sequence[str]) -> list[int]:
    """Return the ``seq`` of those memories that exist."""
    return [seq for (seq,) in _of(snapshot, _SEQS, memory_ids)]


def mentions(snapshot: Snapshot, memory_ids: Sequence[str]) -> list[tuple[int, str]]:
    """Return ``(memories.seq, entity)`` of the mentions of the memories."""
    return _of(snapshot, _MENTIONED.format("m.id IN ({})"), memory_ids)


def mentions_between(snapshot: Snapshot, first: int, end: int) -> list[tuple[int, str]]:
    """Return the same for the memories of these ``seq``, the end exclusive."""
    return snapshot.rows(_MENTIONED.format(_IN_RANGE), {"first": first, "end": end})


def attributes(snapshot: Snapshot, memory_ids: Sequence[str]) -> list[StoredAttribute]:
    """Return the active attributes of the memories."""
    return [StoredAttribute(*row) for row in _of(snapshot, _ATTRIBUTES.format("m.id IN ({})"), memory_ids)]


def attributes_between(snapshot: Snapshot, first: int, end: int) -> list[StoredAttribute]:
    """Return the same for the memories of these ``seq``, the end exclusive."""
    return [StoredAttribute(*row) for row in snapshot.rows(_ATTRIBUTES.format(_IN_RANGE), {"first": first, "end": end})]


def focal_entities(
    snapshot: Snapshot, agent_id: str, session_key: str | None, project_normalized: str | None
) -> list[str]:
    """Return the ids of the entities that the session was about, else those of the last session of the project."""
    for column, value in (("c.session_key", session_key), ("c.project_normalized", project_normalized)):
        found = None if value is None else snapshot.value(_FOCAL.format(column), {"agent": agent_id, "value": value})
        if found is not None:
            return [str(each) for each in json.loads(found)]
    return []


def described(snapshot: Snapshot, ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return name and type of the entities by id."""
    return {id_: (name, type_) for id_, name, type_ in (_of(snapshot, _DESCRIBED, ids) if ids else ())}


def facts(
    snapshot: Snapshot, read: ReadScope, filters: Filters, entity_ids: Sequence[str], limit: int
) -> list[tuple[str, str, str, str, int]]:
    """Return ``(memory id, content, kind, aspect, seq)`` of attributes of readable memories, constraints first."""
    dialect = snapshot.dialect
    where, bindings = conjunction(readable(snapshot, read), matching(dialect, filters))
    sql = _FACTS.format(dialect.members("ids"), where)
    return snapshot.rows(sql, {**bindings, "ids": dialect.listed(entity_ids), "limit": limit})


def stated(snapshot: Snapshot, seq: int, entity_ids: Sequence[str]) -> tuple[str, str, str] | None:
    """Return ``(entity, aspect, content)`` of the most important attribute of the entities that the memory states."""
    dialect = snapshot.dialect
    row = snapshot.one(_STATED.format(dialect.members("ids")), {"ids": dialect.listed(entity_ids), "seq": seq})
    return None if row is None else (row[0], row[1], row[2])


def dependency_type(snapshot: Snapshot, source_ids: Sequence[str], target_ids: Sequence[str]) -> str | None:
    """Return the type of the strongest dependency of the first entities on the others."""
    dialect = snapshot.dialect
    sql = _DEPENDS.format(dialect.members("sources"), dialect.members("targets"))
    row = snapshot.one(sql, {"sources": dialect.listed(source_ids), "targets": dialect.listed(target_ids)})
    return None if row is None else str(row[0])


def _of(snapshot: Snapshot, sql: str, ids: Sequence[str]) -> list[tuple[Any, ...]]:
    dialect = snapshot.dialect
    return snapshot.rows(sql.format(dialect.members("ids")), {"ids": dialect.listed(ids)})
