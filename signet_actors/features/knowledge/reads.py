"""What is known about an entity, how entities hang together, and what is wrong with the graph, of one agent.

Source: knowledge-graph.txt "API"; docs/compatibility.md "Knowledge graph"; docs/decisions.md 35, 68.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from signet_actors.domain.graph.names import canonical_name
from signet_actors.errors import ErrorCode, NotFound
from signet_actors.features.entities import reads as entities
from signet_actors.features.entities.api import (
    MAX_PAGE,
    NOT_FOUND,
    AspectsReply,
    Attribute,
    AttributesReply,
    Entity,
    EntityDetail,
)
from signet_actors.features.entities.reads import OWN, Edge, OwnGraph
from signet_actors.features.entities.rules import similarity_key
from signet_actors.features.knowledge import api, rules
from signet_actors.features.knowledge.arrangement import arranged
from signet_actors.operations.request_fields import AgentFields
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Asked
from signet_actors.store.engine import Snapshot

MAX_SAID: Final = 2000
"""Attributes of one entity that an outline or an expansion goes through."""
MAX_SHOWN: Final = 5000
"""Attributes of all entities of a constellation together: a reply has a largest size."""
SHOWN_ASPECTS: Final = 20
SHOWN_ALIKE: Final = 20
SUMMARY_CHARS: Final = 20_000
MAX_COMPARED: Final = 50_000
_ABOUT: Final = (
    "(SELECT x.memory_id AS id FROM member b CROSS JOIN memory_entity_mentions x ON x.entity_id = b.id"
    " UNION SELECT a.memory_id FROM member b CROSS JOIN entity_attributes a ON a.entity_id = b.id) t"
    " CROSS JOIN memories m ON m.id = t.id AND m.is_deleted = 0 AND {readable}"
)
"""The live memories about members that the agent may read."""
_NAMED: Final = (
    "e.id IN (SELECT coalesce(g.merged_into, g.id) FROM memories m CROSS JOIN memory_entity_mentions x"
    " ON x.memory_id = m.id CROSS JOIN entities g ON g.id = x.entity_id WHERE m.is_deleted = 0 AND {})"
)
"""The condition on entities that a live memory which the agent may read mentions."""
_MEMORY_COUNT: Final = f"SELECT count(*) FROM {_ABOUT}"
_MEMORIES: Final = (
    f"SELECT m.id, substr(m.content, 1, :chars), m.type, m.importance, m.created_at FROM {_ABOUT}"
    " ORDER BY m.pinned DESC, m.importance DESC, m.created_at DESC, m.id LIMIT 100"
)
_SUMMARIES: Final = (
    f"FROM {_ABOUT} JOIN session_summaries s ON s.memory_id = m.id WHERE (:key IS NULL OR s.session_key = :key)"
)
_SUMMARY_COUNT: Final = f"SELECT count(*) {_SUMMARIES}"
_SUMMARY_PAGE: Final = (
    "SELECT m.id, s.session_key, m.project, s.harness, substr(m.content, 1, :chars), s.latest_at, m.created_at"
    f" {_SUMMARIES} ORDER BY s.latest_at DESC, m.id LIMIT :limit"
)
_SAID: Final = (
    "SELECT coalesce(sum(CASE WHEN a.kind = 'attribute' THEN 1 ELSE 0 END), 0),"
    " coalesce(sum(CASE WHEN a.kind = 'constraint' THEN 1 ELSE 0 END), 0) FROM entities e"
    f" CROSS JOIN entity_attributes a ON a.entity_id = e.id AND a.status = 'active' WHERE {OWN}"
)
_UNCLASSIFIED: Final = (
    "SELECT count(*) FROM entity_attributes a"
    " WHERE a.aspect_id IS NULL AND a.status = 'active' AND a.agent_id = :agent_id"
)
_WEIGHTS: Final = (
    "SELECT count(*), coalesce(avg(s.weight), 0.0), coalesce(sum(CASE WHEN s.weight >= 1.0 THEN 1 ELSE 0 END), 0),"
    " coalesce(sum(CASE WHEN s.weight <= 0.1 THEN 1 ELSE 0 END), 0)"
    f" FROM entities e CROSS JOIN entity_aspects s ON s.entity_id = e.id WHERE {OWN}"
    " AND EXISTS (SELECT 1 FROM entity_attributes a WHERE a.aspect_id = s.id AND a.status = 'active')"
)
_SHOWN: Final = f"{OWN} AND e.merged_into IS NULL AND {entities.SEEN.format('e')}"
_ENTITY_COUNT: Final = f"SELECT count(*) FROM entities e WHERE {_SHOWN}"
_DEPENDENCY_COUNT: Final = "SELECT count(*) FROM entity_dependencies d WHERE d.agent_id = :agent_id"
_COVERAGE: Final = (
    "SELECT count(*), coalesce(sum(CASE WHEN EXISTS (SELECT 1 FROM memory_entity_mentions x"
    f" JOIN entities e ON e.id = x.entity_id WHERE x.memory_id = m.id AND {OWN}) THEN 1 ELSE 0 END), 0)"
    " FROM memories m WHERE m.agent_id = :agent_id AND m.is_deleted = 0 AND {readable}"
)
_NAMES: Final = (
    f"SELECT e.id, e.name, e.mentions FROM entities e WHERE {OWN} AND e.merged_into IS NULL AND e.mentions > 0"
    " ORDER BY e.mentions DESC, e.canonical_name LIMIT :limit"
)
_BARE: Final = (
    f"SELECT e.id, e.name, e.mentions FROM entities e WHERE {OWN} AND e.merged_into IS NULL AND e.mentions > 0"
    " AND NOT EXISTS (SELECT 1 FROM entity_attributes a WHERE a.entity_id = e.id AND a.status = 'active')"
    " ORDER BY e.mentions DESC, e.canonical_name LIMIT :limit"
)
_SUPPRESSED: Final = (
    "SELECT e.id, e.name, e.mentions, p.reason FROM entity_pinning p JOIN entities e ON e.id = p.entity_id"
    f" WHERE p.pin_type = 'suppress' AND {OWN} AND {entities.SEEN.format('e')} ORDER BY e.name, e.id LIMIT :limit"
)
_MERGED: Final = (
    "SELECT e.id, e.name, e.mentions, NULL, v.name FROM entities e JOIN entities v ON v.id = e.merged_into"
    f" WHERE e.merged_into IS NOT NULL AND {OWN} AND {entities.SEEN.format('v')} ORDER BY e.name, e.id LIMIT :limit"
)
_COMMUNITIES: Final = (
    "SELECT c.id, c.label, c.size, c.cohesion, c.quality, c.created_at FROM entity_communities c"
    " WHERE c.agent_id = :agent_id ORDER BY c.size DESC, c.id LIMIT 200"
)
_COMMUNITY_MEMBERS: Final = (
    f"SELECT e.community_id, e.name FROM entities e WHERE {_SHOWN} AND e.community_id IS NOT NULL"
    " ORDER BY e.mentions DESC, e.canonical_name LIMIT :limit"
)
_SHOWN_MEMBERS: Final = 10
_FROM_BOTH: Final = ("incoming", "outgoing")
_WALKS: Final = {"downstream": ("incoming",), "upstream": ("outgoing",), "both": _FROM_BOTH} | {
    name: (name,) for name in _FROM_BOTH
}


def _graph(snapshot: Snapshot, read: ReadScope, project: str | None) -> OwnGraph:
    """Return the graph as the memories of the project tell it; of all projects if none is named."""
    return OwnGraph(snapshot, read if project is None else msgspec.structs.replace(read, project=project))


def _known(graph: OwnGraph, named: str) -> Entity:
    entity = graph.entity(named)
    if entity is None:
        raise NotFound(NOT_FOUND)
    return entity


def stats(snapshot: Snapshot, asked: Asked[AgentFields]) -> api.Stats:
    """Return how much the agent's graph holds."""
    graph = OwnGraph(snapshot, asked.caller.read)
    attributes, constraints = graph.rows(_SAID)[0]
    aspects, *weights = graph.rows(_WEIGHTS)[0]
    memories, covered = graph.rows(_COVERAGE)[0]
    counts = graph.rows(_ENTITY_COUNT)[0][0], aspects, attributes, constraints, graph.rows(_DEPENDENCY_COUNT)[0][0]
    share = round(100.0 * covered / memories, 1) if memories else 0.0
    return api.Stats(*(*counts, memories - covered, share, *weights))


