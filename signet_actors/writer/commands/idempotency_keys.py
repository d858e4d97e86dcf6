"""The idempotency key of a deleted memory: passed to a new memory that comes with it, and returned at a recovery.

Source: memory-api.txt "POST /api/memory/remember" (``idempotencyKey``), "POST /api/memory/:id/recover".
"""

from __future__ import annotations

from signet_actors.protocol.message import Principal
from signet_actors.writer.command_context import CommandContext
from signet_actors.writer.commands import history

RELEASED = "its idempotency key was given to another memory"


def release(context: CommandContext, seq: int, memory_id: str, key: str, principal: Principal) -> None:
    """Take the key from a deleted row, so that it can be used again; the row's history keeps it."""
    context.tx.execute("UPDATE memories SET idempotency_key = NULL WHERE seq = ?", (seq,))
    history.record(context, memory_id, "none", principal, reason=RELEASED, metadata={history.KEY: key})


def released(context: CommandContext, seq: int) -> str | None:
    """Return the key that was taken from the row, or None if none was, or if the row has a key again."""
    found = context.tx.one(
        f"SELECT h.metadata ->> '$.{history.KEY}' FROM memories m JOIN memory_history h ON h.memory_id = m.id"
        " WHERE m.seq = ? AND m.idempotency_key IS NULL AND h.event = 'none' AND h.reason = ?"
        " ORDER BY h.seq DESC LIMIT 1",
        (seq, RELEASED),
    )
    return None if found is None else found[0]


def restore(context: CommandContext, seq: int, key: str) -> None:
    """Give the row the key, which no other row may have."""
    context.tx.execute("UPDATE memories SET idempotency_key = ? WHERE seq = ?", (key, seq))
