"""Statements about ``agents``, the owners of memories, and their read policies.

Source: architecture.txt "Multi-Agent Support".
"""

from __future__ import annotations

from typing import Final

from signet_actors.store.engine import WriteTransaction

_INSERT: Final = (
    "INSERT INTO agents (id, name, read_policy, created_at, updated_at) VALUES (:id, :id, 'shared', :now, :now)"
    " ON CONFLICT (id) DO NOTHING"
)
_PUT: Final = (
    "INSERT INTO agents (id, name, read_policy, policy_group, created_at, updated_at)"
    " VALUES (:id, :id, :read_policy, :policy_group, :now, :now)"
    " ON CONFLICT (id) DO UPDATE SET read_policy = excluded.read_policy,"
    " policy_group = excluded.policy_group, updated_at = excluded.updated_at"
    " WHERE agents.read_policy <> excluded.read_policy"
    " OR agents.policy_group IS DISTINCT FROM excluded.policy_group"
)


def insert_if_new(tx: WriteTransaction, agent_id: str, now: str) -> None:
    """Insert the agent as ``shared``; an existing row is kept."""
    tx.execute(_INSERT, {"id": agent_id, "now": now})


def put_policy(tx: WriteTransaction, agent_id: str, read_policy: str, policy_group: str | None, now: str) -> None:
    """Insert the agent with this policy, or change the policy of its row."""
    tx.execute(_PUT, {"id": agent_id, "read_policy": read_policy, "policy_group": policy_group, "now": now})
