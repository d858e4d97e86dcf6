"""The audit trail: every change of a memory leaves an event in the same transaction.

Source: memory-system.txt "Memory History"; decisions.md 32.
"""

from __future__ import annotations

import msgspec

from signet_actors.protocol.message import Principal
from signet_actors.writer.new_rows import Insert
from signet_actors.writer.session import Session

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
        "created_at",
    ),
)


def record(
    session: Session,
    memory_id: str,
    event: str,
    principal: Principal,
    *,
    old_content: str | None = None,
    new_content: str | None = None,
    reason: str | None = None,
    metadata: dict[str, object] | None = None,
) -> None:
    """An event is in the trail of ``memory_id``."""
    session.new_rows.add(
        _HISTORY,
        (
            session.new_id(),
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
            session.now,
        ),
    )


def erase_content(session: Session, memory_id: str) -> None:
    """The events of a memory that is gone stay, their content does not. Source: reliability.md R23."""
    session.tx.execute(
        "UPDATE memory_history SET old_content = NULL, new_content = NULL WHERE memory_id = ?", (memory_id,)
    )
