"""Views of the knowledge graph: what is known about an entity, how entities hang together, and what is wrong with it.

An agent reads its own graph only. Entities are named by their ids or their names.

Source: knowledge-graph.txt "API"; docs/compatibility.md "Knowledge graph"; docs/decisions.md 68.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType

from signet_actors.features.entities.api import (
    EXAMPLE_ENTITY,
    EXAMPLE_TARGET,
    AspectsReply,
    AttributesReply,
    Dependency,
    Entity,
    EntityDetail,
    ListAttributesRequest,
    read,
)
from signet_actors.operations.field_types import Choice, Clamped, Flag, SecretRule, Text
from signet_actors.operations.operation import Operation, Tool
from signet_actors.operations.problem import Problem
from signet_actors.operations.request_fields import AgentFields, SelectionText
from signet_actors.operations.transcripts import Session

MAX_ENTITIES: Final = 500
MAX_WALKED: Final = 500
MAX_TOKENS: Final = 10_000
WALKS: Final = ("downstream", "upstream", "incoming", "outgoing", "both")

Name = Annotated[
    str,
    Text(secret=SecretRule.KEEP, missing="entity name is required"),
    Meta(description="The name or the id of an entity"),
]
AspectName = Annotated[SelectionText, Meta(description="The name or the id of an aspect")]
GroupName = Annotated[SelectionText, Meta(description="The name of a group; `general` has what names none")]
Most = Annotated[int, Clamped(low=1, high=500), Meta(description="At most so many")]
Depth = Annotated[int, Clamped(low=1, high=10), Meta(description="Steps from the entity")]


InProject = Annotated[SelectionText, Meta(description="Only by what memories of this project say")]


class NameRequest(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """Which entity."""

    name: Name


class EntityRequest(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """Of which entity."""

    entity: Name


class ExpandRequest(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """What to tell about which entity."""

    entity_name: Name = msgspec.field(name="entity")
    aspect_filter: Annotated[SelectionText, Meta(description="Only aspects whose name contains this text")] | None = (
        msgspec.field(default=None, name="aspect")
    )
    question: Annotated[SelectionText, Meta(description="What answers it comes first")] | None = None
    max_tokens: Annotated[int, Clamped(low=1, high=MAX_TOKENS), Meta(description="Length of all texts together")] = (
        msgspec.field(default=2000, name="maxTokens")
    )
    project: InProject | None = None


class ExpandSessionRequest(AgentFields, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Of which entity, in which sessions."""

    entity_name: Name
    session_id: Annotated[Session, Meta(description="Only the summary of this session")] | None = None
    max_results: Annotated[int, Clamped(low=1, high=50), Meta(description="Summaries to return")] = 10


class TreeRequest(EntityRequest, frozen=True, kw_only=True, omit_defaults=True):
    """How much of which entity."""

    depth: Annotated[int, Clamped(low=1, high=3), Meta(description="1: aspects, 2: and groups, 3: and claims")] = 3
    max_aspects: Most = 20
    max_groups: Most = 20
    max_claims: Most = 50


class GroupsRequest(EntityRequest, frozen=True, kw_only=True, omit_defaults=True):
    """Of which aspect of which entity."""

    aspect: AspectName


class ClaimsRequest(GroupsRequest, frozen=True, kw_only=True, omit_defaults=True):
    """Of which group of the aspect."""

    group: GroupName | None = None


class SlotRequest(ListAttributesRequest, frozen=True, kw_only=True, omit_defaults=True):
    """Which attributes of which entity."""

    entity: Name
    aspect: AspectName | None = None
    group: GroupName | None = None
    claim: Annotated[SelectionText, Meta(description="The key of a claim")] | None = None


