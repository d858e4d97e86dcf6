"""Agents that own memories: registered when first seen; their policies come from the configured roster.

Source: memory-api.txt "remember"; architecture.txt "Multi-Agent Support".
"""

from __future__ import annotations

from signet_actors.domain.session_keys import DEFAULT_AGENT
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import agents as agent_rows


def register(context: CommandContext, agent_id: str) -> None:
    """Insert the agent's row if it is new, as ``shared``; an existing policy is kept. The row cache then has it."""
    agent_rows.insert_if_new(context.tx, agent_id, context.now)
    context.row_cache.agents.add(agent_id)


def sync_roster(context: CommandContext) -> None:
    """Register the default agent and every agent of ``agents.roster``; a roster entry's policy takes precedence."""
    register(context, DEFAULT_AGENT)
    for agent in context.config.agents.roster:
        agent_rows.put_policy(context.tx, agent.name, agent.read_policy, agent.policy_group, context.now)
