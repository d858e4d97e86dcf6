"""Soft-delete one memory, inside the open transaction. Source: memory-system.txt "Soft-Delete and Recovery"."""

from __future__ import annotations

from signet_actors.domain.memories import AGGREGATE
from signet_actors.protocol.message import Principal
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import embeddings as embedding_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.store.writes import store_meta
from signet_actors.store.writes.memories import StoredRow
from signet_actors.writer.commands import graph, history

SAID_BY_ITSELF = "a memory has the same words"


def soft_delete(
    context: CommandContext,
    row: StoredRow,
    principal: Principal,
    reason: str,
    evidence: history.Evidence | None = None,
) -> None:
    """Mark the live row as deleted, remove it from every search index, and record the event."""
    # A clock that is behind now may be right again at the next sweep, which must not find a row that looks old.
    swept_at = store_meta.value(context.tx, store_meta.HIGH_WATER_MARK) or ""
    deleted_at = max(context.now, row.updated_at, swept_at)
    memory_rows.mark_deleted(context.tx, row.seq, deleted_at=deleted_at, updated_by=principal.changed_by)
    embedding_rows.hide_all(context.tx, row.id)
    graph.gone(context, row.id)
    history.record(context, row.id, "deleted", principal, old_content=row.content, reason=reason, evidence=evidence)


def make_room(
    context: CommandContext, row: StoredRow | None, source_type: str | None, principal: Principal
) -> StoredRow | None:
    """Return the row that a memory duplicates; None if it is the answer of an aggregate recall, which is forgotten.

    An answer goes with its sources, so it must not stand for a memory of its own.
    """
    if row is None or row.is_deleted or row.source_type != AGGREGATE or source_type == AGGREGATE:
        return row
    soft_delete(context, row, principal, SAID_BY_ITSELF)
    return None
