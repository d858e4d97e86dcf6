"""What an agent may read of its graph: entities, and what live memories that it may read say about them.

What belongs to an entity that was merged counts as its target's: each query goes through the members of its entities.

Source: knowledge-graph.txt "Data Model", "Entity Pinning"; docs/compatibility.md "Knowledge graph";
docs/decisions.md 35, 68.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from signet_actors.domain.graph.names import CHUNK_GROUP, canonical_name
from signet_actors.domain.graph.relation_types import dependency_type
from signet_actors.errors import NotFound
from signet_actors.features.entities import api
from signet_actors.features.entities.rules import GENERAL, containing
from signet_actors.operations.request_fields import AgentFields
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Reads, Snapshot
from signet_actors.store.read_policy import is_archived, readable

OWN: Final = f"e.agent_id = :agent_id AND e.entity_type <> '{CHUNK_GROUP}'"
"""The entities of the agent; ``e`` is the alias of ``entities``."""
_MEMBERS: Final = (
    "member (target, id) AS (SELECT g.id, g.id FROM entities g WHERE g.id IN ({ids})"
    " UNION ALL SELECT g.merged_into, g.id FROM entities g WHERE g.merged_into IN ({ids}))"
)
"""The entities ``:ids`` and those that were merged into one of them."""
SEEN: Final = (
    "({0}.mentions > 0 OR {0}.pinned = 1"
    " OR EXISTS (SELECT 1 FROM entities h WHERE h.merged_into = {0}.id AND h.mentions > 0))"
)
_ANY_MERGED: Final = "SELECT 1 FROM entities g WHERE g.merged_into IS NOT NULL LIMIT 1"
"""Of any agent: what nothing is merged into needs no count of its own."""
_JOINT: Final = (
    "CASE WHEN EXISTS (SELECT 1 FROM entities h WHERE h.merged_into = e.id) THEN"
    " (SELECT count(DISTINCT x.memory_id) FROM entities g CROSS JOIN memory_entity_mentions x ON x.entity_id = g.id"
    " CROSS JOIN memories m ON m.id = x.memory_id AND m.is_deleted = 0 WHERE g.id = e.id OR g.merged_into = e.id)"
    " ELSE e.mentions END"
)
"""The mentions of an entity into which others were merged: a memory that mentions two of them counts once."""
_ENTITY: Final = (
    "SELECT e.id, e.name, e.canonical_name, e.entity_type, e.agent_id, e.description, {mentions}, e.pinned,"
    " e.pinned_at, CASE WHEN p.pin_type = 'suppress' THEN 1 ELSE 0 END, p.weight_override, e.community_id,"
    " e.created_at, e.updated_at"
    f" FROM entities e LEFT JOIN entity_pinning p ON p.entity_id = e.id WHERE {OWN} AND e.merged_into IS NULL"
    f" AND {SEEN.format('e')} AND {{where}}"
    " ORDER BY e.pinned DESC, e.pinned_at DESC, {mentions} DESC, e.canonical_name LIMIT :limit OFFSET :offset"
)
_TARGET: Final = f"SELECT coalesce(e.merged_into, e.id) FROM entities e WHERE {OWN} AND {{}}"
_SAID: Final = (
    "FROM member b CROSS JOIN entity_attributes a ON a.entity_id = b.id"
    " CROSS JOIN memories m ON m.id = a.memory_id AND m.is_deleted = 0 AND {readable}"
    " LEFT JOIN entity_aspects s ON s.id = a.aspect_id"
)
"""The attributes of members that come from live memories, which the agent may read."""
_ACTIVE: Final = "sum(CASE WHEN a.status = 'active' AND a.kind = '{}' THEN 1 ELSE 0 END)"
_BOTH_KINDS: Final = f"{_ACTIVE.format('attribute')}, {_ACTIVE.format('constraint')}"
_COUNTS: Final = f"SELECT b.target, count(DISTINCT s.canonical_name), {_BOTH_KINDS} {_SAID} GROUP BY b.target"
_ASPECTS: Final = (
    "SELECT b.target, min(s.id), min(s.name), s.canonical_name, max(s.weight), min(s.created_at), max(s.updated_at),"
    f" {_BOTH_KINDS} {_SAID} WHERE s.id IS NOT NULL GROUP BY b.target, s.canonical_name"
    " ORDER BY max(s.weight) DESC, s.canonical_name"
)
_ATTRIBUTES: Final = (
    "SELECT a.id, b.target, a.agent_id, a.aspect_id, s.name, a.memory_id, a.memory_id, a.kind, a.content, a.content,"
    " a.confidence, a.importance, a.status, a.superseded_by, a.superseded_how, a.group_key, a.claim_key, a.source,"
    f" a.source_at, a.created_at, a.updated_at {_SAID}"
    " WHERE (:status = 'all' OR a.status = :status) AND (:kind IS NULL OR a.kind = :kind)"
    " AND (:aspect IS NULL OR s.canonical_name = :aspect) AND (:claim IS NULL OR a.claim_key = :claim)"
    " AND (:group IS NULL OR coalesce(a.group_key, :general) = :group)"
    " ORDER BY a.importance DESC, a.source_at DESC, a.seq DESC LIMIT :limit OFFSET :offset"
)
_EDGE: Final = (
    "SELECT b.target, v.id, v.name, v.entity_type, d.{type}, max(d.{strength}), min(d.id), min(d.created_at),"
    " max(d.updated_at) FROM member b CROSS JOIN {table} d ON d.{here}_entity_id = b.id"
    " CROSS JOIN entities e ON e.id = d.{there}_entity_id CROSS JOIN entities v ON v.id = coalesce(e.merged_into, e.id)"
    f" WHERE {OWN} AND v.id <> b.target AND {SEEN.format('v')}"
    " GROUP BY b.target, v.id, v.name, v.entity_type, d.{type}"
)
_EDGES: Final = f"{_EDGE} ORDER BY max(d.{{strength}}) DESC, v.name, v.id LIMIT :limit"
_EDGE_COUNTS: Final = f"SELECT q.target, count(*) FROM ({_EDGE}) q GROUP BY q.target"
_DEPENDENCY: Final = {"table": "entity_dependencies", "type": "dependency_type", "strength": "strength"}
_RELATION: Final = {"table": "relations", "type": "relation_type", "strength": "confidence"}
_WANTED: Final = (
    "(:type IS NULL OR e.entity_type = :type) AND (:pattern IS NULL OR e.canonical_name LIKE :pattern ESCAPE '!')"
)
_ENDS: Final = {"outgoing": ("source", "target"), "incoming": ("target", "source")}
_ASPECT_KEY: Final = (
    "SELECT s.canonical_name FROM entity_aspects s JOIN entities e ON e.id = s.entity_id"
    f" WHERE s.id = :aspect AND coalesce(e.merged_into, e.id) = :id AND {OWN}"
)
MAX_EDGES: Final = 5000


class Edge(NamedTuple):
    """A dependency or a relation between ``here`` and ``there``, which begins at ``here`` if it is outgoing."""

    here: str
    there: str
    name: str
    entity_type: str
    type: str
    strength: float
    id: str
    created_at: str
    updated_at: str
    direction: str
    is_dependency: bool


class OwnGraph:
    """The graph of the agent as it may read it; empty if the agent was archived."""

    def __init__(self, view: Reads, read: ReadScope) -> None:
        self.view = view
        self.agent_id = "" if is_archived(view, read.agent_id) else read.agent_id
        self.readable, bindings = readable(view, read)
        self.bindings: dict[str, Any] = {**bindings, "agent_id": self.agent_id}
        self._any_merged = view.one(_ANY_MERGED) is not None

    def target(self, named: str) -> str | None:
        """Return the id of the entity with this id or this name, of its target if it was merged; None if none."""
        by_id = self._target("e.id = :named", named)
        return by_id or self._target("e.canonical_name = :named", canonical_name(named))

    def _target(self, where: str, named: str) -> str | None:
        found: str | None = self.view.value(_TARGET.format(where), {**self.bindings, "named": named})
        return found

    def entities(
        self, where: str = "1 = 1", *, limit: int = api.MAX_PAGE, offset: int = 0, **bindings: Any
    ) -> list[api.Entity]:
        """Return the visible entities for which the condition holds, pinned ones first, then by mentions."""
        sql = _ENTITY.format(mentions=_JOINT if self._any_merged else "e.mentions", where=where)
        rows = self.view.rows(sql, {**self.bindings, **bindings, "limit": limit, "offset": offset})
        return [_entity(row) for row in rows]

    def entity(self, named: str) -> api.Entity | None:
        """Return the visible entity with this id or this name."""
        found = self.entities("e.id = :id", id=self.target(named))
        return found[0] if found else None

    def of_members(self, sql: str, ids: Sequence[str], **bindings: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query about the members of the entities."""
        dialect = self.view.dialect
        members = _MEMBERS.format(ids=dialect.members("ids"))
        return self.rows(f"WITH {members} {sql}", **bindings, ids=dialect.listed(ids))

    def rows(self, sql: str, **bindings: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query about the agent's graph."""
        return self.view.rows(sql.replace("{readable}", self.readable), {**self.bindings, **bindings})

    def counts(self, ids: Sequence[str]) -> dict[str, api.Counts]:
        """Return what is known about each of the entities, counted."""
        said = {row[0]: row[1:] for row in self.of_members(_COUNTS, ids)}
        edges = [self.edge_counts(ids, direction) for direction in _ENDS]
        total = {one: sum(count.get(one, 0) for count in edges) for one in ids}
        return {one: api.Counts(*(*said.get(one, (0, 0, 0)), total[one])) for one in ids}

    def edge_counts(self, ids: Sequence[str], direction: str) -> dict[str, int]:
        """Return how many dependencies the entities have in the direction."""
        here, there = _ENDS[direction]
        return dict(self.of_members(_EDGE_COUNTS.format(**_DEPENDENCY, here=here, there=there), ids))

    def aspects(self, ids: Sequence[str]) -> list[api.ListedAspect]:
        """Return the aspects of the entities; aspects with the same name of merged entities are one."""
        return [
            api.ListedAspect(
                api.Aspect(
                    *(aspect_id, entity_id, self.agent_id, name, key, weight, name, created_at, updated_at),
                ),
                *counts,
            )
            for entity_id, aspect_id, name, key, weight, created_at, updated_at, *counts in self.of_members(
                _ASPECTS, ids
            )
        ]

    def aspect_key(self, entity_id: str, named: str) -> str:
        """Return the canonical name of the aspect with this id or this name."""
        found = self.view.value(_ASPECT_KEY, {**self.bindings, "id": entity_id, "aspect": named})
        return found or canonical_name(named)

    def attributes(
        self,
        ids: Sequence[str],
        *,
        limit: int,
        offset: int = 0,
        status: str = "active",
        kind: str | None = None,
        aspect: str | None = None,
        group: str | None = None,
        claim: str | None = None,
    ) -> list[api.Attribute]:
        """Return the attributes of the entities, the most important first. ``aspect``: its canonical name."""
        values = {"status": status, "kind": kind, "aspect": aspect, "group": group, "claim": claim}
        page = {"general": GENERAL, "limit": limit, "offset": offset}
        return [api.Attribute(*row) for row in self.of_members(_ATTRIBUTES, ids, **values, **page)]

    def edges(
        self, ids: Sequence[str], directions: Iterable[str] = tuple(_ENDS), *, relations: bool = False
    ) -> list[Edge]:
        """Return the dependencies between the entities and visible ones.

        With ``relations`` also these, and of the dependencies only those that do not follow from one of them.
        """
        found: list[Edge] = []
        for direction in directions:
            here, there = _ENDS[direction]
            for kind in (_RELATION, _DEPENDENCY) if relations else (_DEPENDENCY,):
                rows = self.of_members(_EDGES.format(**kind, here=here, there=there), ids, limit=MAX_EDGES)
                edges = [Edge(*(*row, direction, kind is _DEPENDENCY)) for row in rows]
                implied = {(one.here, one.there, dependency_type(one.type), one.direction) for one in found}
                found += [one for one in edges if (one.here, one.there, one.type, one.direction) not in implied]
        return found


def _entity(row: Sequence[Any]) -> api.Entity:
    values = dict(zip(api.Entity.__struct_fields__, row, strict=True))
    return api.Entity(**{**values, "pinned": bool(values["pinned"]), "suppressed": bool(values["suppressed"])})


def listed(snapshot: Snapshot, asked: Asked[api.ListEntitiesRequest]) -> api.EntitiesReply:
    """Return a page of the entities with how much is known about each."""
    page, graph = asked.request, OwnGraph(snapshot, asked.caller.read)
    wanted = {
        "type": page.type and canonical_name(page.type),
        "pattern": None if page.q is None else containing(page.q),
    }
    found = graph.entities(_WANTED, limit=page.limit, offset=page.offset, **wanted)
    counts = graph.counts([each.id for each in found])
    items = [api.ListedEntity(*msgspec.structs.astuple(counts[each.id]), entity=each) for each in found]
    return api.EntitiesReply(items, page.limit, page.offset)


def pinned(snapshot: Snapshot, asked: Asked[AgentFields]) -> list[api.PinnedEntity]:
    """Return all pinned entities, the one that was pinned last first."""
    found = OwnGraph(snapshot, asked.caller.read).entities("e.pinned = 1", limit=api.MAX_PINNED)
    return [msgspec.convert(each, api.PinnedEntity, from_attributes=True) for each in found]


def health(_snapshot: Snapshot, _asked: Asked[AgentFields]) -> list[api.EntityHealth]:
    return []


def get(snapshot: Snapshot, asked: Asked[AgentFields]) -> api.EntityDetail:
    """Return the entity of the path. Raises NotFound."""
    return detail(OwnGraph(snapshot, asked.caller.read), asked.caller.path["id"])


def detail(graph: OwnGraph, named: str) -> api.EntityDetail:
    """Return the entity with this id or this name. Raises NotFound."""
    entity = graph.entity(named)
    if entity is None:
        raise NotFound(api.NOT_FOUND)
    counts = graph.counts([entity.id])[entity.id]
    incoming, outgoing = (
        graph.edge_counts([entity.id], direction).get(entity.id, 0) for direction in api.DIRECTIONS[:2]
    )
    return api.EntityDetail(
        *msgspec.structs.astuple(counts),
        entity=entity,
        structural_density=counts,
        incoming_dependency_count=incoming,
        outgoing_dependency_count=outgoing,
    )


def aspects(snapshot: Snapshot, asked: Asked[AgentFields]) -> api.AspectsReply:
    """Return the aspects of the entity of the path; none of one that the agent does not have."""
    graph = OwnGraph(snapshot, asked.caller.read)
    entity = graph.entity(asked.caller.path["id"])
    return api.AspectsReply([] if entity is None else graph.aspects([entity.id]))


def attributes(snapshot: Snapshot, asked: Asked[api.ListAttributesRequest]) -> api.AttributesReply:
    """Return a page of the attributes of an aspect of the entity of the path."""
    page, graph = asked.request, OwnGraph(snapshot, asked.caller.read)
    entity, named, found = graph.entity(asked.caller.path["id"]), asked.caller.path["aspect"], []
    if entity is not None:
        key = graph.aspect_key(entity.id, named)
        of: dict[str, Any] = {"status": page.status, "kind": page.kind, "aspect": key}
        found = graph.attributes([entity.id], limit=page.limit, offset=page.offset, **of)
    return api.AttributesReply(found, page.limit, page.offset)


def dependencies(snapshot: Snapshot, asked: Asked[api.DependenciesRequest]) -> api.DependenciesReply:
    """Return the dependencies of the entity of the path."""
    page, graph = asked.request, OwnGraph(snapshot, asked.caller.read)
    entity = graph.entity(asked.caller.path["id"])
    if entity is None:
        return api.DependenciesReply([])
    wanted = api.DIRECTIONS[:2] if page.direction == "both" else (page.direction,)
    found = [dependency(edge, entity.name) for edge in graph.edges([entity.id], wanted)]
    return api.DependenciesReply(found[page.offset : page.offset + page.limit])


def dependency(edge: Edge, name: str) -> api.Dependency:
    """Return the dependency that the edge is; ``name`` is that of the entity at which it was looked up."""
    ends = (edge.here, name), (edge.there, edge.name)
    source, target = ends if edge.direction == "outgoing" else ends[::-1]
    return api.Dependency(
        *(edge.id, *source, *target, edge.type, edge.strength, edge.direction, edge.created_at, edge.updated_at)
    )


READS: Final = {
    api.LIST: listed,
    api.PINNED: pinned,
    api.HEALTH: health,
    api.GET: get,
    api.ASPECTS: aspects,
    api.ATTRIBUTES: attributes,
    api.DEPENDENCIES: dependencies,
}
