"""Store which entities form a community."""

from __future__ import annotations

from typing import Final

from signet_actors.features.communities import api
from signet_actors.store.command_context import CommandContext

_STAMP: Final = (
    "SELECT count(*), coalesce(sum(d.strength), 0.0), coalesce(max(d.updated_at), ''),"
    " (SELECT count(*) FROM entities e WHERE e.merged_into IS NOT NULL), (SELECT count(*) FROM entity_communities)"
    " FROM entity_dependencies d"
)
_PUT: Final = (
    "INSERT INTO entity_communities (id, agent_id, label, size, cohesion, quality, created_at)"
    " VALUES (:id, :agent_id, :label, :size, :cohesion, :quality, :found_at)"
    " ON CONFLICT (id) DO UPDATE SET label = excluded.label, cohesion = excluded.cohesion,"
    " quality = excluded.quality, created_at = excluded.created_at"
)
_JOIN: Final = (
    "UPDATE entities SET community_id = :id WHERE agent_id = :agent_id AND community_id IS DISTINCT FROM :id"
    " AND id IN ({})"
)
_OUTDATED: Final = "SELECT c.id FROM entity_communities c WHERE c.created_at <> :found_at ORDER BY c.id LIMIT :limit"
_LEAVE: Final = (
    "UPDATE entities SET community_id = NULL WHERE id IN"
    " (SELECT e.id FROM entities e WHERE e.agent_id = :agent_id AND e.community_id = :id LIMIT :limit)"
)
_AGENT: Final = "SELECT c.agent_id FROM entity_communities c WHERE c.id = :id"
_DELETE: Final = "DELETE FROM entity_communities WHERE id = :id"


def stamp(context: CommandContext, command: api.GetGraphStamp) -> api.GraphStamp:  # noqa: ARG001 - it says only what to do
    """Return what tells one state of the dependencies from another."""
    count, strength, changed_at, merged, communities = context.tx.one(_STAMP) or (0, 0.0, "", 0, 0)
    return api.GraphStamp(f"{count}/{strength:.6f}/{changed_at}/{merged}" if count or communities else "")


def store(context: CommandContext, command: api.StoreCommunities) -> api.Stored:
    """Store the communities and whom they have. Storing them again changes nothing."""
    tx = context.tx
    for each in command.communities:
        row = {"id": each.id, "agent_id": each.agent_id, "label": each.label, "size": each.size}
        row |= {"cohesion": each.cohesion, "quality": each.quality, "found_at": command.found_at}
        tx.execute(_PUT, row)
        joined = {"id": each.id, "agent_id": each.agent_id, "members": tx.dialect.listed(each.members)}
        tx.execute(_JOIN.format(tx.dialect.members("members")), joined)
    return api.Stored()


def drop(context: CommandContext, command: api.DropCommunities) -> api.Stored:
    """Take entities out of outdated communities, and delete the communities that are empty then."""
    tx, left = context.tx, command.limit
    for (community,) in tx.rows(_OUTDATED, {"found_at": command.found_at, "limit": command.limit}):
        tx.execute(_LEAVE, {"id": community, "agent_id": tx.value(_AGENT, {"id": community}), "limit": left})
        left -= tx.changes() + 1
        if left <= 0:
            return api.Stored(more=True)
        tx.execute(_DELETE, {"id": community})
    return api.Stored()


WRITES: Final = {api.GetGraphStamp: stamp, api.StoreCommunities: store, api.DropCommunities: drop}
