"""The audit trail: every change of a memory records an event in the same transaction.

Source: memory-system.txt "Memory History"; docs/decisions.md 32.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from signet_actors.protocol.message import Principal
from signet_actors.store.writes.inserts import Insert
from signet_actors.writer.byte_budget import ByteBudget
from signet_actors.writer.command_context import CommandContext

_HISTORY = Insert(
    "memory_history",
    (
        "id",
        "memory_id",
        "event",
        "old_content",
        "new_content",
        "changed_by",
        "actor_type",
        "reason",
        "metadata",
        "session_id",
        "request_id",
        "job_id",
        "created_at",
    ),
)


class Evidence(NamedTuple):
    """Additional data of an event whose change was made by a job, a review or an undo.

    The id is created beforehand, so that the row of the proposal can refer to its event.
    """

    event_id: str
    job_id: str
    metadata: Mapping[str, object]


KEY = "idempotencyKey"
"""Metadata key of the event that took the idempotency key from a deleted memory."""
_REASON = "'$.decisionReason'"
_TEXTS = f"'$.factContent', {_REASON}"
"""Where an event's metadata may repeat the text of a memory; the reason may quote any memory that the model saw."""
_WITHOUT_REASON = f"reason = nullif(reason, metadata ->> {_REASON})"
"""Clears the reason if it is the model's (it equals the decision's reason); a person's reason stays."""


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
        _HISTORY,
        (
            context.new_id() if evidence is None else evidence.event_id,
            memory_id,
            event,
            old_content,
            new_content,
            principal.changed_by,
            principal.actor_type,
            reason,
            None if metadata is None else msgspec.json.encode(metadata).decode(),
            principal.session_id,
            principal.request_id,
            None if evidence is None else evidence.job_id,
            context.now,
        ),
    )


_BYTES = "coalesce(octet_length(old_content), 0) + coalesce(octet_length(new_content), 0)"
_HAS_CONTENT = "(old_content IS NOT NULL OR new_content IS NOT NULL)"
_SLICE_ROWS = 500


def erase_most(context: CommandContext, memory_id: str, budget: ByteBudget) -> bool:
    """Remove contents of the memory's events within the budget; return True if few enough are left for one statement.

    ``erase_content`` does the rest.
    """
    while not budget.used_up:
        rows = context.tx.rows(
            f"SELECT seq, {_BYTES} FROM memory_history WHERE memory_id = ? AND {_HAS_CONTENT} LIMIT ?",
            (memory_id, _SLICE_ROWS),
        )
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
        context.tx.execute(
            "UPDATE memory_history SET old_content = NULL, new_content = NULL"
            " WHERE seq IN (SELECT value FROM json_each(?))",
            (msgspec.json.encode(erased).decode(),),
        )
    return False


def erase_content(context: CommandContext, memory_id: str, memory_seq: int) -> None:
    """Remove the content of an erased memory from its events, which stay. Source: docs/reliability.md R23."""
    context.tx.execute(
        f"UPDATE memory_history SET old_content = NULL, new_content = NULL, {_WITHOUT_REASON},"
        f" metadata = json_remove(metadata, {_TEXTS}, '$.{KEY}') WHERE memory_id = ?",
        (memory_id,),
    )
    # What a model said about it may be in the history of another memory: the proposal's source or target.
    context.tx.execute(
        f"UPDATE memory_history SET {_WITHOUT_REASON}, metadata = json_remove(metadata, {_TEXTS})"
        " WHERE seq IN (SELECT h.seq FROM memory_proposals p JOIN memory_history h"
        " ON h.job_id = p.job_id AND h.id = p.history_id"
        " WHERE p.memory_id = :id OR p.target_id = :id OR p.result_memory_id = :id)",
        {"id": memory_id},
    )
    context.tx.execute(
        f"UPDATE memory_history SET {_WITHOUT_REASON}, metadata = json_remove(metadata, {_REASON})"
        " WHERE seq IN (SELECT h.seq FROM shown_memories s JOIN memory_proposals p ON p.seq = s.proposal_seq"
        " JOIN memory_history h ON h.job_id = p.job_id AND h.id = p.history_id WHERE s.memory_seq = ?)",
        (memory_seq,),
    )
