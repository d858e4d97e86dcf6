"""Read the graphs of dependencies in which communities are found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from signet_actors.domain.graph.names import CHUNK_GROUP
from signet_actors.store.engine import Snapshot

_AGENTS: Final = "SELECT DISTINCT d.agent_id FROM entity_dependencies d ORDER BY d.agent_id"
_EDGES: Final = (
    "SELECT coalesce(s.merged_into, s.id) AS source, coalesce(o.merged_into, o.id) AS target, sum(d.strength) AS weight"
    " FROM entity_dependencies d JOIN entities s ON s.id = d.source_entity_id"
    " JOIN entities o ON o.id = d.target_entity_id WHERE d.agent_id = :agent_id"
    f" AND s.entity_type <> '{CHUNK_GROUP}' AND o.entity_type <> '{CHUNK_GROUP}'"
    " AND coalesce(s.merged_into, s.id) <> coalesce(o.merged_into, o.id)"
    " GROUP BY coalesce(s.merged_into, s.id), coalesce(o.merged_into, o.id)"
    " ORDER BY weight DESC, source, target LIMIT :limit"
)
_NAMES: Final = "SELECT e.id, e.name, e.mentions FROM entities e WHERE e.agent_id = :agent_id"


def read_graphs(
    snapshot: Snapshot, limit: int
) -> Iterator[tuple[str, list[tuple[str, str, float]], dict[str, tuple[str, int]]]]:
    """Yield of each agent its id, ``limit`` edges (source, target, weight), and name and mentions of its entities."""
    for (agent_id,) in snapshot.rows(_AGENTS):
        edges = snapshot.rows(_EDGES, {"agent_id": agent_id, "limit": limit})
        names = {entity: (name, mentions) for entity, name, mentions in snapshot.rows(_NAMES, {"agent_id": agent_id})}
        yield agent_id, [(source, target, weight) for source, target, weight in edges], names


READS: Final[dict[type, object]] = {}
"""No message asks for it: ``searcher.communities`` reads a snapshot of its own."""
