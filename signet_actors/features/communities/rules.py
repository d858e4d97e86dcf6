"""How good a division of a graph into communities is, and in which steps it is stored."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from signet_actors.features.communities.api import Community, Quality

MODERATE: Final = 0.3
STRONG: Final = 0.6
"""Modularity from which on the communities of an agent are moderate or strong.

It is the share of the weight inside communities, less that of a random graph: 0.3 is where a graph begins to have
communities at all (Newman and Girvan 2004, "Finding and evaluating community structure in networks").
"""
STEP_MEMBERS: Final = 500


def quality(modularity: float) -> Quality:
    """Return the word for the modularity of a division, from -0.5 to 1."""
    return "strong" if modularity >= STRONG else "moderate" if modularity >= MODERATE else "fragmented"


def community_id(agent_id: str, members: Iterable[str]) -> str:
    """Return the id of the community of these entities."""
    return hashlib.sha256("\0".join((agent_id, *sorted(members))).encode()).hexdigest()[:32]


def steps(communities: Sequence[Community]) -> Iterator[tuple[Community, ...]]:
    """Yield the communities in steps of at most ``STEP_MEMBERS`` members; a larger one comes in parts."""
    step: list[Community] = []
    room = STEP_MEMBERS
    for community in communities:
        for begin in range(0, len(community.members), STEP_MEMBERS):
            part = community.members[begin : begin + STEP_MEMBERS]
            if len(part) > room:
                yield tuple(step)
                step, room = [], STEP_MEMBERS
            step.append(msgspec.structs.replace(community, members=part))
            room -= len(part)
    if step:
        yield tuple(step)