def traversal_status(_snapshot: Snapshot, _asked: Asked[AgentFields]) -> api.TraversalStatus:
    return api.TraversalStatus()


def expand(snapshot: Snapshot, asked: Asked[api.ExpandRequest]) -> api.ExpandReply:
    """Return what is known about an entity, within the number of tokens: first what always holds."""
    request, graph = asked.request, _graph(snapshot, asked.caller.read, asked.request.project)
    entity = graph.entity(request.entity_name)
    if entity is None:
        return api.ExpandReply(error=NOT_FOUND, code=ErrorCode.NOT_FOUND.value)
    wanted = canonical_name(request.aspect_filter or "")
    ids, budget = [entity.id], rules.TokenBudget(request.max_tokens)
    said = graph.attributes(ids, limit=MAX_SAID)
    constraints = budget.fitting([rules.fact(each) for each in said if each.kind == "constraint"], _content)
    of_aspect = _by_aspect(each for each in said if each.kind == "attribute")
    aspects = []
    for each in graph.aspects(ids):
        if wanted in each.aspect.canonical_name:
            facts = rules.answering(
                map(rules.fact, of_aspect.get(each.aspect.canonical_name, ())), request.question, _content
            )
            shown = budget.fitting(facts, _content)
            aspects.append(api.ExpandedAspect(each.aspect.id, each.aspect.name, each.aspect.weight, shown))
    memories = [api.ExpandedMemory(*row) for row in graph.of_members(_MEMORIES, ids, chars=budget.left)]
    return api.ExpandReply(
        entity=entity,
        constraints=constraints,
        aspects=aspects,
        dependencies=[_neighbour(edge) for edge in graph.edges(ids)[:MAX_PAGE]],
        memory_count=graph.of_members(_MEMORY_COUNT, ids)[0][0],
        memories=budget.fitting(rules.answering(memories, request.question, _content), _content),
    )


