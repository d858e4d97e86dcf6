"""Statements about attributes that have no aspect yet."""

from __future__ import annotations

from typing import Final

from signet_actors.store.engine import WriteTransaction

_AGENT: Final = "SELECT e.agent_id FROM entities e WHERE e.id = :entity_id"
_UNCLASSIFIED: Final = (
    "SELECT 1 FROM entity_attributes a JOIN memories m ON m.id = a.memory_id AND m.is_deleted = 0"
    " WHERE a.entity_id = :entity_id AND a.status = 'active' AND a.aspect_id IS NULL"
)
_AWAITS: Final = f"{_UNCLASSIFIED} AND a.id = :id"
_MORE: Final = f"{_UNCLASSIFIED} AND a.seq > :after LIMIT 1"
_SAYS: Final = (
    "SELECT 1 FROM entity_attributes a WHERE a.memory_id = :memory_id AND a.entity_id = :entity_id"
    " AND a.content = :content AND a.source = 'pipeline'"
)
_SET: Final = (
    "UPDATE entity_attributes SET aspect_id = :aspect_id, updated_at = :now,"
    " kind = CASE WHEN kind = 'constraint' THEN kind ELSE :kind END WHERE id = :id"
)


def agent_of(tx: WriteTransaction, entity_id: str) -> str | None:
    """Return whose entity it is, None if it was deleted."""
    agent_id: str | None = tx.value(_AGENT, {"entity_id": entity_id})
    return agent_id


def says(tx: WriteTransaction, memory_id: str, entity_id: str, content: str) -> bool:
    """Return whether an earlier run has found that the memory says this of the entity, classified or not."""
    return tx.value(_SAYS, {"memory_id": memory_id, "entity_id": entity_id, "content": content}) is not None


def awaits_aspect(tx: WriteTransaction, attribute_id: str, entity_id: str) -> bool:
    """Return whether the attribute of the entity has no aspect, and its memory is live."""
    return tx.value(_AWAITS, {"id": attribute_id, "entity_id": entity_id}) is not None


def set_aspect(tx: WriteTransaction, attribute_id: str, aspect_id: str, kind: str, now: str) -> None:
    """Give the attribute its aspect and kind; a constraint stays one."""
    tx.execute(_SET, {"id": attribute_id, "aspect_id": aspect_id, "kind": kind, "now": now})


def has_unclassified(tx: WriteTransaction, entity_id: str, after: int) -> bool:
    """Return whether the entity has attributes without an aspect after this row."""
    return tx.value(_MORE, {"entity_id": entity_id, "after": after}) is not None
