"""A map of the memories of an agent: their vectors, projected to two or three dimensions.

Source: memory-api.txt "Embeddings" (projection); architecture.txt "UMAP Projection"; docs/compatibility.md
"Embeddings".
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.operations.field_types import Clamped, Names, Number
from signet_actors.operations.operation import MEMORY_READ, Operation
from signet_actors.operations.problem import PROBLEMS, Problem
from signet_actors.operations.request_fields import FilterFields, Offset, SelectionText
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Answered, Request

MAX_POINTS: Final = 10_000
"""Of more memories, the map has those whose vectors are the newest."""
SHOWN_CHARS: Final = 160
Method = Literal["umap", "pca"]


class ProjectionRequest(FilterFields, frozen=True, kw_only=True, omit_defaults=True):
    """Of how many dimensions the map is, and which memories of it to return."""

    dimensions: Annotated[int, Clamped(low=2, high=3), Meta(description="2 or 3")] = 2
    q: Annotated[SelectionText, Meta(description="Only memories whose text contains these words")] | None = None
    types: Annotated[tuple[str, ...], Names(max_items=50), Meta(description="Memories of any of these types")] = ()
    source_types: Annotated[
        tuple[str, ...], Names(max_items=50), Meta(description="Memories of any of these kinds of source")
    ] = ()
    importance_max: Annotated[float, Number(low=0, high=1), Meta(description="Greatest importance")] | None = None
    harness: (
        Annotated[SelectionText, Meta(description="Only memories that a session of this harness has stored")] | None
    ) = None
    limit: Annotated[int, Clamped(low=1, high=MAX_POINTS), Meta(description="Memories to return")] = MAX_POINTS
    offset: Offset = 0


class Node(msgspec.Struct, frozen=True, rename="camel"):
    """A memory and where it lies, from -210 to 210 on each axis; ``z`` of a map of three dimensions.

    ``content``: at most 160 characters.
    """

    id: str
    x: float
    y: float
    content: str
    who: str | None
    importance: float
    type: str
    tags: list[str]
    pinned: bool
    source_type: str | None
    source_id: str | None
    created_at: str
    project: str | None
    z: float | UnsetType = UNSET


class ProjectionReply(msgspec.Struct, frozen=True, rename="camel"):
    """``edges``: pairs of places in ``nodes`` of memories that lie near each other. ``total``: what the filters admit.

    ``method``: UMAP, or the first principal components where it is not installed.
    """

    status: Literal["cached"]
    dimensions: int
    count: int
    total: int
    nodes: list[Node]
    edges: list[tuple[int, int]]
    method: Method | None
    cached_at: str | None
    limit: int
    offset: int
    has_more: bool


class ComputingReply(msgspec.Struct, frozen=True):
    """The map is being made of ``total`` memories; ask again."""

    status: Literal["computing"]
    dimensions: int
    count: int
    total: int


class Points(msgspec.Struct, frozen=True):
    """A map as it is stored: ``memories.seq``, coordinates, and pairs of places in these lists."""

    method: Method
    rows: list[int]
    coordinates: list[list[float]]
    edges: list[tuple[int, int]]


class Projection(msgspec.Struct, frozen=True):
    """A map, what it was made of, or the ``problem`` for which there is none."""

    points: Points = Points("pca", [], [], [])
    count: int = 0
    newest: int = 0
    problem: str | None = None


class FindProjection(Request[Answered], frozen=True, tag="projection.find"):
    """Ask for ``ProjectionReply`` or ``ComputingReply``, whichever ``FoundProjection`` has."""

    read: ReadScope
    filters: Filters
    dimensions: int
    limit: int
    offset: int
    q: str | None = None
    types: tuple[str, ...] = ()
    source_types: tuple[str, ...] = ()
    importance_max: float | None = None
    harness: str | None = None


class FoundProjection(msgspec.Struct, frozen=True):
    """The map, or of how many memories one is to be made; ``is_current``: no memory came since it was made."""

    found: ProjectionReply | None
    total: int
    is_current: bool


class StoreProjection(Request[Answered], frozen=True, tag="projection.store"):
    """Store a map in place of the agent's last one."""

    agent_id: str
    dimensions: int
    projection: Projection


class Stored(msgspec.Struct, frozen=True):
    """The map is stored."""


GET_PROJECTION: Final[Operation[ProjectionRequest, ProjectionReply]] = Operation(
    name="embeddings.projection",
    summary="A map of the memories by their vectors",
    tag="Embeddings",
    paths=("/api/embeddings/projection",),
    request=ProjectionRequest,
    example={"dimensions": 2, "limit": 100},
    replies={200: ProjectionReply, 202: ComputingReply, 503: Problem, **PROBLEMS},
    **MEMORY_READ,
    description="202 while it is made, which takes seconds. It is kept until memories are added or their texts change.",
)
OPERATIONS: Final = (GET_PROJECTION,)
