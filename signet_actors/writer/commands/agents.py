"""Agents that own memories: registered when first seen; their policies come from the configured roster.

Source: memory-api.txt "remember"; architecture.txt "Multi-Agent Support".
"""

from __future__ import annotations

from signet_actors.store.read_policy import DEFAULT_AGENT
from signet_actors.writer.command_context import CommandContext


def register(context: CommandContext, agent_id: str) -> None:
    """Insert the agent's row if it is new, as ``shared``; an existing policy is kept."""
    if agent_id in context.row_cache.agents:
        return
    context.tx.execute(
        "INSERT INTO agents (id, name, read_policy, created_at, updated_at) VALUES (?, ?, 'shared', ?, ?)"
        " ON CONFLICT (id) DO NOTHING",
        (agent_id, agent_id, context.now, context.now),
    )
    context.row_cache.agents.add(agent_id)


def sync_roster(context: CommandContext) -> None:
    """Register the default agent and every agent of ``agents.roster``; a roster entry's policy takes precedence."""
    register(context, DEFAULT_AGENT)
    for agent in context.config.agents.roster:
        context.tx.execute(
            "INSERT INTO agents (id, name, read_policy, policy_group, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET read_policy = excluded.read_policy,"
            " policy_group = excluded.policy_group, updated_at = excluded.updated_at"
            " WHERE read_policy IS NOT excluded.read_policy OR policy_group IS NOT excluded.policy_group",
            (agent.name, agent.name, agent.read_policy, agent.policy_group, context.now, context.now),
        )
