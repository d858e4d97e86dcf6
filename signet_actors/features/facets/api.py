"""How many memories have each type, project, author, tag and so on: what a list of memories can be narrowed down by.

Source: docs/compatibility.md "Reading memories".
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Clamped, Flag
from signet_actors.operations.operation import BY_ALL, Operation
from signet_actors.operations.problem import PROBLEMS
from signet_actors.operations.request_fields import FilterFields
from signet_actors.protocol.memories import Filters, ReadScope
from signet_actors.protocol.message import Answered, Request


class FacetsRequest(FilterFields, frozen=True, kw_only=True, omit_defaults=True):
    """Which memories to count."""

    top: Annotated[int, Clamped(low=1, high=500), Meta(description="Values of each facet, the most frequent ones")] = 50
    deleted: Annotated[bool, Flag(), Meta(description="true: deleted memories instead of live ones")] = False
    alternatives: Annotated[
        bool, Flag(), Meta(description="true: types, tags, who and pinned each without the filter on itself")
    ] = False


class Count(msgspec.Struct, frozen=True):
    """How many memories have a value; null: they have none."""

    value: str | None
    count: int


class Facet(msgspec.Struct, frozen=True):
    """The most frequent values, in descending order, and how many different ones there are."""

    values: list[Count]
    distinct: int


class FacetsReply(msgspec.Struct, frozen=True):
    """Counts of the ``total`` memories that the filters admit.

    A part of a long text counts for two sources, "chunk" and that of the text, as either finds it. ``months``: of the
    creation, in UTC. ``scopes``: of memories in any scope. ``states``: live and deleted.
    """

    total: int
    pinned: int
    types: Facet
    projects: Facet
    agents: Facet
    who: Facet
    tags: Facet
    sources: Facet
    months: Facet
    scopes: Facet
    states: Facet


class CountFacets(Request[Answered], frozen=True, tag="facets.count"):
    """Ask for ``FacetsReply``. ``alternatives``: how many another value of each filter would leave."""

    read: ReadScope
    filters: Filters
    top: int
    deleted: bool = False
    alternatives: bool = False


FACETS: Final[Operation[FacetsRequest, FacetsReply]] = Operation(
    name="memories.facets",
    summary="Count memories by type, project, author, tag, source and so on",
    tag="Memories",
    method="GET",
    paths=("/api/memories/facets",),
    request=FacetsRequest,
    example={"project": "/home/ada/shop", "top": 10},
    replies={200: FacetsReply, **PROBLEMS},
    permission=Permission.RECALL,
    scoped_by=BY_ALL,
    served_by="searcher",
    description="The filters are those of `GET /api/memories`.",
)
OPERATIONS: Final = (FACETS,)
