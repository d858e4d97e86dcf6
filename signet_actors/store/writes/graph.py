"""Statements that write the knowledge graph: entities, aspects, attributes, relations, dependencies.

A memory contributes mentions, relations that it states, and attributes. ``entities.mentions``, the counts of relations
and the dependencies follow from the contributions of live memories; ``entity_mentions`` removes contributions.

Source: knowledge-graph.txt "Graph Persistence"; architecture.txt "Database Schema"; docs/decisions.md 68.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from signet_actors.domain.graph.names import CHUNK_GROUP, EXTRACTED
from signet_actors.domain.graph.relation_types import dependency_strength, dependency_type
from signet_actors.store.engine import Insert, Reads, WriteTransaction


class EntityRow(NamedTuple):
    """What a writer needs to know of an entity."""

    id: str
    name: str
    entity_type: str


class MentionRow(NamedTuple):
    """A link from a memory to an entity that it mentions."""

    memory_id: str
    entity_id: str
    mention_text: str
    confidence: float
    created_at: str


class AttributeRow(NamedTuple):
    """A new attribute. ``aspect_id`` is None until it is classified; ``source_at`` orders claims."""

    id: str
    entity_id: str
    aspect_id: str | None
    agent_id: str
    memory_id: str
    content: str
    kind: str
    group_key: str | None
    claim_key: str | None
    confidence: float
    importance: float
    source: str
    source_at: str
    created_at: str
    updated_at: str


class ClaimRow(NamedTuple):
    """An attribute among those that may replace each other."""

    id: str
    memory_id: str
    content: str
    kind: str
    status: str
    superseded_by: str | None
    superseded_how: str | None
    is_live: int
    """Whether its memory is neither forgotten nor removed."""
    aspect_id: str | None


MENTIONS: Final = Insert("memory_entity_mentions", MentionRow._fields, "ON CONFLICT (memory_id, entity_id) DO NOTHING")
ATTRIBUTES: Final = Insert("entity_attributes", AttributeRow._fields)

_IS_LIVE: Final = "coalesce((SELECT 1 - m.is_deleted FROM memories m WHERE m.id = {}), 0)"
_NAMES: Final = (
    f"SELECT e.canonical_name FROM entities e WHERE e.agent_id = :agent_id AND e.entity_type <> '{CHUNK_GROUP}'"
)
_BY_NAME: Final = (
    "SELECT e.canonical_name, e.id, e.name, e.entity_type FROM entities e"
    " WHERE e.agent_id = :agent_id AND e.canonical_name IN ({})"
)
_MENTIONS: Final = "SELECT e.mentions FROM entities e WHERE e.id = :id"
_INSERT_ENTITY: Final = (
    "INSERT INTO entities (id, name, canonical_name, entity_type, agent_id, mentions, created_at, updated_at)"
    " VALUES (:id, :name, :canonical, :type, :agent_id, 0, :now, :now)"
)
_SET_TYPE: Final = (
    f"UPDATE entities SET entity_type = :type, updated_at = :now WHERE id = :id AND entity_type = '{EXTRACTED}'"
)
_COUNT_MENTIONS: Final = "UPDATE entities SET mentions = mentions + 1, updated_at = :now WHERE id IN ({})"
_ADD_MENTION: Final = (
    "INSERT INTO memory_entity_mentions (memory_id, entity_id, mention_text, confidence, created_at)"
    " VALUES (:memory_id, :entity_id, :mention_text, :confidence, :created_at)"
    " ON CONFLICT (memory_id, entity_id) DO NOTHING"
)
_ASPECT: Final = "SELECT p.id FROM entity_aspects p WHERE p.entity_id = :entity_id AND p.canonical_name = :canonical"
_INSERT_ASPECT: Final = (
    "INSERT INTO entity_aspects (id, entity_id, agent_id, name, canonical_name, created_at, updated_at)"
    " VALUES (:id, :entity_id, :agent_id, :name, :canonical, :now, :now)"
)
_SAME_ATTRIBUTE: Final = (
    "SELECT a.id, a.source_at FROM entity_attributes a WHERE a.memory_id = :memory_id AND a.entity_id = :entity_id"
    " AND coalesce(a.aspect_id, '') = :aspect_id AND coalesce(a.group_key, '') = :group_key"
    " AND coalesce(a.claim_key, '') = :claim_key AND a.content = :content AND a.status <> 'deleted'"
)
_RENEW: Final = "UPDATE entity_attributes SET source_at = :source_at, updated_at = :now WHERE id = :id"
_RELATION: Final = (
    "SELECT r.id FROM relations r WHERE r.source_entity_id = :source AND r.target_entity_id = :target"
    " AND r.relation_type = :type"
)
_INSERT_RELATION: Final = (
    "INSERT INTO relations"
    " (id, source_entity_id, target_entity_id, relation_type, mentions, confidence, created_at, updated_at)"
    " VALUES (:id, :source, :target, :type, 0, 0.0, :now, :now)"
)
_STATE_RELATION: Final = (
    "INSERT INTO memory_relation_mentions (memory_id, relation_id, confidence, created_at)"
    " VALUES (:memory_id, :relation_id, :confidence, :now) ON CONFLICT (memory_id, relation_id) DO NOTHING"
)
_IS_STATED: Final = "SELECT 1 FROM memory_relation_mentions s WHERE s.relation_id = :id LIMIT 1"
_SET_RELATION: Final = (
    "UPDATE relations SET mentions = :mentions, confidence = :confidence, updated_at = :now WHERE id = :id"
)
_DELETE_RELATION: Final = "DELETE FROM relations WHERE id = :id"
_COUNTED: Final = (
    "SELECT r.source_entity_id, r.target_entity_id, r.mentions, r.confidence FROM relations r WHERE r.id = :id"
)
_BETWEEN: Final = (
    "SELECT r.relation_type, r.confidence, r.mentions FROM relations r"
    " WHERE r.source_entity_id = :source AND r.target_entity_id = :target AND r.mentions > 0"
)
_DEPENDENCIES: Final = (
    "SELECT d.dependency_type, d.strength FROM entity_dependencies d"
    " WHERE d.source_entity_id = :source AND d.target_entity_id = :target"
)
_PUT_DEPENDENCY: Final = (
    "INSERT INTO entity_dependencies"
    " (id, agent_id, source_entity_id, target_entity_id, dependency_type, strength, created_at, updated_at)"
    " SELECT :id, e.agent_id, :source, :target, :type, :strength, :now, :now FROM entities e WHERE e.id = :source"
    " ON CONFLICT (source_entity_id, target_entity_id, dependency_type)"
    " DO UPDATE SET strength = excluded.strength, updated_at = excluded.updated_at"
)
_DELETE_DEPENDENCY: Final = (
    "DELETE FROM entity_dependencies"
    " WHERE source_entity_id = :source AND target_entity_id = :target AND dependency_type = :type"
)
_OF_CLAIM: Final = (
    "SELECT a.id, a.memory_id, a.content, a.kind, a.status, a.superseded_by, a.superseded_how,"
    f" {_IS_LIVE.format('a.memory_id')}, a.aspect_id"
    " FROM entities e JOIN entity_aspects p ON p.entity_id = e.id JOIN entity_attributes a ON a.aspect_id = p.id"
    " WHERE (e.id = :entity_id OR e.merged_into = :entity_id) AND p.canonical_name = :aspect AND a.status {}"
    " AND coalesce(a.group_key, '') = :group_key AND a.claim_key = :claim_key ORDER BY a.source_at, a.seq"
)
_CLAIMS_OF_MEMORY: Final = (
    "SELECT DISTINCT coalesce(e.merged_into, e.id), p.canonical_name, coalesce(a.group_key, ''), a.claim_key"
    " FROM entity_attributes a JOIN entity_aspects p ON p.id = a.aspect_id JOIN entities e ON e.id = a.entity_id"
    " WHERE a.memory_id = :memory_id AND a.claim_key IS NOT NULL AND a.status <> 'deleted'"
)
_CLAIMS_ABOUT: Final = (
    "SELECT DISTINCT :entity_id, p.canonical_name, coalesce(a.group_key, ''), a.claim_key FROM entities e"
    " JOIN entity_attributes a ON a.entity_id = e.id JOIN entity_aspects p ON p.id = a.aspect_id"
    " WHERE (e.id = :entity_id OR e.merged_into = :entity_id) AND a.claim_key IS NOT NULL AND a.status <> 'deleted'"
)
_MERGE_ALL: Final = "UPDATE entities SET merged_into = :into WHERE id = :id OR merged_into = :id"
_SET_MERGED_INTO: Final = "UPDATE entities SET merged_into = :into WHERE id = :id"
_SET_MERGE_PARENT: Final = "UPDATE entities SET merge_parent = :into WHERE id = :id"
_MERGE_PARENTS: Final = "SELECT e.id, e.merge_parent FROM entities e WHERE e.merged_into = :id"
_SET_STATUS: Final = (
    "UPDATE entity_attributes SET status = :status, superseded_by = :by, superseded_how = :how, updated_at = :now"
    " WHERE id = :id"
)


class Claim(NamedTuple):
    """Which attributes replace each other: those of one entity, aspect, group and key."""

    entity_id: str
    """The entity into which others may be merged."""
    aspect: str
    group_key: str
    claim_key: str


def names_of(reads: Reads, agent_id: str) -> list[str]:
    """Return the canonical names of the agent's entities."""
    return [name for (name,) in reads.rows(_NAMES, {"agent_id": agent_id})]


