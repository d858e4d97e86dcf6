"""What a memory says about entities, written in the transaction that stores, changes, forgets or recovers the memory.

With ``graph.inlineLinker: link`` a text is linked to the entities of its agent that it names; with ``create`` also to
those that its form shows, with what it says about them. What a caller states (``structured``) is stored as it is.

Source: memory-pipeline.txt "Inline Entity Linker", "Decision Auto-Protection"; knowledge-graph.txt "Graph Persistence";
memory-api.txt "POST /api/memory/remember" (structured, createdAt); docs/decisions.md 20, 21, 67.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from signet_actors.domain.graph import names as graph_names
from signet_actors.domain.graph.candidates import clauses
from signet_actors.domain.graph.decisions import ATTRIBUTE_IMPORTANCE, DECISION_IMPORTANCE, is_decision_content
from signet_actors.domain.graph.relation_types import relation_type
from signet_actors.domain.graph.supersession import Conflict, Superseded
from signet_actors.domain.normalization import collapsed
from signet_actors.domain.written_forms import indexed_beside
from signet_actors.operations.structured import StatedAttribute, Structured
from signet_actors.protocol.message import Principal
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import entity_mentions
from signet_actors.store.writes import graph as rows
from signet_actors.store.writes import hints as hint_rows
from signet_actors.store.writes.graph import AttributeRow, Claim, ClaimRow, EntityRow, MentionRow
from signet_actors.store.writes.hints import HintRow
from signet_actors.store.writes.supersession import groups_of_memory
from signet_actors.writer.commands import supersession

LINKED: Final = 0.8
"""Confidence of a mention that was found by the name alone."""
STATED: Final = 1.0
"""Confidence of what a caller states without saying how sure it is."""
_MAX_AGENTS: Final = 64
_NOT_BUFFERED: Final = ("entities",)
"""Entities and their counts are never in the insert buffer, so rows of other memories stay there."""


class Contributor(NamedTuple):
    """A live memory as the graph needs it. ``source_at`` is the time of what it says."""

    id: str
    seq: int
    agent_id: str
    content: str
    source_at: str


def link(context: CommandContext, memory: Contributor, *, structured: Structured | None = None) -> None:
    """Add what a new memory, or the new text of a memory, contributes."""
    config = context.config.memory.pipeline_v2.graph
    if structured is not None:
        state(context, memory, structured)
    if not config.enabled:
        return
    if config.inline_linker == "create":
        _create(context, memory)
    tx = context.tx_for(_NOT_BUFFERED)
    found = _found(context, memory)
    if found and (structured is not None or config.inline_linker == "create"):
        known = entity_mentions.entities_of(tx, memory.id)
        found = {entity: text for entity, text in found.items() if entity not in known}
    for entity, text in found.items():
        context.insert_buffer.add(rows.MENTIONS, MentionRow(memory.id, entity, text, LINKED, context.now))
    if found:
        rows.count_mentions(tx, list(found), context.now)


def state(context: CommandContext, memory: Contributor, structured: Structured, *, renews: bool = False) -> None:
    """Store what a caller states about a live memory; what it has stated before is not stored twice.

    ``renews``: but it is said now, and replaces what was said of the same claims meanwhile.
    """
    if structured.hints:
        texts = [HintRow(memory.id, memory.seq, hint, indexed_beside(hint), context.now) for hint in structured.hints]
        hint_rows.replace(context.tx, memory.id, texts)
    if not context.config.memory.pipeline_v2.graph.enabled:
        return
    for stated in structured.entities:
        source = mentioned(context, memory, stated.name, stated.type, STATED)
        if stated.target is not None and stated.relationship is not None:
            target = mentioned(context, memory, stated.target, stated.target_type, STATED)
            relate(context, memory.id, (source, target), stated.relationship, stated.confidence)
    claims: dict[Claim, None] = {}
    for aspect in structured.aspects:
        entity = mentioned(context, memory, aspect.entity, aspect.entity_type, STATED)
        aspect_id = named_aspect(context, memory.agent_id, entity, aspect.name)
        for attribute in aspect.attributes:
            _add_stated(context, memory, entity, aspect_id, attribute, renews=renews)
        if any(attribute.claim_key for attribute in aspect.attributes):
            claims |= dict.fromkeys(rows.claims_of(context.tx, memory.id))
    for claim in claims:
        settle(context, claim, None if renews else memory.id)


def gone(context: CommandContext, memory_id: str) -> None:
    """Count the contributions of a memory no more that has just been forgotten."""
    _set_live(context, memory_id, live=False)


def back(context: CommandContext, memory_id: str) -> None:
    """Count the contributions of a memory that has just been recovered."""
    _set_live(context, memory_id, live=True)


def relink(context: CommandContext, memory: Contributor) -> None:
    """Replace the contributions of a live memory whose text has changed: nothing of them was said by the new text."""
    remove(context, memory.id, keeps_group=True)
    link(context, memory)


def remove(context: CommandContext, memory_id: str, *, keeps_group: bool = False) -> None:
    """Delete the contributions of a live memory; what they had replaced counts again (``entity_mentions.remove``)."""
    claims, groups = rows.claims_of(context.tx, memory_id), groups_of_memory(context.tx, memory_id)
    if entity_mentions.contributes(context.tx, memory_id):
        entity_mentions.count_live(context.tx, memory_id, context.now, context.new_id, live=False)
    entity_mentions.remove(context.tx, memory_id, context.now, context.new_id, keeps_group=keeps_group)
    for claim in claims:
        settle(context, claim)
    for group in groups:
        supersession.settle(context, group)


def entity_id(context: CommandContext, agent_id: str, name: str, entity_type: str | None) -> str:
    """Return the id of the agent's entity with this name, which is inserted if there is none.

    It is never a group of chunks, by its type or by its name: the graph has none, and their links count otherwise.
    """
    entity_type = None if entity_type == graph_names.CHUNK_GROUP else entity_type
    canonical = graph_names.canonical_name(name)
    known = rows.entities_named(context.tx, agent_id, [canonical]).get(canonical)
    if known is not None and known.entity_type == graph_names.CHUNK_GROUP:
        return entity_id(context, agent_id, f"{name}'", entity_type)
    if known is not None:
        if entity_type is not None and known.entity_type == graph_names.EXTRACTED != entity_type:
            rows.set_type(context.tx, known.id, entity_type, context.now)
        return known.id
    row = EntityRow(context.new_id(), name, entity_type or graph_names.EXTRACTED)
    rows.insert_entity(context.tx, agent_id, row, canonical, context.now)
    _names(context, agent_id).add(canonical)
    return row.id


def mentioned(
    context: CommandContext, memory: Contributor, name: str, entity_type: str | None, confidence: float
) -> str:
    """Return the id of the entity with this name, to which the memory is now linked."""
    name = collapsed(name)[: graph_names.MAX_NAME_CHARS]
    found = entity_id(context, memory.agent_id, name, entity_type and graph_names.canonical_name(entity_type))
    rows.add_mention(context.tx, MentionRow(memory.id, found, name, confidence, context.now))
    return found


def named_aspect(context: CommandContext, agent_id: str, entity: str, name: str) -> str:
    """Return the id of the entity's aspect with this name, which is inserted if there is none."""
    return rows.upsert_aspect(
        context.tx, entity, agent_id, name, graph_names.canonical_name(name), context.now, context.new_id
    )