def _content(item: api.Fact | api.ExpandedMemory) -> str:
    return item.content


def _by_aspect(attributes: Iterable[Attribute]) -> dict[str, list[Attribute]]:
    found: dict[str, list[Attribute]] = {}
    for each in attributes:
        if each.aspect is not None:
            found.setdefault(canonical_name(each.aspect), []).append(each)
    return found


def expand_session(snapshot: Snapshot, asked: Asked[api.ExpandSessionRequest]) -> api.ExpandSessionReply:
    """Return the summaries of sessions that mention the entity."""
    request, graph = asked.request, OwnGraph(snapshot, asked.caller.read)
    entity = graph.entity(request.entity_name)
    if entity is None:
        return api.ExpandSessionReply(request.entity_name, [], 0)
    key = {"key": request.session_id}
    rows = graph.of_members(_SUMMARY_PAGE, [entity.id], limit=request.max_results, chars=SUMMARY_CHARS, **key)
    total = graph.of_members(_SUMMARY_COUNT, [entity.id], **key)[0][0]
    return api.ExpandSessionReply(entity.name, [api.SessionSummary(*row) for row in rows], total)


def entity(snapshot: Snapshot, asked: Asked[api.NameRequest]) -> EntityDetail:
    """Return the entity with this name. Raises NotFound."""
    return entities.detail(OwnGraph(snapshot, asked.caller.read), asked.request.name)


def aspects(snapshot: Snapshot, asked: Asked[api.EntityRequest]) -> AspectsReply:
    """Return the aspects of the entity with this name."""
    graph = OwnGraph(snapshot, asked.caller.read)
    found = graph.entity(asked.request.entity)
    return AspectsReply([] if found is None else graph.aspects([found.id]))


def _in_aspect(graph: OwnGraph, request: api.GroupsRequest, group: str | None = None) -> list[Attribute]:
    found = graph.entity(request.entity)
    if found is None:
        return []
    key = graph.aspect_key(found.id, request.aspect)
    return graph.attributes([found.id], limit=MAX_SAID, status="all", aspect=key, group=group)


