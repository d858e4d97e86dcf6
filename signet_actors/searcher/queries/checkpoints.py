"""Checkpoints of sessions: those of a session or a project, and the one with which a session goes on.

Source: memory-pipeline.txt "Session Checkpoints"; docs/decisions.md 35.
"""

from __future__ import annotations

from signet_actors.protocol.checkpoints import (
    CheckpointsFound,
    FindRecovery,
    ListCheckpoints,
    RecoveryFound,
    StoredCheckpoint,
)
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import checkpoints as stored


def list_checkpoints(snapshot: Snapshot, query: ListCheckpoints) -> CheckpointsFound:
    """Return the checkpoints that the caller may read, the newest first."""
    return CheckpointsFound(stored.readable(snapshot, query))


def recovery(snapshot: Snapshot, query: FindRecovery) -> RecoveryFound:
    """Return the checkpoint with which the session goes on."""
    agent_id = query.agent_id
    found: StoredCheckpoint | None = None
    if query.same_session:
        if query.session_key is not None:
            found = stored.newest(snapshot, agent_id, session_key=query.session_key)
    elif query.project is not None:
        found = stored.newest(snapshot, agent_id, project=query.project)
        if found is not None and found.ended:
            found = None
    return RecoveryFound(found)
