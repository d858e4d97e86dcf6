"""Sessions and what they received, as the gateway reports them soon after its responses.

Source: docs/decisions.md 60.
"""

from __future__ import annotations

from signet_actors.protocol.sessions import RecordSessions, SessionsRecorded
from signet_actors.store.writes import sessions as session_rows
from signet_actors.store.writes.sessions import ContextRow, RecallRow
from signet_actors.writer.command_context import CommandContext


def record(context: CommandContext, command: RecordSessions) -> SessionsRecorded:
    """Store the state of each session, and the memories that they received."""
    for one in command.contexts:
        session_rows.put(
            context.tx,
            ContextRow(
                session_key=one.session_key,
                agent_id=one.agent_id,
                context_epoch=one.context_epoch,
                harness=one.harness,
                project=one.project,
                bypassed=int(one.bypassed),
                started_at=one.started_at,
                last_active_at=one.last_active_at,
            ),
        )
    rows = [
        RecallRow(each.session_key, each.agent_id, each.context_epoch, each.memory_id, each.request_key, context.now)
        for each in command.returned
    ]
    if rows:
        session_rows.add_recalls(context.tx, rows)
    return SessionsRecorded()
