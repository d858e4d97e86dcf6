"""``python -m signet_actors.searcher.communities WORKSPACE``: find the communities of every agent's entities, once.

It is a process of its own because it takes seconds of computing, and the library for it only here. It reads the
dependencies from a snapshot and prints ``Communities`` as JSON. The same graph gives the same result.

Source: architecture.txt "Knowledge Graph" (entity communities); Blondel et al. 2008, "Fast unfolding of communities in
large networks".
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from signet_actors.config.workspace import Workspace
from signet_actors.features.communities.api import Communities, Community
from signet_actors.features.communities.reads import read_graphs
from signet_actors.features.communities.rules import community_id, quality
from signet_actors.runtime.clock import SystemClock
from signet_actors.runtime.processes.network_guard import block_network_sockets
from signet_actors.runtime.processes.priority import run_when_idle
from signet_actors.store.sqlite.reader import read_engine

LIMIT_S: Final = 120
_SEED: Final = 1
MAX_EDGES: Final = 500_000
"""Of one agent; of more, the weakest are left out."""


def main(arguments: list[str]) -> int:
    """Do the work and print the result."""
    block_network_sockets()
    signal.alarm(LIMIT_S)
    run_when_idle()
    clock, engine = SystemClock(), read_engine(Workspace(Path(arguments[0])).database)
    with engine.snapshot(clock, deadline_ns=clock.monotonic_ns() + LIMIT_S * 1_000_000_000) as snapshot:
        graphs = list(read_graphs(snapshot, MAX_EDGES))
    engine.close()  # no snapshot stays open while the graphs are divided
    found = [community for graph in graphs for community in communities_of(*graph)]
    sys.stdout.buffer.write(msgspec.json.encode(Communities(found)))
    return 0


def communities_of(
    agent_id: str, edges: Sequence[tuple[str, str, float]], names: Mapping[str, tuple[str, int]]
) -> list[Community]:
    """Return the communities of the graph with these edges (source, target, weight), by id.

    ``names``: name and mentions of each entity. Both directions of an edge count together.
    """
    from networkx import Graph  # noqa: PLC0415 - only this process needs the library
    from networkx.algorithms.community import louvain_communities, modularity  # noqa: PLC0415

    ids = sorted({entity for source, target, _ in edges for entity in (source, target)})
    number = {entity: at for at, entity in enumerate(ids)}  # sets of numbers are always in the same order
    graph: Any = Graph()
    for source, target, weight in sorted(edges):
        ends = number[source], number[target]
        graph.add_edge(*ends, weight=weight + graph.get_edge_data(*ends, {"weight": 0.0})["weight"])
    if not edges:
        return []
    divided = louvain_communities(graph, weight="weight", seed=_SEED)
    word = quality(modularity(graph, divided, weight="weight"))
    found = []
    for members in divided:
        inside = graph.subgraph(members).size(weight="weight")
        all_edges = sum(degree for _, degree in graph.degree(members, weight="weight")) - inside
        listed = [ids[member] for member in members]
        listed.sort(key=lambda entity: (-names[entity][1], names[entity][0], entity))
        cohesion = round(inside / all_edges, 6) if all_edges else 0.0
        label = names[listed[0]][0]
        found.append(Community(community_id(agent_id, listed), agent_id, label, len(listed), cohesion, word, listed))
    return sorted(found, key=lambda community: community.id)


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)
