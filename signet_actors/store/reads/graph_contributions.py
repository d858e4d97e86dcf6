"""What memories contribute to the graph of their agent, in the form in which a caller states it.

Source: memory-api.txt "POST /api/memory/remember" (structured); docs/decisions.md 67.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from signet_actors.domain.graph.names import CHUNK_GROUP, EXTRACTED
from signet_actors.operations import structured
from signet_actors.store.engine import Snapshot

_OWN: Final = "m.agent_id = :agent_id AND m.id IN ({})"
_RELATIONS: Final = (
    "SELECT m.id, s.name, s.entity_type, r.relation_type, t.name, t.entity_type, x.confidence FROM memories m"
    " JOIN memory_relation_mentions x ON x.memory_id = m.id JOIN relations r ON r.id = x.relation_id"
    " JOIN entities s ON s.id = r.source_entity_id JOIN entities t ON t.id = r.target_entity_id"
    f" WHERE {_OWN} ORDER BY m.seq, r.id"
)
_MENTIONS: Final = (
    "SELECT m.id, e.name, e.entity_type FROM memories m JOIN memory_entity_mentions x ON x.memory_id = m.id"
    f" JOIN entities e ON e.id = x.entity_id WHERE {_OWN} AND e.entity_type <> '{CHUNK_GROUP}' ORDER BY m.seq, e.id"
)
_ATTRIBUTES: Final = (
    "SELECT m.id, e.name, p.name, a.content, a.kind, a.group_key, a.claim_key, a.confidence, a.importance"
    " FROM memories m JOIN entity_attributes a ON a.memory_id = m.id JOIN entities e ON e.id = a.entity_id"
    f" JOIN entity_aspects p ON p.id = a.aspect_id WHERE {_OWN} AND a.status <> 'deleted' ORDER BY m.seq, a.seq"
)
_HINTS: Final = (
    f"SELECT m.id, h.hint FROM memories m JOIN memory_hints h ON h.memory_id = m.id WHERE {_OWN} ORDER BY m.seq, h.seq"
)


def stated(snapshot: Snapshot, agent_id: str, ids: Sequence[str]) -> dict[str, structured.Structured]:
    """Return what each of the memories states, by its id, within the bounds of what a caller may state.

    A memory of another agent is left out: its graph is not that of the caller. So are attributes without an aspect.
    """
    members = snapshot.dialect.members("ids")
    bindings = {"agent_id": agent_id, "ids": snapshot.dialect.listed(list(ids))}
    entities: dict[str, list[structured.StatedEntity]] = {}
    related: set[tuple[str, str]] = set()
    relations = snapshot.rows(_RELATIONS.format(members), bindings)
    for memory, source, kind, relation, target, target_kind, sure in relations:
        triple = structured.StatedEntity(
            name=source,
            type=_type(kind),
            relationship=relation,
            target=target,
            target_type=_type(target_kind),
            confidence=sure,
        )
        entities.setdefault(memory, []).append(triple)
        related |= {(memory, source), (memory, target)}
    for memory, name, kind in snapshot.rows(_MENTIONS.format(members), bindings):
        if (memory, name) not in related:
            entities.setdefault(memory, []).append(structured.StatedEntity(name=name, type=_type(kind)))
    aspects: dict[str, dict[tuple[str, str], list[structured.StatedAttribute]]] = {}
    counts: Counter[str] = Counter()
    attributes = snapshot.rows(_ATTRIBUTES.format(members), bindings)
    for memory, entity, aspect, content, kind, group, claim, sure, importance in attributes:
        counts[memory] += 1
        if counts[memory] <= structured.MAX_ATTRIBUTES:
            attribute = structured.StatedAttribute(
                content=content, kind=kind, group_key=group, claim_key=claim, confidence=sure, importance=importance
            )
            aspects.setdefault(memory, {}).setdefault((entity, aspect), []).append(attribute)
    hints: dict[str, list[str]] = {}
    for memory, hint in snapshot.rows(_HINTS.format(members), bindings):
        hints.setdefault(memory, []).append(hint)
    return {
        memory: structured.Structured(
            entities=tuple(entities.get(memory, [])[: structured.MAX_ENTITIES]),
            aspects=tuple(
                structured.StatedAspect(entity=entity, name=name, attributes=tuple(said))
                for (entity, name), said in list(aspects.get(memory, {}).items())[: structured.MAX_ASPECTS]
            ),
            hints=tuple(hints.get(memory, [])[: structured.MAX_HINTS]),
        )
        for memory in dict.fromkeys((*entities, *aspects, *hints))
    }


def _type(kind: str) -> str | None:
    return None if kind == EXTRACTED else kind
