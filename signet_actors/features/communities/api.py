"""Groups of entities that depend on each other: messages between the process that finds them, retention and the writer.

Source: architecture.txt "Knowledge Graph" (entity communities).
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from signet_actors.protocol.message import Answered, Request

OPERATIONS: Final = ()

Quality = Literal["fragmented", "moderate", "strong"]


class Community(msgspec.Struct, frozen=True):
    """A group of an agent's entities, the most mentioned one first. The same entities always have the same ``id``.

    ``cohesion``: the share of the weight of its edges that stays inside it.
    """

    id: str
    agent_id: str
    label: str
    size: int
    cohesion: float
    quality: Quality
    members: list[str]


class Communities(msgspec.Struct, frozen=True):
    """The communities of all agents, or the ``problem`` for which there are none."""

    communities: list[Community] = []
    problem: str | None = None


class GraphStamp(msgspec.Struct, frozen=True):
    """A text that differs after a change of the dependencies; empty if there are none and no community."""

    stamp: str


class GetGraphStamp(Request[Answered], frozen=True, tag="communities.stamp"):
    """Ask whether communities are to be found anew."""


class Stored(msgspec.Struct, frozen=True):
    """``more``: of what is outdated, a part is left for the next step."""

    more: bool = False


class StoreCommunities(Request[Answered], frozen=True, tag="communities.store"):
    """Store communities, or further members of some, that were found in the round that began at ``found_at``."""

    found_at: str
    communities: tuple[Community, ...]


class DropCommunities(Request[Answered], frozen=True, tag="communities.drop"):
    """Delete communities that the round has not found, and take their entities out of them, ``limit`` at a time."""

    found_at: str
    limit: int = 500
