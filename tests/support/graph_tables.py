"""The tables of the knowledge graph, filled by statements, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

NOW: Final = "2026-01-01T00:00:00.000Z"


class GraphTables:
    """Writes rows of the graph. ``connection``: the writer's own connection of the database."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self._made = 0

    def _id(self, kind: str) -> str:
        self._made += 1
        return f"{kind}-{self._made:05}"

    def entity(self, name: str, type: str = "unknown", *, agent: str = "default", pinned: bool = False) -> str:  # noqa: A002
        entity = self._id("entity")
        self.connection.execute(
            "INSERT INTO entities (id, name, canonical_name, entity_type, agent_id, pinned, pinned_at, created_at,"
            " updated_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (entity, name, name.lower(), type, agent, int(pinned), NOW if pinned else None, NOW, NOW),
        )
        return entity

    def mention(self, memory: str, *entities: str) -> None:
        for entity in entities:
            self.connection.execute(
                "INSERT INTO memory_entity_mentions (memory_id, entity_id, created_at) VALUES (?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                (memory, entity, NOW),
            )
            self._count("id = ?", entity)

    def _count(self, which: str, *values: str) -> None:
        self.connection.execute(
            "UPDATE entities SET mentions = (SELECT count(*) FROM memory_entity_mentions x JOIN memories m"
            f" ON m.id = x.memory_id AND m.is_deleted = 0 WHERE x.entity_id = entities.id) WHERE {which}",
            values,
        )

    def unlink(self, memory: str) -> None:
        self.connection.execute("DELETE FROM memory_entity_mentions WHERE memory_id = ?", (memory,))
        self.connection.execute("DELETE FROM entity_attributes WHERE memory_id = ?", (memory,))
        self._count("mentions > 0")

    def aspect(self, entity: str, name: str = "general", weight: float = 0.5) -> str:
        aspect = self._id("aspect")
        self.connection.execute(
            "INSERT INTO entity_aspects (id, entity_id, agent_id, name, canonical_name, weight, created_at, updated_at)"
            " SELECT ?, e.id, e.agent_id, ?, ?, ?, ?, ? FROM entities e WHERE e.id = ?",
            (aspect, name, name.lower(), weight, NOW, NOW, entity),
        )
        return aspect

    def attribute(
        self,
        memory: str,
        entity: str,
        aspect: str | None,
        content: str = "a fact",
        *,
        kind: str = "attribute",
        importance: float = 0.5,
        source: str = "structured",
        status: str = "active",
    ) -> str:
        """Add an attribute, and the mention that comes with it."""
        attribute = self._id("attribute")
        self.connection.execute(
            "INSERT INTO entity_attributes (id, entity_id, aspect_id, agent_id, memory_id, content, kind, status,"
            " importance, source, source_at, created_at, updated_at)"
            " SELECT ?, e.id, ?, e.agent_id, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM entities e WHERE e.id = ?",
            (attribute, aspect, memory, content, kind, status, importance, source, NOW, NOW, NOW, entity),
        )
        self.mention(memory, entity)
        return attribute

    def dependency(self, source: str, target: str, strength: float = 0.5, type: str = "uses") -> None:  # noqa: A002
        self.connection.execute(
            "INSERT INTO entity_dependencies (id, agent_id, source_entity_id, target_entity_id, dependency_type,"
            " strength, created_at, updated_at) SELECT ?, e.agent_id, e.id, ?, ?, ?, ?, ? FROM entities e"
            " WHERE e.id = ?",
            (self._id("dependency"), target, type, strength, NOW, NOW, source),
        )

    def relation(self, source: str, target: str, type: str = "related_to") -> None:  # noqa: A002
        self.connection.execute(
            "INSERT INTO relations (id, source_entity_id, target_entity_id, relation_type, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            (self._id("relation"), source, target, type, NOW, NOW),
        )

    def suppress(self, entity: str) -> None:
        self._pinning(entity, "suppress", None)

    def weigh(self, entity: str, weight: float) -> None:
        self._pinning(entity, "pin", weight)

    def _pinning(self, entity: str, type: str, weight: float | None) -> None:  # noqa: A002
        self.connection.execute(
            "INSERT INTO entity_pinning (entity_id, pin_type, weight_override, created_at) VALUES (?, ?, ?, ?)",
            (entity, type, weight, NOW),
        )

    def merge(self, source: str, target: str | None) -> None:
        self.connection.execute("UPDATE entities SET merged_into = ? WHERE id = ?", (target, source))

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return list(self.connection.execute(sql, values))
