"""The read policies of agents."""

from __future__ import annotations

from signet_actors.store.engine import Snapshot
from signet_actors.store.read_policy import Policy, resolve_policy


def read_policy(snapshot: Snapshot, agent_id: str) -> Policy:
    """Return the read policy of ``agent_id`` in this snapshot."""
    return resolve_policy(snapshot, agent_id)
