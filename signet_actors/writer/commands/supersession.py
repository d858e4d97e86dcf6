"""Settle which of the sibling attributes are active: what live memories say, compared by the rules in their order.

The result depends on live memories only, so a memory that goes or comes back leaves no trace. What a model found is
kept in ``superseded_by`` and ``superseded_how`` of the older attribute, and holds while the newer one is there.

Source: knowledge-graph.txt "Retroactive Supersession"; docs/compatibility.md "Supersession of attributes".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from signet_actors.domain.extraction.contradiction import MIN_SEMANTIC_CONFIDENCE
from signet_actors.domain.extraction.gates import PIPELINE_ACTOR, PipelineMode, flags_of, pipeline_mode
from signet_actors.domain.graph.supersession import MAX_SIBLINGS, Claim, Conflict, Superseded, superseded
from signet_actors.protocol.message import Principal
from signet_actors.protocol.pipeline import AttributesSettled, SettleAttributes
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import supersession as rows
from signet_actors.store.writes.graph import ClaimRow, set_status
from signet_actors.store.writes.supersession import Group, Sibling
from signet_actors.writer.commands import history

SUPERSEDED: Final = "attribute_superseded"
PROPOSAL: Final = "supersession_proposal"
SEMANTIC: Final = "semantic"
BY_CLAIM: Final = "claim"
_REASONING: Final = {
    "negation": "only one of the two is negated",
    "antonym": "the two use opposite words",
    "value": "the two name different values of the same thing",
    "temporal": "the newer one speaks of a change",
    SEMANTIC: "a model says that both cannot be true",
    BY_CLAIM: "a newer statement of the same claim",
}
"""What the history says. A model's own words are not kept, because they may quote a memory that is erased later."""


def settle_memory(context: CommandContext, memory_id: str) -> None:
    """Settle the groups of a memory that has gone or come back."""
    for group in rows.groups_of_memory(context.tx, memory_id):
        settle(context, group)


def settle_aspects(
    context: CommandContext, aspect_ids: Iterable[str], found: Mapping[str, tuple[str, float]] | None = None
) -> int:
    """Settle all groups of the aspects; return how many attributes changed or were proposed to. See ``settle``."""
    groups = {group for each in aspect_ids for group in rows.groups_of_aspect(context.tx, each)}
    return sum(settle(context, group, found) for group in sorted(groups))


def settle(context: CommandContext, group: Group, found: Mapping[str, tuple[str, float]] | None = None) -> int:
    """Settle the group; return how many attributes changed or were proposed to.

    ``found``: what a model found just now: by older attribute, the newer one and its confidence. An attribute of a
    pinned memory is not replaced. While the pipeline may only propose, an event of history is all that is written.
    """
    tx = context.tx
    siblings = {each.id: each for each in rows.siblings(tx, group, MAX_SIBLINGS)}
    order = {each: at for at, each in enumerate(siblings)}
    semantic = {
        each.id: Superseded(each.superseded_by, Conflict(SEMANTIC, MIN_SEMANTIC_CONFIDENCE))
        for each in siblings.values()
        if each.superseded_how == SEMANTIC and each.superseded_by in order
    }
    semantic |= {
        older: Superseded(newer, Conflict(SEMANTIC, confidence))
        for older, (newer, confidence) in (found or {}).items()
        if older in order and newer in order and order[older] < order[newer]
    }
    semantic = {older: by for older, by in semantic.items() if not siblings[older].pinned}
    claims = (
        Claim(each.id, each.content, each.source_at, is_protected=bool(each.pinned))
        for each in siblings.values()
        if each.id not in semantic
    )
    replaced = superseded(claims, rows.name_of(tx, group.entity_id)) | semantic
    return sum(_set(context, each, replaced.get(each.id)) for each in siblings.values())


def _set(context: CommandContext, old: Sibling, by: Superseded | None) -> bool:
    """Give the attribute its status, or propose it; return whether anything was written."""
    if by is None:
        if old.status == "active":
            return False
        # What a model found is kept for the case that its newer attribute comes back.
        keeps = {"by": old.superseded_by, "how": SEMANTIC} if old.superseded_how == SEMANTIC else {}
        set_status(context.tx, old.id, "active", context.now, **keeps)
        return True
    how = by.conflict.method
    if (old.status, old.superseded_by, old.superseded_how) == ("superseded", by.by, how):
        return False
    if old.status == "active" and _only_proposes(context):
        return _record(context, old, by, PROPOSAL)
    set_status(context.tx, old.id, "superseded", context.now, by=by.by, how=how)
    return _record(context, old, by, SUPERSEDED)


def _only_proposes(context: CommandContext) -> bool:
    pipeline = context.config.memory.pipeline_v2
    mode = pipeline_mode(flags_of(pipeline))
    return (
        mode in {PipelineMode.SHADOW, PipelineMode.FROZEN} or pipeline.autonomous.frozen or pipeline.confirm == "review"
    )


def _record(context: CommandContext, old: Sibling, by: Superseded, event: str) -> bool:
    """Record the event in the history of the older attribute's memory, a proposal once."""
    if event == PROPOSAL and rows.is_proposed(context.tx, event, old, by.by):
        return False
    record(context, old, by, event, Principal(changed_by=PIPELINE_ACTOR, actor_type="pipeline"))
    return True


def record(
    context: CommandContext,
    old: Sibling | ClaimRow,
    by: Superseded,
    event: str,
    principal: Principal,
) -> None:
    """Record in the history of its memory what replaces the older attribute, or is proposed to."""
    metadata = {
        "old_attribute_id": old.id,
        "new_attribute_id": by.by,
        "aspect_id": old.aspect_id,
        "method": by.conflict.method,
        "confidence": by.conflict.confidence,
        "reasoning": _REASONING[by.conflict.method],
    }
    history.record(context, old.memory_id, event, principal, metadata=metadata)


def sweep(context: CommandContext, command: SettleAttributes) -> AttributesSettled:
    """Settle the next aspects."""
    aspects = rows.aspects_after(context.tx, command.after, command.limit)
    changed = settle_aspects(context, aspects)
    return AttributesSettled(changed, aspects[-1] if len(aspects) == command.limit else None)
