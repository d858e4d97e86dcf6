"""Statements about ``session_checkpoints``.

Source: memory-pipeline.txt "Session Checkpoints".
"""

from __future__ import annotations

from typing import Final, NamedTuple

import msgspec

from signet_actors.protocol.checkpoints import StoredCheckpoint
from signet_actors.store.engine import WriteTransaction


class LastEnd(NamedTuple):
    """The last checkpoint that was made for an end of a session; ``is_newest`` of all its checkpoints (0 or 1)."""

    id: str
    created_at: str
    is_newest: int


_KEYS: Final = ("id", "session_key", "agent_id")
_COLUMNS: Final = {name: '"trigger"' if name == "trigger" else name for name in StoredCheckpoint.__struct_fields__}
_PUT: Final = (
    f"INSERT INTO session_checkpoints ({', '.join(_COLUMNS.values())})"
    f" VALUES ({', '.join(f':{name}' for name in _COLUMNS)}) ON CONFLICT (id) DO UPDATE SET "
    + ", ".join(f"{column} = excluded.{column}" for name, column in _COLUMNS.items() if name not in _KEYS)
)
_OWN: Final = "c.session_key = :session_key AND c.agent_id = :agent_id"
_TRIM: Final = (
    "DELETE FROM session_checkpoints WHERE seq IN (SELECT c.seq FROM session_checkpoints c"
    f" WHERE {_OWN} AND c.seq <= (SELECT d.seq FROM session_checkpoints d"
    " WHERE d.session_key = :session_key AND d.agent_id = :agent_id ORDER BY d.seq DESC LIMIT 1 OFFSET :most))"
)
_END: Final = (
    "UPDATE session_checkpoints SET ended = 1 WHERE session_key = :session_key AND agent_id = :agent_id AND ended = 0"
)
_LAST_END: Final = (
    "SELECT c.id, c.created_at, NOT EXISTS (SELECT 1 FROM session_checkpoints d WHERE d.session_key = :session_key"
    " AND d.agent_id = :agent_id AND d.seq > c.seq) FROM session_checkpoints c"
    f" WHERE {_OWN} AND c.\"trigger\" = 'session_end' AND c.id <> :other_than ORDER BY c.seq DESC LIMIT 1"
)
_ERASE: Final = "DELETE FROM session_checkpoints WHERE session_key = :session_key AND agent_id = :agent_id"
_DELETE_OLD: Final = (
    "DELETE FROM session_checkpoints WHERE seq IN (SELECT c.seq FROM session_checkpoints c"
    " WHERE c.created_at < :cutoff ORDER BY c.created_at LIMIT :limit)"
)


def put(tx: WriteTransaction, row: StoredCheckpoint, most: int) -> None:
    """Store the checkpoint, and delete the oldest ones of its session beyond ``most``."""
    tx.execute(_PUT, msgspec.structs.asdict(row))
    tx.execute(_TRIM, {"session_key": row.session_key, "agent_id": row.agent_id, "most": most})


def last_end(tx: WriteTransaction, session_key: str, agent_id: str, *, other_than: str) -> LastEnd | None:
    """Return the last checkpoint for an end of the session, other than this one; None if it has none."""
    row = tx.one(_LAST_END, {"session_key": session_key, "agent_id": agent_id, "other_than": other_than})
    return None if row is None else LastEnd(*row)


def mark_ended(tx: WriteTransaction, session_key: str, agent_id: str) -> None:
    """Note at all checkpoints of the session that it has ended."""
    tx.execute(_END, {"session_key": session_key, "agent_id": agent_id})


def erase(tx: WriteTransaction, session_key: str, agent_id: str) -> int:
    """Delete all checkpoints of the session; return how many there were."""
    tx.execute(_ERASE, {"session_key": session_key, "agent_id": agent_id})
    return tx.changes()


def delete_before(tx: WriteTransaction, cutoff: str, limit: int) -> int:
    """Delete at most ``limit`` checkpoints from before the cutoff, the oldest first; return how many."""
    tx.execute(_DELETE_OLD, {"cutoff": cutoff, "limit": limit})
    return tx.changes()
