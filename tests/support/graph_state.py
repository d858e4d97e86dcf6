"""The knowledge graph as its contributions say it must be, computed anew and compared with what is stored."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any, NamedTuple

from signet_actors.domain.graph.relation_types import dependency_strength, dependency_type
from signet_actors.domain.graph.supersession import Claim, superseded


class Graph(NamedTuple):
    """What readers see, by names: entities with mentions, relations, dependencies, active attributes."""

    entities: dict[tuple[str, str], int]
    relations: dict[tuple[str, str, str], tuple[int, float]]
    dependencies: dict[tuple[str, str, str], float]
    attributes: list[tuple[str, str, str, str]]


def stored_graph(connection: Any, agent_id: str = "default") -> Graph:
    """Return the graph of the agent's live memories as it is stored."""
    rows = partial(_of_agent, connection, agent_id)
    entities = {
        (agent, name): mentions
        for agent, name, mentions in rows(
            "SELECT agent_id, canonical_name, mentions FROM entities"
            " WHERE entity_type <> 'chunk_group' AND mentions > 0 AND agent_id = :agent"
        )
    }
    relations = {
        (source, kind, target): (mentions, round(confidence, 9))
        for source, kind, target, mentions, confidence in rows(
            "SELECT s.canonical_name, r.relation_type, t.canonical_name, r.mentions, r.confidence FROM relations r"
            " JOIN entities s ON s.id = r.source_entity_id JOIN entities t ON t.id = r.target_entity_id"
            " WHERE r.mentions > 0 AND s.agent_id = :agent"
        )
    }
    dependencies = {
        (source, kind, target): strength
        for source, kind, target, strength in rows(
            "SELECT s.canonical_name, d.dependency_type, t.canonical_name, d.strength FROM entity_dependencies d"
            " JOIN entities s ON s.id = d.source_entity_id JOIN entities t ON t.id = d.target_entity_id"
            " WHERE s.agent_id = :agent"
        )
    }
    return Graph(entities, relations, dependencies, attributes_with(connection, "active", agent_id))


def attributes_with(connection: Any, status: str, agent_id: str = "default") -> list[tuple[str, str, str, str]]:
    """Return entity, aspect, content and memory of the attributes with this status, in order."""
    return sorted(
        connection.execute(
            "SELECT e.canonical_name, coalesce(p.canonical_name, ''), a.content, a.memory_id FROM entity_attributes a"
            " JOIN entities e ON e.id = a.entity_id LEFT JOIN entity_aspects p ON p.id = a.aspect_id"
            " WHERE a.status = ? AND a.agent_id = ?",
            (status, agent_id),
        )
    )


def graph_of_contributions(connection: Any, agent_id: str = "default") -> Graph:
    """Return the graph as the contributions of the agent's live memories imply it."""
    rows = partial(_of_agent, connection, agent_id)
    mentions: dict[tuple[str, str], int] = defaultdict(int)
    for agent, name in rows(
        "SELECT e.agent_id, e.canonical_name FROM memory_entity_mentions x JOIN entities e ON e.id = x.entity_id"
        " JOIN memories m ON m.id = x.memory_id WHERE m.is_deleted = 0 AND e.entity_type <> 'chunk_group'"
        " AND e.agent_id = :agent"
    ):
        mentions[agent, name] += 1
    stated: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for source, kind, target, confidence in rows(
        "SELECT s.canonical_name, r.relation_type, t.canonical_name, x.confidence FROM memory_relation_mentions x"
        " JOIN relations r ON r.id = x.relation_id JOIN entities s ON s.id = r.source_entity_id"
        " JOIN entities t ON t.id = r.target_entity_id JOIN memories m ON m.id = x.memory_id WHERE m.is_deleted = 0"
        " AND s.agent_id = :agent"
    ):
        stated[source, kind, target].append(confidence)
    relations = {key: (len(found), round(sum(found) / len(found), 9)) for key, found in stated.items()}
    dependencies: dict[tuple[str, str, str], float] = {}
    for (source, kind, target), (count, mean) in relations.items():
        key = source, dependency_type(kind), target
        dependencies[key] = max(dependencies.get(key, 0.0), dependency_strength(mean, count))
    claims: dict[Any, list[Any]] = defaultdict(list)
    for row in rows(
        "SELECT e.canonical_name, coalesce(p.canonical_name, ''), a.content, a.memory_id, a.kind, a.group_key,"
        " a.claim_key, coalesce(e.merged_into, e.id), a.id"
        " FROM entity_attributes a JOIN entities e ON e.id = a.entity_id"
        " LEFT JOIN entity_aspects p ON p.id = a.aspect_id JOIN memories m ON m.id = a.memory_id"
        " WHERE m.is_deleted = 0 AND a.status <> 'deleted' AND a.agent_id = :agent ORDER BY a.source_at, a.seq"
    ):
        claims[(row[7], row[1], row[5], row[6]) if row[6] is not None else ("alone", *row)].append(row)
    active = []
    replaced = replaced_attributes(connection)
    for said in claims.values():
        active += [
            tuple(row[:4])
            for at, row in enumerate(said)
            if row[8] not in replaced
            and not any(
                row[2] != later[2] and (row[4], later[4]) != ("constraint", "attribute") for later in said[at + 1 :]
            )
        ]
    return Graph(dict(mentions), relations, dependencies, sorted(active))


