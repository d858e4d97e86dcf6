"""What the pipeline adds to the graph: the relations that a run found, its facts about entities, and their aspects.

Source: memory-pipeline.txt "Knowledge Graph", "Structural Classification"; knowledge-graph.txt "Graph Persistence".
Departs: the relations are stored in a savepoint of the transaction that stores the facts, not in a transaction after
it. A failure takes back only them, and no crash can come between.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import msgspec

from signet_actors.domain.extraction.facts import EntityTriple
from signet_actors.domain.graph.decisions import ATTRIBUTE_IMPORTANCE, DECISION_IMPORTANCE, is_decision_content
from signet_actors.domain.graph.names import (
    ENTITY_TYPES,
    MIN_NAME_CHARS,
    NameIndex,
    canonical_name,
    is_written_as,
)
from signet_actors.domain.jobs import STRUCTURAL_CLASSIFY
from signet_actors.features.classification.api import EntityPart, StoreClassification
from signet_actors.store.command_context import CommandContext
from signet_actors.store.errors import ConstraintViolated
from signet_actors.store.writes import classification as class_rows
from signet_actors.store.writes import entity_mentions
from signet_actors.store.writes import graph as rows
from signet_actors.store.writes import jobs as job_rows
from signet_actors.store.writes import leases as lease_rows
from signet_actors.store.writes.graph import AttributeRow, MentionRow
from signet_actors.store.writes.leases import ActiveLease
from signet_actors.store.writes.memories import StoredRow
from signet_actors.store.writes.supersession import groups_of_memory
from signet_actors.writer.commands import graph, jobs, supersession
from signet_actors.writer.commands.graph import Contributor

ENTITY_GONE: Final = '{"skipped":"entity_gone"}'
_FAILURES: Final = (ConstraintViolated, ArithmeticError, LookupError, TypeError, ValueError)
"""What a defect here may raise. An error of the disk fails the whole command."""


class GraphAdditions(msgspec.Struct, frozen=True):
    """What a run added to the graph in the name of its source memory: ids of entities, relations and attributes."""

    mentions: list[str] = []
    relations: list[str] = []
    attributes: list[str] = []


class StoredFact(NamedTuple):
    """A fact that the run stored as a memory, with its text."""

    memory_id: str
    text: str
    confidence: float


class _Entity(NamedTuple):
    id: str
    name: str
    is_source: bool


def persist(
    context: CommandContext, memory: Contributor, triples: Sequence[EntityTriple], facts: Iterable[StoredFact]
) -> GraphAdditions | None:
    """Store the relations and link the facts to their entities; None if that failed, and then nothing is stored."""
    try:
        with context.tx.savepoint():
            additions = _persist(context, memory, triples, facts)
            context.insert_buffer.flush()
    except _FAILURES:
        context.insert_buffer.discard()
        return None
    return additions


def _persist(
    context: CommandContext, memory: Contributor, triples: Sequence[EntityTriple], facts: Iterable[StoredFact]
) -> GraphAdditions:
    tx = context.tx
    mentions = set(entity_mentions.entities_of(tx, memory.id))
    relations = set(entity_mentions.relations_of(tx, memory.id))
    attributes = set(entity_mentions.attributes_of(tx, memory.id))
    entities: dict[str, _Entity] = {}
    for triple in triples:
        if min(len(canonical_name(name)) for name in (triple.source, triple.target)) < MIN_NAME_CHARS:
            continue
        context.heartbeat()
        source = _mentioned(context, memory, triple.source, triple.source_type, triple.confidence)
        target = _mentioned(context, memory, triple.target, triple.target_type, triple.confidence)
        graph.relate(context, memory.id, (source, target), triple.relationship, triple.confidence)
        for name, entity in ((triple.source, source), (triple.target, target)):
            former = entities.get(canonical_name(name))
            is_source = entity == source or (former is not None and former.is_source)
            entities[canonical_name(name)] = _Entity(entity, name, is_source)
    for subject in dict.fromkeys(_link_fact(context, memory, fact, entities) for fact in facts):
        if subject is not None and not job_rows.is_classified(context.tx, subject):
            _classify_later(context, EntityPart(subject))
    return GraphAdditions(
        sorted(set(entity_mentions.entities_of(context.tx, memory.id)) - mentions),
        sorted(set(entity_mentions.relations_of(context.tx, memory.id)) - relations),
        sorted(set(entity_mentions.attributes_of(context.tx, memory.id)) - attributes),
    )


def _mentioned(
    context: CommandContext, memory: Contributor, name: str, entity_type: str | None, confidence: float
) -> str:
    known = entity_type if entity_type in ENTITY_TYPES else None
    return graph.mentioned(context, memory, name, known, confidence)


def _link_fact(
    context: CommandContext, source: Contributor, fact: StoredFact, entities: dict[str, _Entity]
) -> str | None:
    """Link the fact to the entities that it names, and return the one that it is about.

    That is the first that has a relation to others, else the first; the fact is its attribute without an aspect.
    """
    named: dict[str, _Entity] = {}
    for mention in NameIndex(entities).mentions(fact.text):
        entity = entities[mention.canonical]
        if entity.id not in named and is_written_as(entity.name, mention.text):
            named[entity.id] = entity
            row = MentionRow(fact.memory_id, entity.id, mention.text, fact.confidence, context.now)
            rows.add_mention(context.tx, row)
    if not named:
        return None
    subject = next((entity for entity in named.values() if entity.is_source), next(iter(named.values())))
    if class_rows.says(context.tx, fact.memory_id, subject.id, fact.text):
        return None
    is_decision = is_decision_content(fact.text)
    attribute = AttributeRow(
        id=context.new_id(),
        entity_id=subject.id,
        aspect_id=None,
        agent_id=source.agent_id,
        memory_id=fact.memory_id,
        content=fact.text,
        kind="constraint" if is_decision else "attribute",
        group_key=None,
        claim_key=None,
        confidence=fact.confidence,
        importance=DECISION_IMPORTANCE if is_decision else ATTRIBUTE_IMPORTANCE,
        source="pipeline",
        source_at=source.source_at,
        created_at=context.now,
        updated_at=context.now,
    )
    rows.add_attribute(context.tx, attribute)
    return subject.id


def _classify_later(context: CommandContext, part: EntityPart) -> None:
    """Enqueue a job that classifies the facts of the entity, after a while in which further ones may come."""
    delay_ms = context.config.memory.pipeline_v2.structural.poll_interval_ms
    jobs.enqueue_new(
        context, STRUCTURAL_CLASSIFY, payload=msgspec.json.encode(part).decode(), delay_ms=0 if part.after else delay_ms
    )


def classify(context: CommandContext, report: StoreClassification, job: ActiveLease) -> str:
    """Give the attributes their aspects, let later ones replace earlier ones, and enqueue a job for what is left.

    An attribute that has an aspect meanwhile, or whose memory was forgotten, is left as it is; a constraint stays one.
    """
    tx = context.tx
    part = msgspec.json.decode(lease_rows.payload_of(tx, job.seq), type=EntityPart)
    agent_id = class_rows.agent_of(tx, part.entity)
    if agent_id is None:
        return ENTITY_GONE
    if report.entity_type in ENTITY_TYPES:
        rows.set_type(tx, part.entity, report.entity_type, context.now)
    aspects: dict[str, None] = {}
    classified = 0
    for one in report.assignments:
        attribute_id = report.attribute_ids[one.i - 1]
        if not class_rows.awaits_aspect(tx, attribute_id, part.entity):
            continue
        aspect_id = graph.named_aspect(context, agent_id, part.entity, one.aspect)
        class_rows.set_aspect(tx, attribute_id, aspect_id, one.kind, context.now)
        aspects[aspect_id] = None
        classified += 1
    found = {one.older: (one.newer, one.confidence) for one in report.conflicts}
    superseded = supersession.settle_aspects(context, aspects, found)
    if report.through and class_rows.has_unclassified(tx, part.entity, report.through):
        _classify_later(context, EntityPart(part.entity, report.through))
    return msgspec.json.encode({"classified": classified, "superseded": superseded}).decode()


def take_back(context: CommandContext, job_id: str, source: StoredRow) -> None:
    """Remove what the run of the job added to the graph in the name of its source memory, if that says the same still.

    Its facts are forgotten by the undo itself, and their attributes with them.
    """
    result, leased_hash = job_rows.result_of(context.tx, job_id)
    if result is None or leased_hash != source.content_hash:
        return
    added = msgspec.json.decode(result, type=_RunResult).graph
    if added is None:
        return
    groups = groups_of_memory(context.tx, source.id)
    entity_mentions.remove_attributes(context.tx, source.id, added.attributes)
    entity_mentions.take_back(
        context.tx,
        source.id,
        added.mentions,
        added.relations,
        context.now,
        context.new_id,
        live=not source.is_deleted,
    )
    for group in groups:
        supersession.settle(context, group)


class _RunResult(msgspec.Struct, frozen=True):
    """What of the result of an extract job is read here."""

    graph: GraphAdditions | None = None
