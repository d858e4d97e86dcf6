"""Statements about ``agents``, the owners of memories, and their read policies.

Source: architecture.txt "Multi-Agent Support".
"""

from __future__ import annotations

from typing import Final

from signet_actors.store.sqlite.transaction import WriteTransaction

_INSERT: Final = (
    "INSERT INTO agents (id, name, read_policy, created_at, updated_at) VALUES (?, ?, 'shared', ?, ?)"
    " ON CONFLICT (id) DO NOTHING"
)
_PUT: Final = (
    "INSERT INTO agents (id, name, read_policy, policy_group, created_at, updated_at)"
    " VALUES (?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (id) DO UPDATE SET read_policy = excluded.read_policy,"
    " policy_group = excluded.policy_group, updated_at = excluded.updated_at"
    " WHERE read_policy IS NOT excluded.read_policy OR policy_group IS NOT excluded.policy_group"
)


def insert_if_new(tx: WriteTransaction, agent_id: str, now: str) -> None:
    """Insert the agent as ``shared``; an existing row is kept."""
    tx.execute(_INSERT, (agent_id, agent_id, now, now))


def put_policy(tx: WriteTransaction, agent_id: str, read_policy: str, policy_group: str | None, now: str) -> None:
    """Insert the agent with this policy, or change the policy of its row."""
    tx.execute(_PUT, (agent_id, agent_id, read_policy, policy_group, now, now))
