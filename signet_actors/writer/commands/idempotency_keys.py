"""The idempotency key of a deleted memory: passed to a new memory that comes with it, and returned at a recovery.

Source: memory-api.txt "POST /api/memory/remember" (``idempotencyKey``), "POST /api/memory/:id/recover".
"""

from __future__ import annotations

from signet_actors.protocol.message import Principal
from signet_actors.store.writes import history as history_rows
from signet_actors.store.writes import memories as memory_rows
from signet_actors.writer.command_context import CommandContext
from signet_actors.writer.commands import history

RELEASED = "its idempotency key was given to another memory"


def release(context: CommandContext, seq: int, memory_id: str, key: str, principal: Principal) -> None:
    """Take the key from a deleted row, so that it can be used again; the row's history keeps it."""
    memory_rows.clear_idempotency_key(context.tx, seq)
    history.record(context, memory_id, "none", principal, reason=RELEASED, metadata={history_rows.KEY: key})


def released(context: CommandContext, seq: int) -> str | None:
    """Return the key that was taken from the row, or None if none was, or if the row has a key again."""
    return history_rows.released_key(context.tx, seq, RELEASED)


def restore(context: CommandContext, seq: int, key: str) -> None:
    """Give the row the key, which no other row may have."""
    memory_rows.set_idempotency_key(context.tx, seq, key)