class HygieneRequest(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """How many of each kind to return."""

    limit: Most = 50


class ImpactRequest(AgentFields, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """From which entity, along dependencies in which direction, how far."""

    entity_id: Name
    direction: Annotated[
        str,
        Choice(values=WALKS),
        Meta(description="downstream (incoming): what depends on it; upstream (outgoing): on what it depends; both"),
    ] = "downstream"
    max_depth: Depth = 3


class PathRequest(AgentFields, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Between which two entities."""

    source: Name
    target: Name
    max_depth: Depth = 6


class ConstellationRequest(AgentFields, frozen=True, kw_only=True, omit_defaults=True):
    """How much of the graph."""

    limit: Annotated[int, Clamped(low=1, high=MAX_ENTITIES), Meta(description="Entities to return")] = MAX_ENTITIES
    project: InProject | None = None
    places: Annotated[bool, Flag(), Meta(description="true: with a place on a map for each entity")] = False


class Stats(msgspec.Struct, frozen=True, rename="camel"):
    """How much the graph holds. ``unassignedMemoryCount``: live memories that mention no entity.

    ``coveragePercent``: the share of the others, from 0 to 100.
    """

    entity_count: int
    aspect_count: int
    attribute_count: int
    constraint_count: int
    dependency_count: int
    unassigned_memory_count: int
    coverage_percent: float
    average_aspect_weight: float
    max_weight_aspect_count: int
    min_weight_aspect_count: int


class TraversalStatus(msgspec.Struct, frozen=True):
    """The last traversal; null, because each searcher has its own and keeps none."""

    status: dict[str, Any] | None = None


class Fact(msgspec.Struct, frozen=True, rename="camel"):
    """What is known now, and by which memory."""

    id: str
    content: str
    kind: str
    importance: float
    memory_id: str
    group_key: str | None = None
    claim_key: str | None = None


class ExpandedAspect(msgspec.Struct, frozen=True, rename="camel"):
    """An aspect with what is known in it."""

    id: str
    name: str
    weight: float
    attributes: list[Fact]


class Neighbour(msgspec.Struct, frozen=True, rename="camel"):
    """An entity with what connects it. ``kind``: dependency or relation; outgoing: it is the target."""

    id: str
    target: str
    entity_type: str
    type: str
    kind: str
    direction: str
    strength: float


class ExpandedMemory(msgspec.Struct, frozen=True, rename="camel"):
    """A memory that mentions the entity."""

    id: str
    content: str
    type: str
    importance: float
    created_at: str


class ExpandReply(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is known about the entity; ``memoryCount`` counts all memories about it, also those that did not fit.

    Without such an entity: ``entity`` is null, the rest is empty, and ``error`` says so (404).
    """

    entity: Entity | None = None
    constraints: list[Fact] = []
    aspects: list[ExpandedAspect] = []
    dependencies: list[Neighbour] = []
    memory_count: int = 0
    memories: list[ExpandedMemory] = []
    error: str | UnsetType = UNSET
    code: str | UnsetType = UNSET


class SessionSummary(msgspec.Struct, frozen=True, rename="camel"):
    """The summary of a session that mentions the entity."""

    id: str
    session_key: str
    project: str | None
    harness: str | None
    content: str
    latest_at: str
    created_at: str


class ExpandSessionReply(msgspec.Struct, frozen=True, rename="camel"):
    """The summaries, the latest session first; ``total`` counts all."""

    entity_name: str
    summaries: list[SessionSummary]
    total: int


class Claim(msgspec.Struct, frozen=True, rename="camel"):
    """What is said now: of a claim, or of an attribute that belongs to none (then ``claimKey`` is null)."""

    claim_key: str | None
    kind: str
    preview: str
    attribute_count: int
    superseded_count: int
    updated_at: str


class Group(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A group of an aspect; ``general`` has what names none."""

    group_key: str
    attribute_count: int
    constraint_count: int
    claim_count: int
    claims: list[Claim] | UnsetType = UNSET


class TreeAspect(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An aspect and its groups."""

    aspect: dict[str, Any]
    attribute_count: int
    constraint_count: int
    groups: list[Group] | UnsetType = UNSET


class TreeReply(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The entity as an outline; ``unclassifiedCount``: attributes that have no aspect yet."""

    entity: Entity
    items: list[TreeAspect]
    unclassified_count: int


class GroupsReply(msgspec.Struct, frozen=True):
    """The groups of the aspect, without their claims."""

    items: list[Group]


class ClaimsReply(msgspec.Struct, frozen=True):
    """The claims of the group, or of the whole aspect."""

    items: list[Claim]


class NeighboursReply(msgspec.Struct, frozen=True):
    """What is connected with the entity, the strongest connections first."""

    items: list[Neighbour]


class Step(msgspec.Struct, frozen=True, rename="camel"):
    """An entity that a walk came to, from the entity ``viaId`` along a connection of this type."""

    id: str
    name: str
    entity_type: str
    depth: int
    via_id: str
    type: str
    direction: str
    strength: float


class WalkReply(msgspec.Struct, frozen=True):
    """The entities that were reached, the nearest first. ``truncated``: there are more than were followed."""

    entity: Entity
    items: list[Step]
    count: int
    truncated: bool


class PathReply(msgspec.Struct, frozen=True):
    """The steps of a shortest path, none if there is none within the depth."""

    found: bool
    source: Entity
    target: Entity
    steps: list[Step]


class Community(msgspec.Struct, frozen=True, rename="camel"):
    """Entities that belong together; ``cohesion``: the share of the weight of their dependencies that stays inside."""

    id: str
    label: str
    size: int
    cohesion: float
    quality: str
    created_at: str
    members: list[str]


class CommunitiesReply(msgspec.Struct, frozen=True):
    """The communities, the largest first; ``members`` are the names of their most mentioned entities."""

    items: list[Community]
    count: int


class NamedEntity(msgspec.Struct, frozen=True, omit_defaults=True):
    """An entity to look at; ``reason``: why it is suppressed; ``into``: the name of which it is another one."""

    id: str
    name: str
    mentions: int
    reason: str | None = None
    into: str | None = None


class HygieneReply(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What may be wrong, and what a person has set. ``duplicates``: names that differ little, by groups."""

    duplicates: list[list[NamedEntity]]
    without_attributes: list[NamedEntity]
    unclassified_attributes: int
    suppressed: list[NamedEntity]
    merged: list[NamedEntity]


class ConstellationEntity(msgspec.Struct, frozen=True, rename="camel"):
    """An entity with what is known about it. ``x``, ``y``: from -210 to 210, if places were asked for."""

    id: str
    name: str
    entity_type: str
    mentions: int
    pinned: bool
    aspects: list[ExpandedAspect]
    x: float | UnsetType = UNSET
    y: float | UnsetType = UNSET


class ConstellationReply(msgspec.Struct, frozen=True):
    """At most 500 entities with at most 5,000 attributes, and the dependencies between them."""

    entities: list[ConstellationEntity]
    dependencies: list[Dependency]


STATS: Final[Operation[AgentFields, Stats]] = read(
    "knowledge.stats", "How much the knowledge graph holds", "/api/knowledge/stats", AgentFields, Stats
)
TRAVERSAL: Final[Operation[AgentFields, TraversalStatus]] = read(
    "knowledge.traversal_status", "The last traversal", "/api/knowledge/traversal/status", AgentFields, TraversalStatus
)
EXPAND: Final[Operation[ExpandRequest, ExpandReply]] = read(
    *("knowledge.expand", "What is known about an entity", "/api/knowledge/expand", ExpandRequest, ExpandReply),
    method="POST",
    missing=ExpandReply,
    example={"entity": EXAMPLE_ENTITY, "question": "which port does it use?", "maxTokens": 500},
    tool=Tool(
        name="knowledge_expand",
        title="What is known about something",
        description="Read what memory knows about one person, project, tool or other thing: rules that always hold for "
        "it, facts by aspect, what it depends on, and the memories about it. Use it when a task is about something "
        "with a name; for a question in words use memory_search.",
        fields={
            "entity_name": "Its name",
            "aspect_filter": "Only aspects whose name contains this",
            "question": "What you want to know; what answers it comes first",
            "max_tokens": "Length of the answer, default 2000",
        },
        shown={
            "error": (),
            "constraints": ("content",),
            "aspects": ("name", "attributes"),
            "dependencies": ("target", "type", "direction"),
            "memoryCount": (),
            "memories": ("id", "content", "type", "createdAt"),
        },
    ),
)
EXPAND_SESSION: Final[Operation[ExpandSessionRequest, ExpandSessionReply]] = read(
    *("knowledge.expand_session", "Summaries of sessions that mention an entity", "/api/knowledge/expand/session"),
    *(ExpandSessionRequest, ExpandSessionReply),
    method="POST",
    owner_only=True,
    example={"entityName": "shop", "maxResults": 3},
)
ENTITY: Final[Operation[NameRequest, EntityDetail]] = read(
    *("knowledge.entity", "An entity by its name", "/api/knowledge/navigation/entity", NameRequest, EntityDetail),
    missing=Problem,
    example={"name": EXAMPLE_ENTITY},
)
ASPECTS: Final[Operation[EntityRequest, AspectsReply]] = read(
    *(
        "knowledge.aspects",
        "Aspects of an entity, by its name",
        "/api/knowledge/navigation/aspects",
        EntityRequest,
        AspectsReply,
    ),
    example={"entity": "shop"},
)
GROUPS: Final[Operation[GroupsRequest, GroupsReply]] = read(
    *("knowledge.groups", "Groups of an aspect", "/api/knowledge/navigation/groups", GroupsRequest, GroupsReply),
    example={"entity": "shop", "aspect": "database"},
)
CLAIMS: Final[Operation[ClaimsRequest, ClaimsReply]] = read(
    *("knowledge.claims", "Claims of a group", "/api/knowledge/navigation/claims", ClaimsRequest, ClaimsReply),
    example={"entity": "shop", "aspect": "database", "group": "general"},
)
SLOT: Final[Operation[SlotRequest, AttributesReply]] = read(
    *("knowledge.attributes", "Attributes of an entity, by names", "/api/knowledge/navigation/attributes"),
    *(SlotRequest, AttributesReply),
    example={"entity": "shop", "aspect": "database", "status": "all"},
)
TREE: Final[Operation[TreeRequest, TreeReply]] = read(
    *("knowledge.tree", "An entity as an outline", "/api/knowledge/navigation/tree", TreeRequest, TreeReply),
    missing=Problem,
    example={"entity": EXAMPLE_ENTITY, "depth": 2},
    tool=Tool(
        name="knowledge_tree",
        title="Outline of something",
        description="Read the outline of what memory knows about one thing: its aspects, groups and current claims, "
        "without the memories behind them. Use it to see what there is before knowledge_expand.",
        fields={"entity": "Its name", "depth": "1: aspects, 2: and groups, 3: and claims"},
        shown={"items": ("aspect", "attributeCount", "constraintCount", "groups"), "unclassifiedCount": ()},
    ),
)
NEIGHBOURS: Final[Operation[AgentFields, NeighboursReply]] = read(
    *("knowledge.neighbours", "What an entity is connected with", "/api/knowledge/entities/{id}/neighbours"),
    *(AgentFields, NeighboursReply),
    example={"id": EXAMPLE_ENTITY},
)
HYGIENE: Final[Operation[HygieneRequest, HygieneReply]] = read(
    "knowledge.hygiene",
    "What may be wrong with the knowledge graph",
    "/api/knowledge/hygiene",
    HygieneRequest,
    HygieneReply,
)
COMMUNITIES: Final[Operation[AgentFields, CommunitiesReply]] = read(
    "knowledge.communities",
    "Entities that belong together",
    "/api/knowledge/communities",
    AgentFields,
    CommunitiesReply,
)
IMPACT: Final[Operation[ImpactRequest, WalkReply]] = read(
    *("knowledge.impact", "What depends on an entity", "/api/graph/impact", ImpactRequest, WalkReply),
    method="POST",
    missing=Problem,
    example={"entityId": EXAMPLE_ENTITY, "direction": "downstream", "maxDepth": 2},
)
PATH: Final[Operation[PathRequest, PathReply]] = read(
    *("knowledge.path", "A shortest path between two entities", "/api/graph/path", PathRequest, PathReply),
    method="POST",
    missing=Problem,
    example={"source": EXAMPLE_ENTITY, "target": EXAMPLE_TARGET},
)
CONSTELLATION: Final[Operation[ConstellationRequest, ConstellationReply]] = read(
    *("knowledge.constellation", "The knowledge graph as a picture shows it", "/api/knowledge/constellation"),
    *(ConstellationRequest, ConstellationReply),
)
OPERATIONS: Final = (
    *(STATS, TRAVERSAL, EXPAND, EXPAND_SESSION, ENTITY, ASPECTS, GROUPS, CLAIMS, SLOT, TREE, NEIGHBOURS),
    *(HYGIENE, COMMUNITIES, IMPACT, PATH, CONSTELLATION),
)
