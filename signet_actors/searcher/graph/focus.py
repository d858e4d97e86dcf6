"""The focal entities: those that a query, a project or a session is about.

Source: knowledge-graph.txt "Focal Entity Resolution".
Departs: a name is matched by whole words, not by parts, which find "go" in "google" and read every name. What a
query names comes before the last session and the project, which say less about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

import numpy as np

from signet_actors.domain.graph.names import name_tokens
from signet_actors.domain.query_words import MAX_QUERY_CHARS, without_contractions
from signet_actors.domain.ranking import traversal
from signet_actors.searcher.columns import Mask
from signet_actors.searcher.graph.graph_index import GraphIndex

_MOST_TOKENS: Final = 64
_MOST_COUNTED: Final = 200
"""Of the entities that a query names as well as others do, so many are compared by their mentions."""


class Focal(NamedTuple):
    """An entity to start from. ``weight``: how sure it is meant, in (0, 1]; ``source``: checkpoint, project, …"""

    entity: int
    weight: float
    source: str


def focal_entities(
    index: GraphIndex,
    agent: int,
    readable: Mask,
    *,
    query: str = "",
    project: str | None = None,
    checkpoint: Callable[[], Sequence[str]] = tuple,
    session_key: str | None = None,
) -> list[Focal]:
    """Return the focal entities, the surest first, each once. ``readable``: the memories by which mentions count."""
    memories = int(np.count_nonzero(readable))
    found: dict[int, Focal] = {}

    def add(entities: Sequence[tuple[int, float]], source: str) -> None:
        for entity, weight in entities:
            override = index.override(entity)
            found.setdefault(entity, Focal(entity, weight if override is None else override, source))

    add(_named(index, agent, readable, memories, query, traversal.MAX_OF_QUERY), "query")
    if not found:
        carried = [index.resolved(each) for each in index.find(checkpoint())]
        counts = zip(carried, index.mentions(carried, readable), strict=True)
        known = [(each, traversal.UNNAMED) for each, count in counts if count and index.belongs_to(each, agent)]
        add(known, "checkpoint")
    if not found and project:
        of_project = _named(index, agent, readable, memories, project, traversal.MAX_OF_PROJECT, only_projects=True)
        add([(each, traversal.UNNAMED) for each, _ in of_project], "project")
    if not found and session_key:
        label = _named(index, agent, readable, memories, session_key, traversal.MAX_OF_QUERY)
        add([(each, min(traversal.UNNAMED, weight)) for each, weight in label], "session_key")
    add([(each, traversal.UNNAMED) for each in index.pinned(agent)], "pinned")
    return sorted(found.values(), key=lambda focal: -focal.weight)


def _named(
    index: GraphIndex,
    agent: int,
    readable: Mask,
    memories: int,
    text: str,
    most: int,
    *,
    only_projects: bool = False,
) -> list[tuple[int, float]]:
    """Return the entities that the text names and how sure they are meant, the surest and most mentioned first."""
    tokens = dict.fromkeys(name_tokens(without_contractions(text[:MAX_QUERY_CHARS])))
    covered: dict[int, float] = {}
    for number in index.named_with(agent, list(tokens)[:_MOST_TOKENS]):
        entity = index.resolved(number)
        if index.belongs_to(entity, agent) and (index.is_project(entity) or not only_projects):
            covered[entity] = max(traversal.coverage(index.names[number], tokens), covered.get(entity, 0.0))
    best = sorted(((share, entity) for entity, share in covered.items() if share), reverse=True)[:_MOST_COUNTED]
    mentions = index.mentions([entity for _, entity in best], readable)
    counted = [(share, count, entity) for (share, entity), count in zip(best, mentions, strict=True)]
    counted = [each for each in counted if each[1] or index.is_pinned(each[2])]
    counted.sort(key=lambda each: (-each[0], -each[1], index.ids[each[2]]))
    return [(entity, share * traversal.rarity(count, memories)) for share, count, entity in counted[:most]]