def entities_named(tx: WriteTransaction, agent_id: str, canonical: Sequence[str]) -> dict[str, EntityRow]:
    """Return those of the agent's entities that have one of these canonical names, by the name."""
    names = {"agent_id": agent_id, "names": tx.dialect.listed(canonical)}
    found = tx.rows(_BY_NAME.format(tx.dialect.members("names")), names)
    return {name: EntityRow(*row) for name, *row in found}


def mentions_of(tx: WriteTransaction, entity_id: str) -> int:
    """Return how many live memories mention the entity, without those that mention what was merged into it."""
    return tx.value(_MENTIONS, {"id": entity_id}) or 0


def insert_entity(tx: WriteTransaction, agent_id: str, entity: EntityRow, canonical: str, now: str) -> None:
    """Insert an entity that nothing mentions yet."""
    row = {**entity._asdict(), "type": entity.entity_type, "canonical": canonical, "agent_id": agent_id, "now": now}
    del row["entity_type"]
    tx.execute(_INSERT_ENTITY, row)


def set_type(tx: WriteTransaction, entity_id: str, entity_type: str, now: str) -> None:
    """Say what the entity is, if nothing has said it before."""
    tx.execute(_SET_TYPE, {"id": entity_id, "type": entity_type, "now": now})


def count_mentions(tx: WriteTransaction, ids: Sequence[str], now: str) -> None:
    """Count one more live memory that mentions each of the entities."""
    tx.execute(_COUNT_MENTIONS.format(tx.dialect.members("ids")), {"ids": tx.dialect.listed(ids), "now": now})


