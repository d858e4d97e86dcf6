"""The entities of the knowledge graph: lists of them and of what belongs to one, pins, suppression, merges.

An agent reads and changes its own graph only. In a path, ``id`` is the id or the name of an entity; that of one that
was merged means its target, except where a merge is made or undone.

Source: knowledge-graph.txt "Data Model", "Entity Pinning"; docs/compatibility.md "Knowledge graph";
docs/decisions.md 68.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.domain.permissions import Permission
from signet_actors.operations.field_types import Choice, Clamped, Number, Text
from signet_actors.operations.operation import BY_AGENT, Effect, Operation, Tool
from signet_actors.operations.problem import CHANGE_PROBLEMS, PROBLEMS, Problem
from signet_actors.operations.request_fields import AgentFields, CallerFields, Offset, SelectionText

RequestT = TypeVar("RequestT", bound=msgspec.Struct)
ReplyT = TypeVar("ReplyT")

MAX_PAGE: Final = 200
MAX_PINNED: Final = 1000
EXAMPLE_ENTITY: Final = "shop"
EXAMPLE_TARGET: Final = "PostgreSQL"
"""The entities of the examples; that of a remember states them."""
NOT_FOUND: Final = "Entity not found"
STATUSES: Final = ("active", "superseded", "deleted", "all")
KINDS: Final = ("attribute", "constraint")
DIRECTIONS: Final = ("incoming", "outgoing", "both")

PageSize = Annotated[int, Clamped(low=1, high=MAX_PAGE), Meta(description="Rows to return")]
Status = Annotated[str, Choice(values=STATUSES), Meta(description="active, superseded, deleted or all")]
Kind = Annotated[str, Choice(values=KINDS), Meta(description="attribute or constraint")]


class Page(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """Which rows to return."""

    limit: PageSize = 50
    offset: Offset = 0


class ListEntitiesRequest(Page, frozen=True, kw_only=True, omit_defaults=True):
    """Which page of which entities to return."""

    type: Annotated[SelectionText, Meta(description="Only entities of this type, as project or tool")] | None = None
    q: Annotated[SelectionText, Meta(description="Only entities whose name contains this text")] | None = None


class ListAttributesRequest(Page, frozen=True, kw_only=True, omit_defaults=True):
    """Which attributes to return."""

    status: Status = "active"
    kind: Kind | None = None


class DependenciesRequest(Page, frozen=True, kw_only=True, omit_defaults=True):
    """Which dependencies to return."""

    direction: Annotated[str, Choice(values=DIRECTIONS), Meta(description="incoming, outgoing or both")] = "both"
    limit: PageSize = MAX_PAGE


class Entity(msgspec.Struct, frozen=True, rename="camel"):
    """Something that memories are about. ``mentions``: memories that mention it, also by a name merged into it.

    ``suppressed``: it is held back in searches; ``weightOverride``: what it then counts, from 0 to 1.
    """

    id: str
    name: str
    canonical_name: str
    entity_type: str
    agent_id: str
    description: str | None
    mentions: int
    pinned: bool
    pinned_at: str | None
    suppressed: bool
    weight_override: float | None
    community_id: str | None
    created_at: str
    updated_at: str


class Counts(msgspec.Struct, frozen=True, rename="camel"):
    """How much is known: active attributes and constraints, the aspects that arrange them, dependencies both ways."""

    aspect_count: int = 0
    attribute_count: int = 0
    constraint_count: int = 0
    dependency_count: int = 0


class ListedEntity(Counts, frozen=True, kw_only=True, rename="camel"):
    """An entity and how much is known about it."""

    entity: Entity


class EntityDetail(ListedEntity, frozen=True, kw_only=True, rename="camel"):
    """``structuralDensity`` has the same counts once more, as clients read them there."""

    structural_density: Counts
    incoming_dependency_count: int
    outgoing_dependency_count: int


class EntitiesReply(msgspec.Struct, frozen=True):
    """A page: pinned entities first, then the most mentioned ones."""

    items: list[ListedEntity]
    limit: int
    offset: int


class PinnedEntity(msgspec.Struct, frozen=True, rename="camel"):
    """A pinned entity."""

    id: str
    name: str
    entity_type: str
    mentions: int
    pinned_at: str | None


class EntityHealth(msgspec.Struct, frozen=True, rename="camel"):
    """How predictions about an entity compared with what was used."""

    entity_id: str
    entity_name: str
    comparison_count: int
    trend: str


class Aspect(msgspec.Struct, frozen=True, rename="camel"):
    """A dimension of an entity; ``weight``: how much it counts, from 0 to 1."""

    id: str
    entity_id: str
    agent_id: str
    name: str
    canonical_name: str
    weight: float
    aspect_name: str = msgspec.field(name="aspect_name")
    created_at: str
    updated_at: str


class ListedAspect(msgspec.Struct, frozen=True, rename="camel"):
    """An aspect with its active attributes and constraints, counted."""

    aspect: Aspect
    attribute_count: int
    constraint_count: int


class AspectsReply(msgspec.Struct, frozen=True):
    """The aspects of an entity, those with the largest weight first."""

    items: list[ListedAspect]


class Attribute(msgspec.Struct, frozen=True, rename="camel"):
    """What a memory says about an entity. ``supersededBy``: the attribute that replaced it, ``supersededHow`` by what.

    ``aspectId`` is null until it is classified.
    """

    id: str
    entity_id: str
    agent_id: str
    aspect_id: str | None
    aspect: str | None
    memory_id: str
    source_memory_id: str = msgspec.field(name="source_memory_id")
    kind: str
    content: str
    attribute_value: str = msgspec.field(name="attribute_value")
    confidence: float
    importance: float
    status: str
    superseded_by: str | None
    superseded_how: str | None
    group_key: str | None
    claim_key: str | None
    source: str
    source_at: str
    created_at: str
    updated_at: str


class AttributesReply(msgspec.Struct, frozen=True):
    """A page, the most important first."""

    items: list[Attribute]
    limit: int
    offset: int


class Dependency(msgspec.Struct, frozen=True, rename="camel"):
    """``source`` depends on ``target``; ``strength`` from 0 to 1."""

    id: str
    source_entity_id: str
    source_entity_name: str
    target_entity_id: str
    target_entity_name: str
    dependency_type: str
    strength: float
    direction: str
    created_at: str
    updated_at: str


class DependenciesReply(msgspec.Struct, frozen=True):
    """The dependencies of an entity, the strongest first."""

    items: list[Dependency]


class ChangeEntityRequest(CallerFields, frozen=True, kw_only=True, omit_defaults=True):
    """Of a change of one entity, which the path names."""


class SuppressRequest(CallerFields, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """How far to hold the entity back."""

    reason: Annotated[str, Text(), Meta(description="Why; shown with the entity")] | None = None
    weight_override: (
        Annotated[float, Number(low=0, high=1), Meta(description="What it still counts, from 0 to 1; default 0")] | None
    ) = None


class MergeRequest(CallerFields, frozen=True, kw_only=True, omit_defaults=True):
    """The entity of the path becomes another name of ``into``."""

    into: Annotated[SelectionText, Meta(description="The id or the name of the entity that stays")]


class Pinned(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Whether the entity is pinned now, and since when."""

    pinned: bool
    pinned_at: str | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET


