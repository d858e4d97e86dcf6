"""The gate of the repairs, their records, and the statements of those that change only indexes.

A repair that changed something is an event of the history of ``system``, in its transaction. The limits are computed
from these events, so that no restart or crash forgets one.

Source: architecture.txt "Repair Actions"; docs/compatibility.md "Repair gate".
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from signet_actors.domain.timestamps import epoch_ms
from signet_actors.features.diagnostics import reads as diagnostics
from signet_actors.features.diagnostics.api import CountChanges, MeasureHealth
from signet_actors.features.diagnostics.rules import text_index_differs
from signet_actors.features.repairs import api, rules
from signet_actors.operations.repair import RepairReply
from signet_actors.protocol.message import Asked, Principal
from signet_actors.store.command_context import CommandContext
from signet_actors.store.engine import WriteTransaction
from signet_actors.store.writes import embeddings as embedding_rows
from signet_actors.store.writes import history
from signet_actors.store.writes.history import HISTORY, HistoryRow

SYSTEM: Final = "system"
"""The ``memory_id`` of history events that concern no particular memory."""
_ORPHANS: Final = (
    "SELECT DISTINCT e.source_id FROM embeddings e WHERE e.source_type = 'memory'"
    " AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = e.source_id) LIMIT :limit"
)

_WITHOUT_VECTOR: Final = (
    "SELECT m.id FROM memories m WHERE m.is_deleted = 0 AND NOT EXISTS"
    " (SELECT 1 FROM embeddings e WHERE e.seq = m.embedding_seq AND e.content_hash = m.content_hash)"
    " AND NOT EXISTS (SELECT 1 FROM memory_jobs j WHERE j.memory_id = m.id AND j.job_type = 'embed'"
    "  AND j.status IN ('pending', 'leased')) ORDER BY m.seq LIMIT :limit"
)


def without_vector(tx: WriteTransaction, limit: int) -> list[str]:
    """Return live memories that have no vector of their present content, and no embed job that is not ended."""
    return [memory_id for (memory_id,) in tx.rows(_WITHOUT_VECTOR, {"limit": limit})]


def enter(context: CommandContext, action: str, principal: Principal) -> None:
    """Raise SignetError (forbidden, rate_limited) unless the action may run now."""
    pipeline = context.config.memory.pipeline_v2
    limit = rules.limit_of(action, pipeline.repair)
    moments = history.times_of(context.tx, SYSTEM, action, limit.hourly_budget)
    ages = [context.now_ms - (epoch_ms(moment) or 0) for moment in moments]
    rules.check_gate(action, principal.actor_type, pipeline.autonomous, limit, ages)


def record(context: CommandContext, action: str, affected: int, principal: Principal) -> None:
    """Record a repair that changed something."""
    context.insert_buffer.add(
        HISTORY,
        HistoryRow(
            id=context.new_id(),
            memory_id=SYSTEM,
            event="none",
            old_content=None,
            new_content=None,
            changed_by=principal.changed_by,
            actor_type=principal.actor_type,
            reason=action,
            metadata=msgspec.json.encode({"repair": action, "affected": affected}).decode(),
            session_id=principal.session_id,
            request_id=principal.request_id,
            job_id=None,
            created_at=context.now,
        ),
    )


def done(context: CommandContext, action: str, affected: int, principal: Principal, message: str) -> RepairReply:
    """Return the result; record it if something was changed."""
    if affected:
        record(context, action, affected, principal)
    return RepairReply(action=action, success=True, affected=affected, message=message, steps=[])


def admitted(context: CommandContext, asked: api.EnterRepair) -> api.RepairAdmitted:
    enter(context, asked.action, asked.principal)
    return api.RepairAdmitted(asked.action)


def recorded(context: CommandContext, asked: api.RecordRepair) -> api.RepairAdmitted:
    record(context, asked.action, asked.affected, asked.principal)
    return api.RepairAdmitted(asked.action)


def measured(context: CommandContext, _asked: api.MeasureStore) -> api.StoreFigures:
    """Return the figures of the store as they are in this transaction."""
    now, tx = context.now, context.tx
    return api.StoreFigures(
        now, diagnostics.measured(tx, MeasureHealth(now)), diagnostics.counted(tx, CountChanges(now))
    )


def check_text(context: CommandContext, asked: Asked[api.CheckTextRequest]) -> RepairReply:
    """Compare the rows of the text index with the live memories; rebuild it if that is asked for and they differ."""
    principal = asked.caller.principal
    enter(context, rules.CHECK_TEXT, principal)
    figures = diagnostics.measured(context.tx, MeasureHealth(context.now))
    message = f"The text index has {figures.text_rows} rows for {figures.memories} memories"
    if not text_index_differs(figures):
        return done(context, rules.CHECK_TEXT, 0, principal, message)
    if not asked.request.repair:
        message += "; with repair: true it is rebuilt"
        return RepairReply(action=rules.CHECK_TEXT, success=False, affected=0, message=message, steps=[])
    context.tx.rebuild_text_index()
    return done(context, rules.CHECK_TEXT, max(1, figures.memories), principal, f"{message}; it was rebuilt")


def clean(context: CommandContext, asked: Asked[api.BatchRequest]) -> RepairReply:
    """Delete the vectors of at most ``limit`` memories that have no row."""
    principal, limit = asked.caller.principal, asked.request.limit
    enter(context, rules.CLEAN, principal)
    found = [memory_id for (memory_id,) in context.tx.rows(_ORPHANS, {"limit": limit})]
    for memory_id in found:
        context.heartbeat()
        embedding_rows.remove(context.tx, memory_id)
    more = "; there may be more" if len(found) == limit else ""
    return done(context, rules.CLEAN, len(found), principal, f"Deleted the vectors of {len(found)} memories{more}")


WRITES: Final[dict[Any, Any]] = {
    api.EnterRepair: admitted,
    api.RecordRepair: recorded,
    api.MeasureStore: measured,
    api.CHECK_TEXT: check_text,
    api.CLEAN: clean,
}