def relate(
    context: CommandContext, memory_id: str, ends: tuple[str, str], relationship: str, confidence: float | None
) -> None:
    """Note that the memory states a relation; one of an entity to itself says nothing and is not stored."""
    relation = relation_type(relationship)
    if relation and ends[0] != ends[1]:
        sure = STATED if confidence is None else confidence
        rows.state_relation(context.tx, memory_id, ends, relation, sure, context.now, context.new_id)


def settle(context: CommandContext, claim: Claim, stated_by: str | None = None) -> None:
    """Let each live statement of the claim be replaced by the next one that says something else.

    A constraint is replaced by another constraint only. The newest statement is always active, so one that a memory
    adds (``stated_by``) after all active ones replaces only these: the others, which may be thousands, are not read.
    """
    found = rows.of_claim(context.tx, claim, only_active=True) if stated_by is not None else []
    is_added = [row.memory_id == stated_by for row in found]
    if not any(is_added) or is_added != sorted(is_added):
        found = rows.of_claim(context.tx, claim)
    replaced_by = _replacements([row for row in found if row.is_live])
    for row in found:
        by = replaced_by.get(row.id)
        status = "active" if row.is_live and by is None else "superseded"
        if (row.status, row.superseded_by) == (status, by):
            continue
        how = None if by is None else supersession.BY_CLAIM
        rows.set_status(context.tx, row.id, status, context.now, by=by, how=how)
        if by is not None and row.superseded_by != by:
            replaced = Superseded(by, Conflict(supersession.BY_CLAIM, STATED))
            supersession.record(context, row, replaced, supersession.SUPERSEDED, Principal())