class Suppressed(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Whether the entity is suppressed now."""

    suppressed: bool
    reason: str | UnsetType | None = UNSET
    weight_override: float | UnsetType | None = UNSET
    warnings: list[str] | UnsetType = UNSET


class Merged(msgspec.Struct, frozen=True, omit_defaults=True):
    """Whether the entity is another name now; ``into``: of which entity, whose name is ``name``."""

    merged: bool
    id: str
    into: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    warnings: list[str] | UnsetType = UNSET


def read(
    name: str, summary: str, path: str, request: type[RequestT], reply: type[ReplyT], *others: str, **more: Any
) -> Operation[RequestT, ReplyT]:
    """Return the declaration of a read of the graph."""
    problems = {404: more.pop("missing"), **PROBLEMS} if "missing" in more else PROBLEMS
    defaults: dict[str, Any] = {"method": "GET", "permission": Permission.RECALL, "served_by": "searcher"}
    return _of_graph(name, summary, (path, *others), request, {200: reply, **problems}, defaults | more)


def change(
    name: str, summary: str, path: str, request: type[RequestT], reply: type[ReplyT], **more: Any
) -> Operation[RequestT, ReplyT]:
    """Return the declaration of a change of one entity."""
    replies = {200: reply, 404: Problem, **CHANGE_PROBLEMS}
    defaults: dict[str, Any] = {"method": "POST", "permission": Permission.MODIFY, "served_by": "writer"}
    defaults |= {"effect": Effect.MEMORIES, "rate": "modify", "body_required": False, "example": _ONE}
    return _of_graph(name, summary, (f"/api/knowledge/entities/{{id}}/{path}",), request, replies, defaults | more)


def _of_graph(
    name: str, summary: str, paths: tuple[str, ...], request: Any, replies: Mapping[int, Any], more: Mapping[str, Any]
) -> Operation[Any]:
    return Operation(
        name=name,
        summary=summary,
        tag="Knowledge graph",
        paths=paths,
        request=request,
        replies=replies,
        scoped_by=BY_AGENT,
        **more,
    )


_ONE: Final[dict[str, Any]] = {"id": EXAMPLE_ENTITY}
LIST: Final[Operation[ListEntitiesRequest, EntitiesReply]] = read(
    *(
        "entities.list",
        "Entities of the knowledge graph",
        "/api/knowledge/entities",
        ListEntitiesRequest,
        EntitiesReply,
    ),
    "/api/knowledge/navigation/entities",
    example={"type": "project", "limit": 10},
    tool=Tool(
        name="knowledge_entities",
        title="List what is known",
        description="List the people, projects, tools and other things that memory knows, the most mentioned first. "
        "Use it to find how something is called before knowledge_expand or knowledge_tree.",
        fields={
            "q": "A part of the name",
            "type": "person, project, system, tool, concept, skill or task",
            "limit": "",
        },
        most={"limit": 50},
        shown={"items": ("entity", "aspectCount", "attributeCount", "constraintCount", "dependencyCount")},
    ),
)
PINNED: Final[Operation[AgentFields, list[PinnedEntity]]] = read(
    "entities.pinned", "Pinned entities", "/api/knowledge/entities/pinned", AgentFields, list[PinnedEntity]
)
HEALTH: Final[Operation[AgentFields, list[EntityHealth]]] = read(
    *(
        "entities.health",
        "How predictions about entities compared",
        "/api/knowledge/entities/health",
        AgentFields,
        list[EntityHealth],
    ),
    description="Empty: this release makes no predictions that could be compared.",
)
GET: Final[Operation[AgentFields, EntityDetail]] = read(
    "entities.get",
    "One entity",
    "/api/knowledge/entities/{id}",
    AgentFields,
    EntityDetail,
    missing=Problem,
    example=_ONE,
)
ASPECTS: Final[Operation[AgentFields, AspectsReply]] = read(
    "entities.aspects",
    "Aspects of an entity",
    "/api/knowledge/entities/{id}/aspects",
    AgentFields,
    AspectsReply,
    example=_ONE,
)
ATTRIBUTES: Final[Operation[ListAttributesRequest, AttributesReply]] = read(
    *("entities.attributes", "Attributes of an aspect", "/api/knowledge/entities/{id}/aspects/{aspect}/attributes"),
    *(ListAttributesRequest, AttributesReply),
    example={**_ONE, "aspect": "database", "status": "all"},
    description="`aspect` is the id or the name of an aspect.",
)
DEPENDENCIES: Final[Operation[DependenciesRequest, DependenciesReply]] = read(
    *("entities.dependencies", "Dependencies of an entity", "/api/knowledge/entities/{id}/dependencies"),
    *(DependenciesRequest, DependenciesReply),
    example={**_ONE, "direction": "incoming"},
)
PIN: Final[Operation[ChangeEntityRequest, Pinned]] = change(
    "entities.pin", "Pin an entity: searches always begin with it too", "pin", ChangeEntityRequest, Pinned
)
UNPIN: Final[Operation[ChangeEntityRequest, Pinned]] = change(
    "entities.unpin", "Unpin an entity", "pin", ChangeEntityRequest, Pinned, method="DELETE"
)
SUPPRESS: Final[Operation[SuppressRequest, Suppressed]] = change(
    *("entities.suppress", "Hold an entity back in searches", "suppress", SuppressRequest, Suppressed),
    example={**_ONE, "reason": "too general", "weightOverride": 0.2},
)
UNSUPPRESS: Final[Operation[ChangeEntityRequest, Suppressed]] = change(
    *("entities.unsuppress", "Hold an entity back no longer", "suppress", ChangeEntityRequest, Suppressed),
    method="DELETE",
)
MERGE: Final[Operation[MergeRequest, Merged]] = change(
    *("entities.merge", "Make an entity another name of a second one", "merge", MergeRequest, Merged),
    example={**_ONE, "into": EXAMPLE_TARGET},
    body_required=True,
    audited=True,
    description="What is known about either is then known about `into`. Nothing is rewritten: `unmerge` undoes it.",
)
UNMERGE: Final[Operation[ChangeEntityRequest, Merged]] = change(
    "entities.unmerge", "Undo the merge of an entity", "unmerge", ChangeEntityRequest, Merged, audited=True
)
OPERATIONS: Final = (
    *(LIST, PINNED, HEALTH, GET, ASPECTS, ATTRIBUTES, DEPENDENCIES),
    *(PIN, UNPIN, SUPPRESS, UNSUPPRESS, MERGE, UNMERGE),
)