def aspect_groups(snapshot: Snapshot, asked: Asked[api.GroupsRequest]) -> api.GroupsReply:
    """Return the groups of an aspect."""
    said = _in_aspect(OwnGraph(snapshot, asked.caller.read), asked.request)
    return api.GroupsReply(rules.groups(said, api.TreeRequest(entity="", depth=2, max_groups=MAX_SAID)))


def group_claims(snapshot: Snapshot, asked: Asked[api.ClaimsRequest]) -> api.ClaimsReply:
    """Return the claims of a group, or of a whole aspect."""
    said = _in_aspect(OwnGraph(snapshot, asked.caller.read), asked.request, asked.request.group)
    return api.ClaimsReply(rules.claims(said))


def attributes(snapshot: Snapshot, asked: Asked[api.SlotRequest]) -> AttributesReply:
    """Return a page of the attributes of the entity with this name."""
    page, graph = asked.request, OwnGraph(snapshot, asked.caller.read)
    of, said = graph.entity(page.entity), []
    if of is not None:
        where: dict[str, Any] = {"status": page.status, "kind": page.kind, "group": page.group, "claim": page.claim}
        key = page.aspect and graph.aspect_key(of.id, page.aspect)
        said = graph.attributes([of.id], limit=page.limit, offset=page.offset, aspect=key, **where)
    return AttributesReply(said, page.limit, page.offset)


def tree(snapshot: Snapshot, asked: Asked[api.TreeRequest]) -> api.TreeReply:
    """Return the outline of an entity. Raises NotFound."""
    graph = OwnGraph(snapshot, asked.caller.read)
    of = _known(graph, asked.request.entity)
    said = graph.attributes([of.id], limit=MAX_SAID, status="all")
    return api.TreeReply(
        entity=of,
        items=rules.branches(graph.aspects([of.id]), said, asked.request),
        unclassified_count=sum(each.aspect_id is None and each.status == "active" for each in said),
    )


def neighbours(snapshot: Snapshot, asked: Asked[AgentFields]) -> api.NeighboursReply:
    """Return what the entity of the path is connected with."""
    graph = OwnGraph(snapshot, asked.caller.read)
    of = graph.entity(asked.caller.path["id"])
    edges = [] if of is None else graph.edges([of.id], relations=True)
    found = sorted(map(_neighbour, edges), key=lambda each: (-each.strength, each.target, each.type))
    return api.NeighboursReply(found[:MAX_PAGE])


def _neighbour(edge: Edge) -> api.Neighbour:
    kind = "dependency" if edge.is_dependency else "relation"
    return api.Neighbour(
        *(edge.there, edge.name, edge.entity_type, edge.type, kind, edge.direction, edge.strength),
    )


def _steps(graph: OwnGraph, directions: Iterable[str], *, relations: bool) -> rules.NextSteps:
    def following(ids: list[str], depth: int) -> list[api.Step]:
        return [
            api.Step(
                *(edge.there, edge.name, edge.entity_type, depth, edge.here, edge.type, edge.direction, edge.strength),
            )
            for edge in graph.edges(ids, directions, relations=relations)
        ]

    return following


def impact(snapshot: Snapshot, asked: Asked[api.ImpactRequest]) -> api.WalkReply:
    """Return what is reached along dependencies. Raises NotFound."""
    request, graph = asked.request, OwnGraph(snapshot, asked.caller.read)
    of = _known(graph, request.entity_id)
    steps = _steps(graph, _WALKS[request.direction], relations=False)
    found = list(rules.walk(of.id, steps, request.max_depth, api.MAX_WALKED + 1))
    shown = found[: api.MAX_WALKED]
    return api.WalkReply(of, shown, len(shown), len(found) > len(shown))


def path(snapshot: Snapshot, asked: Asked[api.PathRequest]) -> api.PathReply:
    """Return a shortest path along dependencies and relations in either direction. Raises NotFound."""
    request, graph = asked.request, OwnGraph(snapshot, asked.caller.read)
    source, target = _known(graph, request.source), _known(graph, request.target)
    came: dict[str, api.Step] = {}
    for step in rules.walk(source.id, _steps(graph, _FROM_BOTH, relations=True), request.max_depth, MAX_SAID):
        came[step.id] = step
        if step.id == target.id:
            break
    steps: list[api.Step] = []
    at = target.id
    while at in came:
        steps.append(came[at])
        at = came[at].via_id
    return api.PathReply(source.id == target.id or bool(steps), source, target, steps[::-1])