def add_mention(tx: WriteTransaction, mention: MentionRow) -> None:
    """Link a live memory to the entity, once."""
    tx.execute(_ADD_MENTION, mention._asdict())
    if tx.changes():
        count_mentions(tx, [mention.entity_id], mention.created_at)


def upsert_aspect(
    tx: WriteTransaction, entity_id: str, agent_id: str, name: str, canonical: str, now: str, new_id: Callable[[], str]
) -> str:
    """Return the id of the entity's aspect, which is inserted if it is new."""
    aspect_id: str | None = tx.value(_ASPECT, {"entity_id": entity_id, "canonical": canonical})
    if aspect_id is None:
        aspect_id = new_id()
        row = {"id": aspect_id, "entity_id": entity_id, "agent_id": agent_id, "name": name, "canonical": canonical}
        tx.execute(_INSERT_ASPECT, {**row, "now": now})
    return aspect_id


def add_attribute(tx: WriteTransaction, row: AttributeRow, *, renews: bool = False) -> bool:
    """Insert the attribute; return False if the memory has contributed the same one already.

    ``renews``: that one has the later time of both then.
    """
    same = {**row._asdict(), "aspect_id": row.aspect_id or ""}
    same |= {"group_key": row.group_key or "", "claim_key": row.claim_key or ""}
    known = tx.one(_SAME_ATTRIBUTE, same)
    if known is not None:
        if renews and row.source_at > known[1]:
            tx.execute(_RENEW, {"id": known[0], "source_at": row.source_at, "now": row.updated_at})
        return False
    tx.insert(ATTRIBUTES, row)
    return True


