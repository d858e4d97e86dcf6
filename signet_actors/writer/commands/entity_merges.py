"""Make an entity another name of a second one, and undo it. What both say is settled anew, as if one had said it.

``merge_parent`` is what was merged directly into what, a tree; ``merged_into`` is the top of it, where all counts.

Source: docs/compatibility.md "Knowledge graph".
"""

from __future__ import annotations

from collections.abc import Iterable

from signet_actors.errors import Conflict, InvalidRequest
from signet_actors.features.entities.api import ChangeEntityRequest, Merged, MergeRequest
from signet_actors.features.entities.rules import below
from signet_actors.features.entities.writes import known
from signet_actors.protocol.message import Asked
from signet_actors.store.command_context import CommandContext
from signet_actors.store.writes import graph as rows
from signet_actors.store.writes.graph import Claim
from signet_actors.store.writes.supersession import groups_of_entity
from signet_actors.writer.commands import supersession
from signet_actors.writer.commands.graph import settle


def merge(context: CommandContext, asked: Asked[MergeRequest]) -> Merged:
    """Merge the entity of the path and all that was merged into it into another one.

    Raises NotFound, InvalidRequest, and Conflict if it is merged into a third one.
    """
    source, former, name = known(context, asked, asked.caller.path["id"])
    _, into, into_name = known(context, asked, known(context, asked, asked.request.into)[1])
    if into == source:
        raise InvalidRequest("an entity cannot be merged into itself", field="into")
    if former not in {source, into}:
        raise Conflict(f"{name} is merged into another entity; undo that first")
    if former == source:
        claims = rows.claims_about(context.tx, source)
        rows.merge_all(context.tx, source, into)
        rows.set_merge_parent(context.tx, source, into)
        _settle(context, claims, into)
    return Merged(merged=True, id=source, into=into, name=into_name)


def unmerge(context: CommandContext, asked: Asked[ChangeEntityRequest]) -> Merged:
    """Undo the merge of the entity of the path; what was merged into it comes along. Raises NotFound."""
    source, into, _ = known(context, asked, asked.caller.path["id"])
    if into != source:
        for member in below(rows.merge_parents(context.tx, into), source):
            rows.set_merged_into(context.tx, member, None if member == source else source)
        rows.set_merge_parent(context.tx, source, None)
        claims = rows.claims_about(context.tx, source)
        _settle(context, claims, source, into)
    return Merged(merged=False, id=source)


def _settle(context: CommandContext, claims: Iterable[Claim], *entities: str) -> None:
    """Settle the claims as those of each of the entities, and what else is said about them."""
    for claim in claims:
        for entity_id in entities:
            settle(context, claim._replace(entity_id=entity_id))
    for entity_id in entities:
        for group in groups_of_entity(context.tx, entity_id):
            supersession.settle(context, group)
