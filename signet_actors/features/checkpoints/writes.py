"""Store checkpoints of sessions, note the end of a session, and delete what is too old."""

from __future__ import annotations

from typing import Final

import msgspec

from signet_actors.features.checkpoints.api import CheckpointRecorded, RecordCheckpoint, StoredCheckpoint
from signet_actors.store.command_context import CommandContext
from signet_actors.store.read_policy import is_archived
from signet_actors.store.writes import transcripts

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
_DELETE_OLD: Final = (
    "DELETE FROM session_checkpoints WHERE seq IN (SELECT c.seq FROM session_checkpoints c"
    " WHERE c.created_at < :cutoff ORDER BY c.created_at LIMIT :limit)"
)


def record(context: CommandContext, command: RecordCheckpoint) -> CheckpointRecorded:
    """Store the checkpoint unless the user had the session forgotten, or removed its agent."""
    transcript = transcripts.find(context.tx, command.agent_id, command.session_key)
    is_forgotten = transcript is not None and transcript.forgotten_at is not None
    if is_forgotten or is_archived(context.tx, command.agent_id):
        return CheckpointRecorded(stored=False)
    session = {"session_key": command.session_key, "agent_id": command.agent_id}
    new, ended = command.checkpoint, command.ended
    same_end = _same_end(context, command, new, session) if ended and new is not None else None
    if same_end is not None and new is not None:
        if not _says_something(new):
            return CheckpointRecorded(stored=True, same_end=same_end)
        new, ended = msgspec.structs.replace(new, trigger="periodic"), False  # the session went on
    if ended:
        context.tx.execute(_END, session)
    if new is not None:
        row = msgspec.structs.asdict(new) | {"ended": int(ended), "created_at": context.now}
        context.tx.execute(_PUT, row)
        most = context.config.memory.pipeline_v2.continuity.max_checkpoints_per_session
        context.tx.execute(_TRIM, {**session, "most": most})
    return CheckpointRecorded(stored=True, same_end=same_end)


def _same_end(
    context: CommandContext, command: RecordCheckpoint, new: StoredCheckpoint, session: dict[str, str]
) -> str | None:
    """Return the id of the checkpoint of the end that is reported again, None if this is another end.

    It is the same end if the checkpoint was made after it, or if nothing has happened since.
    """
    last = context.tx.one(_LAST_END, {**session, "other_than": new.id})
    if last is None:
        return None
    last_id, created_at, is_newest = last
    made_after = command.ended_at is not None and created_at >= command.ended_at
    return str(last_id) if made_after or (is_newest and not _says_something(new)) else None


def _says_something(new: StoredCheckpoint) -> bool:
    return bool(new.prompt_count) or (new.memory_queries, new.recent_remembers) != ("[]", "[]")


def purge(context: CommandContext, cutoff: str, limit: int) -> int:
    """Delete at most ``limit`` checkpoints from before the cutoff, the oldest first; return how many."""
    context.tx.execute(_DELETE_OLD, {"cutoff": cutoff, "limit": limit})
    return context.tx.changes()


WRITES: Final = {RecordCheckpoint: record}
