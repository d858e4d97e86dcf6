"""Store checkpoints of sessions, and note the end of a session.

Source: memory-pipeline.txt "Session Checkpoints".
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.checkpoints import normalized_project
from signet_actors.protocol.checkpoints import CheckpointRecorded, NewCheckpoint, RecordCheckpoint, StoredCheckpoint
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import checkpoints as rows
from signet_actors.store.writes import transcripts


def record(context: CommandContext, command: RecordCheckpoint) -> CheckpointRecorded:
    """Store the checkpoint unless the user had the session forgotten."""
    transcript = transcripts.find(context.tx, command.agent_id, command.session_key)
    if transcript is not None and transcript.forgotten_at is not None:
        return CheckpointRecorded(stored=False)
    new, ended = command.checkpoint, command.ended
    same_end = _same_end(context, command, new) if ended and new is not None else None
    if same_end is not None and new is not None:
        if not _says_something(new):
            return CheckpointRecorded(stored=True, same_end=same_end)
        new, ended = msgspec.structs.replace(new, trigger="periodic"), False  # the session went on
    if ended:
        rows.mark_ended(context.tx, command.session_key, command.agent_id)
    if new is None:
        return CheckpointRecorded(stored=True)
    row = StoredCheckpoint(
        id=new.id,
        session_key=command.session_key,
        agent_id=command.agent_id,
        harness=new.harness,
        project=new.project,
        project_normalized=normalized_project(new.project),
        trigger=new.trigger,
        digest=new.digest,
        prompt_count=new.prompt_count,
        memory_queries=msgspec.json.encode(new.memory_queries).decode(),
        recent_remembers=msgspec.json.encode(new.recent_remembers).decode(),
        ended=int(ended),
        created_at=context.now,
    )
    rows.put(context.tx, row, context.config.memory.pipeline_v2.continuity.max_checkpoints_per_session)
    return CheckpointRecorded(stored=True, same_end=same_end)


def _same_end(context: CommandContext, command: RecordCheckpoint, new: NewCheckpoint) -> str | None:
    """Return the id of the checkpoint of the end that is reported again, None if this is another end.

    It is the same end if the checkpoint was made after it, or if nothing has happened since.
    """
    last = rows.last_end(context.tx, command.session_key, command.agent_id, other_than=new.id)
    if last is None:
        return None
    made_after = command.ended_at is not None and last.created_at >= command.ended_at
    return last.id if made_after or (last.is_newest and not _says_something(new)) else None


def _says_something(new: NewCheckpoint) -> bool:
    return bool(new.prompt_count or new.memory_queries or new.recent_remembers)


def purge(context: CommandContext, cutoff: str, limit: int) -> int:
    """Delete at most ``limit`` checkpoints from before the cutoff."""
    return rows.delete_before(context.tx, cutoff, limit)
