"""The memories that a session was offered, with counts and means over them.

Source: memory-pipeline.txt "Continuity Scoring"; docs/guides/hooks.md "Sessions".
"""

from __future__ import annotations

from signet_actors.protocol.session_memories import ListSessionMemories, SessionMemoriesFound
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import session_memories, sessions


def listed(snapshot: Snapshot, query: ListSessionMemories) -> SessionMemoriesFound:
    """Return a page of the memories that the session was offered, and the metrics."""
    memories, metrics = session_memories.page(snapshot, query)
    known = metrics.offered > 0 or sessions.context(snapshot, query.session_key, query.read.agent_id) is not None
    return SessionMemoriesFound(known=known, memories=memories, metrics=metrics)
