"""Statements about ``agents``, the owners of memories: registered when first seen, with the policies of the roster.

Source: memory-api.txt "remember"; architecture.txt "Multi-Agent Support".
"""

from __future__ import annotations

from typing import Final

from signet_actors.domain.session_keys import DEFAULT_AGENT
from signet_actors.store.command_context import CommandContext

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


def register(context: CommandContext, agent_id: str) -> None:
    """Insert the agent's row if it is new, as ``shared``; an existing policy is kept. The row cache then has it."""
    context.tx.execute(_INSERT, {"id": agent_id, "now": context.now})
    context.row_cache.agents.add(agent_id)


def sync_roster(context: CommandContext) -> None:
    """Register the default agent and every agent of ``agents.roster``; a roster entry's policy takes precedence."""
    register(context, DEFAULT_AGENT)
    for agent in context.config.agents.roster:
        policy = {"read_policy": agent.read_policy, "policy_group": agent.policy_group}
        context.tx.execute(_PUT, {"id": agent.name, **policy, "now": context.now})
