"""Messages about the facts of an entity that have no aspect yet.

Source: memory-pipeline.txt "Structural Classification"; knowledge-graph.txt "Retroactive Supersession".
"""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec

from signet_actors.domain.graph.classification import Assignment
from signet_actors.domain.jobs import STRUCTURAL_CLASSIFY
from signet_actors.protocol.leases import JobReport
from signet_actors.protocol.message import Answered, Request

OPERATIONS: Final = ()


class EntityPart(msgspec.Struct, frozen=True):
    """What a job is about: the attributes of the entity without an aspect after row ``after``."""

    entity: str
    after: int = 0


class EntityFact(msgspec.Struct, frozen=True):
    """An attribute of the entity; ``aspect`` is the canonical name, empty until it is classified."""

    seq: int
    id: str
    content: str
    aspect: str
    said_at: str


class EntityFacts(msgspec.Struct, frozen=True):
    """An entity with names of its aspects, the facts to classify, and the newest facts that are classified.

    ``name`` is empty if there is no such entity.
    """

    name: str
    entity_type: str
    aspects: list[str]
    facts: list[EntityFact]
    siblings: list[EntityFact]


class FindUnclassified(Request[Answered], frozen=True, tag="classification.find"):
    """Find the next facts of an entity, in the order of their rows, and ``siblings`` of those that have an aspect."""

    part: EntityPart
    limit: int
    siblings: int


class SemanticConflict(msgspec.Struct, frozen=True):
    """A model says that the ``older`` attribute is no longer true, because of the ``newer`` one."""

    older: str
    newer: str
    confidence: float


class StoreClassification(JobReport, frozen=True, tag="classification.store"):
    """The aspects of the attributes with these ids; ``assignments`` count them from 1.

    ``through``: the last row that the model was shown. ``entity_type``: what the entity is, if a model was asked.
    """

    kind: ClassVar[str] = STRUCTURAL_CLASSIFY

    attribute_ids: tuple[str, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    entity_type: str | None = None
    through: int = 0
    conflicts: tuple[SemanticConflict, ...] = ()
