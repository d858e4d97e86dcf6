"""Statements about ``agents``, the owners of memories: registered when first seen, with the policies of the roster.

An agent that was removed from the roster is archived: what it stored stays as it is, and is readable by nobody until
the agent is in the roster again. One that never was in the roster is never archived, nor is ``default``.

Source: memory-api.txt "remember"; architecture.txt "Multi-Agent Support".
"""

from __future__ import annotations

from typing import Final

from signet_actors.domain.session_keys import DEFAULT_AGENT
from signet_actors.errors import Conflict
from signet_actors.store.command_context import CommandContext
from signet_actors.store.read_policy import is_archived

_INSERT: Final = (
    "INSERT INTO agents (id, name, read_policy, created_at, updated_at) VALUES (:id, :id, 'shared', :now, :now)"
    " ON CONFLICT (id) DO NOTHING"
)
_PUT: Final = (
    "INSERT INTO agents (id, name, read_policy, policy_group, in_roster, created_at, updated_at)"
    " VALUES (:id, :id, :read_policy, :policy_group, 1, :now, :now)"
    " ON CONFLICT (id) DO UPDATE SET read_policy = excluded.read_policy,"
    " policy_group = excluded.policy_group, in_roster = 1, archived_at = NULL, updated_at = excluded.updated_at"
    " WHERE agents.read_policy <> excluded.read_policy OR agents.in_roster = 0"
    " OR agents.policy_group IS DISTINCT FROM excluded.policy_group"
)
_ARCHIVE: Final = (
    "UPDATE agents SET in_roster = 0, archived_at = :now, updated_at = :now"
    " WHERE in_roster = 1 AND id <> :default AND id NOT IN ({}) RETURNING id"
)


def register(context: CommandContext, agent_id: str) -> None:
    """Insert the agent's row if it is new, as ``shared``; an existing policy is kept.

    The row cache then has the agent, unless it is archived.
    """
    context.tx.execute(_INSERT, {"id": agent_id, "now": context.now})
    if not is_archived(context.tx, agent_id):
        context.row_cache.agents.add(agent_id)


def refuse_archived(context: CommandContext, agent_id: str) -> None:
    """Raise ``Conflict`` if the agent was removed from the roster."""
    if agent_id not in context.row_cache.agents and is_archived(context.tx_for(("agent", agent_id)), agent_id):
        raise Conflict(f"agent '{agent_id}' was removed from agents.roster; add it again to use its memories")


def sync_roster(context: CommandContext) -> list[str]:
    """Register the default agent and every agent of ``agents.roster``; a roster entry's policy takes precedence.

    Agents that are no longer in it are archived, and returned; what is cached of agents is out of date then. An empty
    roster archives nobody: the file of the configuration may just be missing.
    """
    register(context, DEFAULT_AGENT)
    tx, roster = context.tx, context.config.agents.roster
    for agent in roster:
        policy = {"read_policy": agent.read_policy, "policy_group": agent.policy_group}
        tx.execute(_PUT, {"id": agent.name, **policy, "now": context.now})
    if not roster:
        return []
    names = tx.dialect.listed([agent.name for agent in roster])
    given = {"names": names, "default": DEFAULT_AGENT, "now": context.now}
    return sorted(agent_id for (agent_id,) in tx.rows(_ARCHIVE.format(tx.dialect.members("names")), given))
