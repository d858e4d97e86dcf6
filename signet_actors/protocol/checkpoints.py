"""Messages about checkpoints of sessions: to the writer, and to searchers.

Source: memory-pipeline.txt "Session Checkpoints"; docs/decisions.md 35.
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.checkpoints import CheckpointTrigger
from signet_actors.operations.checkpoints import Checkpoint
from signet_actors.protocol.memories import ReadScope
from signet_actors.protocol.message import Message, Request


class NewCheckpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A checkpoint without secrets. A later one with the same ``id`` replaces it."""

    id: str
    trigger: CheckpointTrigger
    digest: str
    prompt_count: int
    memory_queries: tuple[str, ...] = ()
    recent_remembers: tuple[str, ...] = ()
    harness: str | None = None
    project: str | None = None


class CheckpointRecorded(Message, frozen=True, omit_defaults=True, tag="writer.checkpoint_recorded"):
    """It is on disk; ``stored`` is false if the transcript of the session was forgotten, and nothing is stored.

    ``same_end``: the checkpoint that was made when the same end of the session was reported before.
    """

    stored: bool
    same_end: str | None = None


class RecordCheckpoint(Request[CheckpointRecorded], frozen=True, tag="writer.record_checkpoint"):
    """Store a checkpoint of the session, and delete its oldest ones beyond the configured number. Safe to repeat.

    ``ended``: the session reported its end, at ``ended_at`` if that is known. Without a ``checkpoint`` only that is
    stored. An end has one checkpoint: what else happened by the time it is reported again is a periodic one.
    """

    session_key: str
    agent_id: str
    checkpoint: NewCheckpoint | None = None
    ended: bool = False
    ended_at: str | None = None


class StoredCheckpoint(Checkpoint, frozen=True):
    """A stored checkpoint; ``ended`` is 0 or 1."""

    ended: int


class CheckpointsFound(Message, frozen=True, tag="searcher.checkpoints_found"):
    """Checkpoints, the newest first."""

    checkpoints: list[StoredCheckpoint]


class ListCheckpoints(Request[CheckpointsFound], frozen=True, tag="searcher.list_checkpoints"):
    """List the checkpoints that the caller may read, of a session or of a normalized project."""

    read: ReadScope
    limit: int
    session_key: str | None = None
    project: str | None = None


class LastTurns(msgspec.Struct, frozen=True):
    """The end of a transcript: role and text of the last turns, the oldest first, long ones without their middle.

    ``created_at``: when the session was active last. ``ended``: it reported its end.
    """

    session_key: str
    harness: str | None
    created_at: str
    turns: list[tuple[str, str]]
    ended: int = 0


class RecoveryFound(Message, frozen=True, tag="searcher.recovery_found"):
    """The last checkpoint and the end of the transcript of the session that is gone on with; None for what is missing.

    ``summary``: the id of the memory that says what was done in it, instead of both.
    """

    checkpoint: StoredCheckpoint | None = None
    transcript: LastTurns | None = None
    summary: str | None = None


class FindRecovery(Request[RecoveryFound], frozen=True, tag="searcher.find_recovery"):
    """Find the agent's newest checkpoint of the session and the end of its transcript if it goes on (``same_session``).

    Else what is stored of the session of the project that was active last, of those that tell anything. ``since``:
    sessions that were not active since then do not count.
    """

    agent_id: str
    session_key: str | None = None
    same_session: bool = False
    project: str | None = None
    since: str = ""


CheckpointQuery = ListCheckpoints | FindRecovery
CheckpointQueryReply = CheckpointsFound | RecoveryFound
