"""Pin and suppress entities. Merges are in ``writer/commands/entity_merges.py``, because claims are settled with them.

Source: docs/compatibility.md "Knowledge graph"; docs/decisions.md 68.
"""

from __future__ import annotations

from typing import Any, Final

from signet_actors.domain.graph.names import CHUNK_GROUP, canonical_name
from signet_actors.errors import NotFound
from signet_actors.features.entities import api
from signet_actors.protocol.message import Asked
from signet_actors.store.command_context import CommandContext
from signet_actors.store.read_policy import ARCHIVED_AGENTS

_ROW: Final = (
    "SELECT e.id, coalesce(e.merged_into, e.id), e.name FROM entities e WHERE e.agent_id = :agent_id AND {}"
    f" AND e.entity_type <> '{CHUNK_GROUP}' AND e.agent_id NOT IN ({ARCHIVED_AGENTS})"
)
_PIN: Final = "UPDATE entities SET pinned = 1, pinned_at = coalesce(pinned_at, :now) WHERE id = :id RETURNING pinned_at"
_UNPIN: Final = "UPDATE entities SET pinned = 0, pinned_at = NULL WHERE id = :id"
_DROP_UNKNOWN: Final = (
    "DELETE FROM entities WHERE id = :id AND mentions = 0"
    " AND NOT EXISTS (SELECT 1 FROM memory_entity_mentions x WHERE x.entity_id = entities.id)"
    " AND NOT EXISTS (SELECT 1 FROM entities g WHERE g.merged_into = entities.id)"
)
"""An entity that was there because it was pinned, although no memory mentions it any more."""
_SUPPRESS: Final = (
    "INSERT INTO entity_pinning (entity_id, pin_type, weight_override, reason, created_at)"
    " VALUES (:id, 'suppress', :weight, :reason, :now) ON CONFLICT (entity_id) DO UPDATE SET pin_type = 'suppress',"
    " weight_override = excluded.weight_override, reason = excluded.reason"
)
_UNSUPPRESS: Final = "DELETE FROM entity_pinning WHERE entity_id = :id AND pin_type = 'suppress'"


def found(context: CommandContext, asked: Asked[Any], named: str) -> tuple[str, str, str] | None:
    """Return the id of the agent's entity with this id or this name, that of its target, and its name."""
    for where, value in (("e.id = :named", named), ("e.canonical_name = :named", canonical_name(named))):
        row = context.tx.one(_ROW.format(where), {"named": value, "agent_id": asked.caller.agent_id})
        if row is not None:
            return (str(row[0]), str(row[1]), str(row[2]))
    return None


def known(context: CommandContext, asked: Asked[Any], named: str) -> tuple[str, str, str]:
    """Return the same. Raises NotFound."""
    row = found(context, asked, named)
    if row is None:
        raise NotFound(api.NOT_FOUND)
    return row


def pin(context: CommandContext, asked: Asked[api.ChangeEntityRequest]) -> api.Pinned:
    """Pin the entity; one that is pinned keeps its time. Raises NotFound."""
    _, target, _ = known(context, asked, asked.caller.path["id"])
    return api.Pinned(pinned=True, pinned_at=context.tx.value(_PIN, {"id": target, "now": context.now}))


def unpin(context: CommandContext, asked: Asked[api.ChangeEntityRequest]) -> api.Pinned:
    """Unpin the entity, if there is one."""
    row = found(context, asked, asked.caller.path["id"])
    if row is not None:
        for sql in (_UNPIN, _DROP_UNKNOWN):
            context.tx.execute(sql, {"id": row[1]})
    return api.Pinned(pinned=False)


def suppress(context: CommandContext, asked: Asked[api.SuppressRequest]) -> api.Suppressed:
    """Suppress the entity, or change how far. Raises NotFound."""
    _, target, _ = known(context, asked, asked.caller.path["id"])
    weight, reason = asked.request.weight_override, asked.request.reason
    context.tx.execute(_SUPPRESS, {"id": target, "weight": weight, "reason": reason, "now": context.now})
    return api.Suppressed(suppressed=True, reason=reason, weight_override=weight)


def unsuppress(context: CommandContext, asked: Asked[api.ChangeEntityRequest]) -> api.Suppressed:
    """Suppress the entity no longer, if there is one."""
    row = found(context, asked, asked.caller.path["id"])
    if row is not None:
        context.tx.execute(_UNSUPPRESS, {"id": row[1]})
    return api.Suppressed(suppressed=False)


WRITES: Final = {
    api.PIN: pin,
    api.UNPIN: unpin,
    api.SUPPRESS: suppress,
    api.UNSUPPRESS: unsuppress,
}