def _replacements(live: Sequence[ClaimRow]) -> dict[str, str]:
    """Return which statement replaces which, by their ids."""
    found: dict[str, str] = {}
    later: dict[str, tuple[ClaimRow, ClaimRow | None]] = {}  # by kind: the next one, and the next that differs from it
    for row in reversed(live):
        following, other = later.get(row.kind, (None, None))
        by = following if following is not None and following.content != row.content else other
        if by is not None:
            found[row.id] = by.id
        for kind in ("constraint", "attribute") if row.kind == "constraint" else ("attribute",):
            before, differing = later.get(kind, (None, None))
            changes = before is not None and before.content != row.content
            later[kind] = row, before if changes else differing
    return found


def _set_live(context: CommandContext, memory_id: str, *, live: bool) -> None:
    if not entity_mentions.contributes(context.tx, memory_id):
        return
    entity_mentions.count_live(context.tx, memory_id, context.now, context.new_id, live=live)
    for claim in rows.claims_of(context.tx, memory_id):
        settle(context, claim)
    supersession.settle_memory(context, memory_id)


def known_entities(context: CommandContext, agent_id: str, text: str, mentions: int) -> int:
    """Return how many of the agent's entities that at least so many memories mention the text names."""
    found = list(_names(context, agent_id).mentions(text))
    rows_of = rows.entities_named(context.tx, agent_id, list({mention.canonical for mention in found}))
    named = {
        row.id
        for mention in found
        if (row := rows_of.get(mention.canonical)) is not None and graph_names.is_written_as(row.name, mention.text)
    }
    return sum(rows.mentions_of(context.tx, entity) >= mentions for entity in named)


def _names(context: CommandContext, agent_id: str) -> graph_names.NameIndex:
    """Return the names of the agent's entities. It may have some that are gone, or were rolled back, but lacks none."""
    known = context.row_cache.entity_names
    names = known.get(agent_id)
    if names is None:
        if len(known) >= _MAX_AGENTS:
            del known[next(iter(known))]
        names = known[agent_id] = graph_names.NameIndex(rows.names_of(context.tx, agent_id))
    return names


def _found(context: CommandContext, memory: Contributor) -> dict[str, str]:
    """Return the ids of the entities that the text names, each with the words that name it."""
    mentions = list(_names(context, memory.agent_id).mentions(memory.content))
    if not mentions:
        return {}
    names = list(dict.fromkeys(mention.canonical for mention in mentions))
    known = rows.entities_named(context.tx_for(_NOT_BUFFERED), memory.agent_id, names)
    found: dict[str, str] = {}
    for mention in mentions:
        row = known.get(mention.canonical)
        if row is not None and graph_names.is_written_as(row.name, mention.text):
            found.setdefault(row.id, mention.text)
    return found


def _create(context: CommandContext, memory: Contributor) -> None:
    """Store the entities, aspects and attributes that the form of the text shows."""
    is_decision = is_decision_content(memory.content)
    kind, importance = "attribute", ATTRIBUTE_IMPORTANCE
    if is_decision:
        kind, importance = "constraint", DECISION_IMPORTANCE
    for clause in clauses(memory.content):
        entities = [mentioned(context, memory, name, None, LINKED) for name in clause.names]
        aspect_id = named_aspect(context, memory.agent_id, entities[0], clause.aspect)
        rows.add_attribute(
            context.tx,
            _attribute_row(context, memory, entities[0], aspect_id)._replace(
                content=clause.text, kind=kind, importance=importance, confidence=LINKED, source="linker"
            ),
        )


def _add_stated(
    context: CommandContext,
    memory: Contributor,
    entity: str,
    aspect_id: str,
    attribute: StatedAttribute,
    *,
    renews: bool,
) -> None:
    protects = attribute.kind == "constraint"
    otherwise = DECISION_IMPORTANCE if protects else ATTRIBUTE_IMPORTANCE
    rows.add_attribute(
        context.tx,
        _attribute_row(context, memory, entity, aspect_id)._replace(
            content=attribute.content,
            kind=attribute.kind,
            group_key=attribute.group_key,
            claim_key=attribute.claim_key,
            confidence=STATED if attribute.confidence is None else attribute.confidence,
            importance=otherwise if attribute.importance is None else attribute.importance,
        ),
        renews=renews,
    )


def _attribute_row(context: CommandContext, memory: Contributor, entity: str, aspect_id: str | None) -> AttributeRow:
    """Return a new attribute of the memory without what it says."""
    return AttributeRow(
        id=context.new_id(),
        entity_id=entity,
        aspect_id=aspect_id,
        agent_id=memory.agent_id,
        memory_id=memory.id,
        content="",
        kind="attribute",
        group_key=None,
        claim_key=None,
        confidence=STATED,
        importance=ATTRIBUTE_IMPORTANCE,
        source="structured",
        source_at=memory.source_at,
        created_at=context.now,
        updated_at=context.now,
    )
