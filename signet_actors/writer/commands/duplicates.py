"""Merge two memories that say the same. Source: docs/compatibility.md "Repair gate"."""

from __future__ import annotations

import msgspec

from signet_actors.features.duplicates.api import MergePair, NoteCompared, PairMerged
from signet_actors.features.duplicates.reads import POSITION
from signet_actors.features.repairs import rules
from signet_actors.features.repairs.writes import record
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.writer import ForgetMemory
from signet_actors.store.command_context import CommandContext
from signet_actors.store.rows import decode_tags
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes import store_meta
from signet_actors.writer.commands import history, memory_changes


def merge(context: CommandContext, command: MergePair) -> PairMerged:
    """Give the tags and the importance of the merged memory to the one that stays, and forget it.

    Nothing is done if one of the two is not as it was found: deleted, pinned, edited, moved.
    """
    found, tx = command.found, context.tx
    kept, merged = (memory_rows.by_id(tx, memory_id) for memory_id in (found.pair.kept, found.pair.merged))
    if kept is None or merged is None or kept.id == merged.id or kept.duplicate_scope != merged.duplicate_scope:
        return PairMerged(merged=False)
    as_found = (kept.content_hash, merged.content_hash) == (found.kept_hash, found.merged_hash)
    if not as_found or kept.agent_id != command.agent_id or any(row.is_deleted or row.pinned for row in (kept, merged)):
        return PairMerged(merged=False)
    before = decode_tags(kept.tags)
    added = [tag for tag in decode_tags(merged.tags) if tag not in before]
    columns = {
        "tags": msgspec.json.encode([*before, *added]).decode(),
        "importance": max(kept.importance, merged.importance),
    }
    memory_rows.add_tags(tx, kept.seq, added)
    memory_rows.update(tx, kept.seq, columns, updated_at=context.now, updated_by=command.principal.changed_by)
    reason = f"{merged.id} says the same"
    metadata = {"mergedFrom": merged.id, "similarity": found.pair.similarity, "tags": added}
    history.record(context, kept.id, "merged", command.principal, reason=reason, metadata=metadata)
    forget = ForgetMemory(merged.id, f"merged into {kept.id}", command.principal, read=ReadScope(command.agent_id))
    if memory_changes.forget(context, forget).status != "deleted":
        raise AssertionError("a live memory of the agent that is not pinned can be forgotten")
    if command.first:
        record(context, rules.DEDUPLICATE, command.planned, command.principal)
    return PairMerged(merged=True)


def note_compared(context: CommandContext, command: NoteCompared) -> PairMerged:
    """Store where the next comparison begins."""
    store_meta.put(context.tx, POSITION + command.agent_id, str(command.compared))
    return PairMerged(merged=False)