def state_relation(
    tx: WriteTransaction,
    memory_id: str,
    ends: tuple[str, str],
    relation: str,
    confidence: float,
    now: str,
    new_id: Callable[[], str],
) -> None:
    """Note that the live memory states the relation from the first entity to the second, once."""
    between = {"source": ends[0], "target": ends[1], "type": relation}
    relation_id = tx.value(_RELATION, between)
    if relation_id is None:
        relation_id = new_id()
        tx.execute(_INSERT_RELATION, {**between, "id": relation_id, "now": now})
    stated = {"memory_id": memory_id, "relation_id": relation_id, "confidence": confidence, "now": now}
    tx.execute(_STATE_RELATION, stated)
    if tx.changes():
        count_statement(tx, relation_id, confidence, 1, now, new_id)


def count_statement(
    tx: WriteTransaction, relation_id: str, confidence: float, change: int, now: str, new_id: Callable[[], str]
) -> None:
    """Count a statement of the relation that a memory makes (1), or makes no more (-1), or that is not there (0).

    The relation has the mean confidence of those that count, and implies dependencies by it. One that no memory states,
    live or deleted, is deleted.
    """
    row = tx.one(_COUNTED, {"id": relation_id})
    if row is None:
        return
    *ends, counted, mean = row
    mentions = max(0, counted + change)
    if not mentions and not tx.value(_IS_STATED, {"id": relation_id}):
        tx.execute(_DELETE_RELATION, {"id": relation_id})
    elif change:
        mean = min(1.0, max(0.0, (mean * counted + change * confidence) / mentions)) if mentions else 0.0
        tx.execute(_SET_RELATION, {"id": relation_id, "mentions": mentions, "confidence": mean, "now": now})
    between = {"source": ends[0], "target": ends[1]}
    strengths: dict[str, float] = {}
    for relation, mean, count in tx.rows(_BETWEEN, between):
        kind = dependency_type(relation)
        strengths[kind] = max(strengths.get(kind, 0.0), dependency_strength(mean, count))
    known = dict(tx.rows(_DEPENDENCIES, between))
    for kind in known.keys() - strengths.keys():
        tx.execute(_DELETE_DEPENDENCY, {**between, "type": kind})
    for kind, strength in strengths.items():
        if known.get(kind) != strength:
            row = {**between, "id": new_id(), "type": kind, "strength": strength, "now": now}
            tx.execute(_PUT_DEPENDENCY, row)


def claims_of(tx: WriteTransaction, memory_id: str) -> list[Claim]:
    """Return the claims that the memory makes."""
    return [Claim(*row) for row in tx.rows(_CLAIMS_OF_MEMORY, {"memory_id": memory_id})]


def of_claim(tx: WriteTransaction, claim: Claim, *, only_active: bool = False) -> list[ClaimRow]:
    """Return what memories say about the claim, by their time."""
    status = "= 'active'" if only_active else "<> 'deleted'"
    return [ClaimRow(*row) for row in tx.rows(_OF_CLAIM.format(status), claim._asdict())]


def set_status(
    tx: WriteTransaction, attribute_id: str, status: str, now: str, *, by: str | None = None, how: str | None = None
) -> None:
    """Set the status of an attribute; ``by`` and ``how``: what has superseded it, and by which rule."""
    tx.execute(_SET_STATUS, {"id": attribute_id, "status": status, "by": by, "how": how, "now": now})


def claims_about(tx: WriteTransaction, entity_id: str) -> list[Claim]:
    """Return the claims about the entity and those that are merged into it."""
    return [Claim(*row) for row in tx.rows(_CLAIMS_ABOUT, {"entity_id": entity_id})]


def merge_all(tx: WriteTransaction, entity_id: str, into: str) -> None:
    """Make the entity and all that are merged into it other names of ``into``."""
    tx.execute(_MERGE_ALL, {"id": entity_id, "into": into})


def set_merged_into(tx: WriteTransaction, entity_id: str, into: str | None) -> None:
    """Set of which entity this one is another name, None if of none."""
    tx.execute(_SET_MERGED_INTO, {"id": entity_id, "into": into})


def set_merge_parent(tx: WriteTransaction, entity_id: str, into: str | None) -> None:
    """Set into which entity this one was merged itself."""
    tx.execute(_SET_MERGE_PARENT, {"id": entity_id, "into": into})


def merge_parents(tx: WriteTransaction, entity_id: str) -> list[tuple[str, str | None]]:
    """Return what is merged into the entity, each with the entity into which it was merged itself."""
    return tx.rows(_MERGE_PARENTS, {"id": entity_id})
