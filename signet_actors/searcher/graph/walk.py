"""The walk from the focal entities over their aspects, and one step along their dependencies.

Source: knowledge-graph.txt "Walk Algorithm"; docs/decisions.md 63.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.domain.ranking.stage_settings import Traversal
from signet_actors.domain.ranking.traversal import MAX_BOOSTED, MAX_NEIGHBOURS
from signet_actors.searcher.columns import Mask, Seqs
from signet_actors.searcher.graph.focus import Focal
from signet_actors.searcher.graph.graph_index import NO_ASPECT, GraphIndex, is_in

FOUND = np.dtype(
    [
        ("seq", "i8"),
        ("score", "f8"),
        ("entity", "i4"),
        ("aspect", "i4"),
        ("importance", "f4"),
        ("near", "i4"),
        ("is_constraint", "?"),
        ("structured", "?"),
    ]
)
"""A memory that an attribute led to. ``near``: the focal entity if ``entity`` is its neighbour, else -1."""
Found = npt.NDArray[Any]
_NOTHING: Final[Found] = np.zeros(0, FOUND)
MOST_FOUND: Final = 100
"""Memories of one walk, the best. A recall returns no more, and each costs it as much as what a leg finds."""
BATCH: Final = 64
"""So many entities are visited between two looks at the clock."""


class Step(NamedTuple):
    """An entity to visit, its weight, and the focal entity of which it is a neighbour, else -1."""

    entity: int
    weight: float
    near: int


class Walked(NamedTuple):
    """What a walk found.

    ``found`` (type ``FOUND``): each memory once, by its best path, ascending by ``seq``. ``constraints``: those of the
    visited entities, the most important first; a memory may occur several times. ``entities``: how many were visited.
    """

    found: Found
    constraints: Found
    entities: int
    timed_out: bool


def walk(
    index: GraphIndex, agent: int, focal: Sequence[Focal], allowed: Mask, limits: Traversal, is_over: Callable[[], bool]
) -> Walked:
    """Return the allowed memories that the focal entities and their neighbours lead to.

    Each entity is visited once. What was found until ``is_over`` is returned if it says so.
    """
    visited = {each.entity for each in focal}
    collected = [_NOTHING]
    entities, timed_out = 0, False
    for is_near in (False, True):
        steps = [Step(each.entity, each.weight, -1) for each in focal]
        if is_near:
            steps = [] if timed_out else _neighbours(index, agent, focal, visited, limits)
        for start in range(0, len(steps), BATCH):
            if timed_out := is_over():
                break
            batch = steps[start : start + BATCH]
            collected.append(_attributes(index, batch, allowed))
            entities += len(batch)
    rows = np.concatenate(collected)
    every = _limited(index, rows[rows["aspect"] != NO_ASPECT], limits)
    constraints = rows[rows["is_constraint"]]
    if len(constraints):
        constraints = constraints[np.lexsort((-constraints["seq"], -constraints["importance"]))]
        every = np.concatenate((every, constraints))
    order = np.lexsort((-every["score"], every["seq"]))
    seqs = every["seq"][order]
    found = every[order[np.append(True, seqs[1:] != seqs[:-1])[: len(seqs)]]]
    if len(found) > MOST_FOUND:
        found = found[np.sort(np.lexsort((-found["seq"], -found["score"]))[:MOST_FOUND])]
    return Walked(found, constraints, entities, timed_out)


def boosted(index: GraphIndex, agent: int, focal: Sequence[Focal], allowed: Mask, is_over: Callable[[], bool]) -> Seqs:
    """Return at most ``MAX_BOOSTED`` allowed memories that mention the focal entities, or what these are related to.

    The newest ones of each entity come first. Source: memory-system.txt "Recall"; architecture.txt "Graph boost
    fallback".
    """
    entities = dict.fromkeys(each.entity for each in focal)
    for each in focal:
        if is_over():
            break
        leaving, reaching = index.outgoing(index.relations, each.entity), index.incoming(index.relations, each.entity)
        for other in (*leaving["target"].tolist(), *reaching["owner"].tolist()):
            neighbour = index.resolved(other)
            if len(entities) < len(focal) + MAX_NEIGHBOURS and index.belongs_to(neighbour, agent):
                entities[neighbour] = None
    found: dict[int, None] = {}
    for entity in entities:
        if is_over() or len(found) >= MAX_BOOSTED:
            break
        owners = index.linked_to(index.mentioned, [entity])[0]["owner"]
        found |= dict.fromkeys(np.sort(owners[is_in(allowed, owners)])[::-1][:MAX_BOOSTED].tolist())
    return np.array(list(found)[:MAX_BOOSTED], np.int64)


def _attributes(index: GraphIndex, steps: Sequence[Step], allowed: Mask) -> Found:
    """Return the attributes of the entities that allowed memories state."""
    rows, place = index.linked_to(index.attributes, [step.entity for step in steps])
    kept = is_in(allowed, rows["owner"])
    rows, place = rows[kept], place[kept]
    found = np.zeros(len(rows), FOUND)
    for name in ("aspect", "importance", "is_constraint", "structured"):
        found[name] = rows[name]
    found["seq"] = rows["owner"]
    entities, weights, near = map(np.array, zip(*steps, strict=True))
    found["entity"], found["near"] = entities[place], near[place]
    found["score"] = rows["importance"] * weights[place]
    return found


def _neighbours(
    index: GraphIndex, agent: int, focal: Sequence[Focal], visited: set[int], limits: Traversal
) -> list[Step]:
    """Return the entities on which the focal ones depend most, their weights, and the focal entity of each."""
    edges = []
    for each in focal:
        rows = index.outgoing(index.dependencies, each.entity)
        for target, strength in zip(rows["target"].tolist(), rows["strength"].tolist(), strict=True):
            if strength >= limits.min_strength:
                edges.append((-strength, each, index.resolved(target)))
    edges.sort(key=lambda edge: (edge[0], -edge[1].weight, index.ids[edge[2]]))
    found: list[Step] = []
    for negative, each, neighbour in edges:
        if len(found) >= limits.max_neighbours:
            break
        if neighbour not in visited and index.belongs_to(neighbour, agent):
            visited.add(neighbour)
            found.append(Step(neighbour, -negative * each.weight, each.entity))
    return found


def _limited(index: GraphIndex, rows: Found, limits: Traversal) -> Found:
    """Return of each entity the heaviest aspects, of each aspect the most important attributes, with their scores."""
    if not len(rows):
        return rows
    weights = index.weights(rows["aspect"])
    order = np.lexsort((-rows["seq"], -rows["importance"], rows["aspect"], -weights, rows["entity"]))
    rows, weights = rows[order], weights[order]
    position = np.arange(len(rows))
    is_entity, is_aspect = np.ones(len(rows), np.bool_), np.ones(len(rows), np.bool_)
    np.not_equal(rows["entity"][1:], rows["entity"][:-1], out=is_entity[1:])
    np.not_equal(rows["aspect"][1:], rows["aspect"][:-1], out=is_aspect[1:])
    is_aspect |= is_entity
    aspects: Seqs = np.cumsum(is_aspect)
    of_entity: Seqs = aspects - np.maximum.accumulate(np.where(is_entity, aspects, 0))
    of_aspect = position - np.maximum.accumulate(np.where(is_aspect, position, 0))
    kept = (of_entity < limits.max_aspects) & (of_aspect < limits.max_attributes)
    rows["score"] *= weights
    limited: Found = rows[kept]
    return limited
