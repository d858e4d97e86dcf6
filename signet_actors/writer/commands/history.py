"""The audit trail: every change of a memory records an event in the same transaction.

Source: memory-system.txt "Memory History"; docs/decisions.md 32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from signet_actors.protocol.message import Principal
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import history as history_rows
from signet_actors.store.writes.history import HISTORY, HistoryRow
from signet_actors.writer.byte_budget import ByteBudget

_SLICE_ROWS = 500


class Evidence(NamedTuple):
    """Additional data of an event whose change was made by a job, a review or an undo.

    The id is created beforehand, so that the row of the proposal can refer to its event.
    """

    event_id: str
    job_id: str
    metadata: Mapping[str, object]


def record(
    context: CommandContext,
    memory_id: str,
    event: str,
    principal: Principal,
    *,
    old_content: str | None = None,
    new_content: str | None = None,
    reason: str | None = None,
    metadata: Mapping[str, object] | None = None,
    evidence: Evidence | None = None,
) -> None:
    """Record an event in the history of ``memory_id``."""
    if evidence is not None:
        metadata = {**(metadata or {}), **evidence.metadata}
    context.insert_buffer.add(
        HISTORY,
        HistoryRow(
            id=context.new_id() if evidence is None else evidence.event_id,
            memory_id=memory_id,
            event=event,
            old_content=old_content,
            new_content=new_content,
            changed_by=principal.changed_by,
            actor_type=principal.actor_type,
            reason=reason,
            metadata=None if metadata is None else msgspec.json.encode(metadata).decode(),
            session_id=principal.session_id,
            request_id=principal.request_id,
            job_id=None if evidence is None else evidence.job_id,
            created_at=context.now,
        ),
    )


def erase_most(context: CommandContext, memory_id: str, budget: ByteBudget) -> bool:
    """Remove contents of the memory's events within the budget; return True if few enough are left for one statement.

    ``store.writes.history.erase_content`` does the rest.
    """
    while not budget.used_up:
        rows = history_rows.with_content(context.tx, memory_id, _SLICE_ROWS)
        erased = []
        for seq, size in rows:
            erased.append(seq)
            budget.spend(size)
            if budget.used_up:
                break
        else:
            if len(rows) < _SLICE_ROWS:
                return True
        context.heartbeat()
        history_rows.erase_events(context.tx, erased)
    return False
