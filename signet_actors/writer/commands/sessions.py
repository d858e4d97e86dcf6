"""Sessions, what they received, and their bypass, as the gateway reports. Source: docs/decisions.md 60."""

from __future__ import annotations

from signet_actors.features.session_memories import writes as session_memories
from signet_actors.protocol.sessions import RecordSessions, SessionContext, SessionsRecorded, SetBypass
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import agents
from signet_actors.store.writes import sessions as session_rows


def record(context: CommandContext, command: RecordSessions) -> SessionsRecorded:
    """Store the state of each session, and the memories that they received or were offered.

    An agent that a harness runs is known from its first session on, as from its first memory.
    """
    for one in command.contexts:
        if one.harness is not None:
            agents.register(context, one.agent_id)
        session_rows.put(context.tx, one)
    if command.returned:
        session_rows.add_recalls(context.tx, command.returned, context.now)
    session_memories.offer(context, command.offered)
    return SessionsRecorded()


def set_bypass(context: CommandContext, command: SetBypass) -> SessionsRecorded:
    """Switch memory off or on for the session, in the rows of all agents."""
    if command.bypassed:
        off = SessionContext(command.session_key, command.agent_id, command.started_at, last_active_at=context.now)
        session_rows.put(context.tx, off)
    session_rows.set_bypassed(context.tx, command.session_key, context.now, bypassed=command.bypassed)
    return SessionsRecorded()