def hygiene(snapshot: Snapshot, asked: Asked[api.HygieneRequest]) -> api.HygieneReply:
    """Return what may be wrong with the agent's graph."""
    graph, limit = OwnGraph(snapshot, asked.caller.read), asked.request.limit
    alike: dict[str, list[api.NamedEntity]] = {}
    for row in graph.rows(_NAMES, limit=MAX_COMPARED):
        alike.setdefault(similarity_key(row[1]), []).append(api.NamedEntity(*row))
    leads = {
        name: [api.NamedEntity(*row) for row in graph.rows(sql, limit=limit)]
        for name, sql in (("without_attributes", _BARE), ("suppressed", _SUPPRESSED), ("merged", _MERGED))
    }
    return api.HygieneReply(
        duplicates=[found[:SHOWN_ALIKE] for key, found in alike.items() if key and len(found) > 1][:limit],
        unclassified_attributes=graph.rows(_UNCLASSIFIED)[0][0],
        **leads,
    )


def communities(snapshot: Snapshot, asked: Asked[AgentFields]) -> api.CommunitiesReply:
    """Return the communities with the names of their most mentioned entities."""
    graph = OwnGraph(snapshot, asked.caller.read)
    names: dict[str, list[str]] = {}
    for community, name in graph.rows(_COMMUNITY_MEMBERS, limit=MAX_COMPARED):
        names.setdefault(community, []).append(name)
    items = [api.Community(*(*row, names.get(row[0], [])[:_SHOWN_MEMBERS])) for row in graph.rows(_COMMUNITIES)]
    return api.CommunitiesReply(items, len(items))


def constellation(snapshot: Snapshot, asked: Asked[api.ConstellationRequest]) -> api.ConstellationReply:
    """Return the most important entities, what is known about them, and the dependencies between them."""
    graph = _graph(snapshot, asked.caller.read, asked.request.project)
    where = "1 = 1" if asked.request.project is None else _NAMED.format(graph.readable)
    shown = {each.id: each for each in graph.entities(where, limit=asked.request.limit)}
    said: dict[tuple[str, str], list[api.Fact]] = {}
    for each in graph.attributes([*shown], limit=MAX_SHOWN):
        if each.aspect is not None:
            said.setdefault((each.entity_id, canonical_name(each.aspect)), []).append(
                rules.fact(each, rules.SHOWN_CHARS)
            )
    aspects: dict[str, list[api.ExpandedAspect]] = {}
    for listed in graph.aspects([*shown]):
        of = listed.aspect
        facts = said.get((of.entity_id, of.canonical_name), [])
        aspects.setdefault(of.entity_id, []).append(api.ExpandedAspect(of.id, of.name, of.weight, facts))
    edges = [edge for edge in graph.edges([*shown], ("outgoing",)) if edge.there in shown]
    number = {of: at for at, of in enumerate(shown)}
    links = tuple((number[edge.here], number[edge.there]) for edge in edges)
    places = arranged(len(shown), links).round(1).tolist() if asked.request.places else [()] * len(shown)
    return api.ConstellationReply(
        [
            api.ConstellationEntity(
                *(one.id, one.name, one.entity_type, one.mentions, one.pinned),
                *(aspects.get(one.id, [])[:SHOWN_ASPECTS], *place),
            )
            for one, place in zip(shown.values(), places, strict=True)
        ],
        [entities.dependency(edge, shown[edge.here].name) for edge in edges],
    )


READS: Final = {
    api.STATS: stats,
    api.TRAVERSAL: traversal_status,
    api.EXPAND: expand,
    api.EXPAND_SESSION: expand_session,
    api.ENTITY: entity,
    api.ASPECTS: aspects,
    api.GROUPS: aspect_groups,
    api.CLAIMS: group_claims,
    api.SLOT: attributes,
    api.TREE: tree,
    api.NEIGHBOURS: neighbours,
    api.HYGIENE: hygiene,
    api.COMMUNITIES: communities,
    api.IMPACT: impact,
    api.PATH: path,
    api.CONSTELLATION: constellation,
}