def _of_agent(connection: Any, agent_id: str, sql: str) -> Any:
    return connection.execute(sql, {"agent": agent_id})


def replaced_attributes(connection: Any) -> set[str]:
    """Return the attributes that a later sibling contradicts, by a model or by their words, once all are compared."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    by_model = {
        old
        for (old,) in connection.execute(
            "SELECT a.id FROM entity_attributes a JOIN entity_attributes b ON b.id = a.superseded_by"
            " JOIN memories m ON m.id = b.memory_id WHERE a.superseded_how = 'semantic' AND m.is_deleted = 0"
        )
    }
    for entity_id, name, aspect, group, attribute, content, said_at, pinned in connection.execute(
        "SELECT t.id, t.name, p.canonical_name, a.group_key, a.id, a.content, a.source_at, m.pinned"
        " FROM entity_attributes a JOIN entities e ON e.id = a.entity_id"
        " JOIN entities t ON t.id = coalesce(e.merged_into, e.id)"
        " JOIN entity_aspects p ON p.id = a.aspect_id JOIN memories m ON m.id = a.memory_id"
        " WHERE m.is_deleted = 0 AND a.claim_key IS NULL AND a.kind = 'attribute' AND a.source <> 'structured'"
        " ORDER BY a.source_at, a.seq"
    ):
        if attribute not in by_model:
            groups[entity_id, name, aspect, group].append(Claim(attribute, content, said_at, bool(pinned)))
    return by_model | {old for group, claims in groups.items() for old in superseded(claims, group[1])}


def orphans(connection: Any) -> list[str]:
    """Return what should have been deleted with the last memory that contributed to it."""
    found = []
    for what, sql in (
        (
            "entity",
            (
                "SELECT name FROM entities e WHERE pinned = 0 AND NOT EXISTS"
                " (SELECT 1 FROM memory_entity_mentions x WHERE x.entity_id = e.id)"
                " AND NOT EXISTS (SELECT 1 FROM entities o WHERE o.merged_into = e.id)"
            ),
        ),
        (
            "aspect",
            (
                "SELECT name FROM entity_aspects p WHERE NOT EXISTS"
                " (SELECT 1 FROM entity_attributes a WHERE a.aspect_id = p.id)"
            ),
        ),
        (
            "relation",
            (
                "SELECT relation_type FROM relations r WHERE NOT EXISTS"
                " (SELECT 1 FROM memory_relation_mentions s WHERE s.relation_id = r.id)"
            ),
        ),
        (
            "contribution",
            (
                "SELECT memory_id FROM (SELECT memory_id FROM memory_entity_mentions UNION"
                " SELECT memory_id FROM memory_relation_mentions UNION SELECT memory_id FROM entity_attributes) x"
                " WHERE NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = x.memory_id)"
            ),
        ),
        (
            "attribute without a mention",
            (
                "SELECT id FROM entity_attributes a WHERE NOT EXISTS (SELECT 1 FROM memory_entity_mentions x"
                " WHERE x.memory_id = a.memory_id AND x.entity_id = a.entity_id)"
            ),
        ),
    ):
        found += [f"{what} {row[0]}" for row in connection.execute(sql)]
    return found
