"""Repairs that end leases or enqueue jobs. Source: docs/compatibility.md "Repair gate"."""

from __future__ import annotations

from signet_actors.config.embedding_models import configured_space
from signet_actors.domain.jobs import EMBED
from signet_actors.features.repairs import rules
from signet_actors.features.repairs.api import BatchRequest
from signet_actors.features.repairs.writes import done, enter, without_vector
from signet_actors.operations.repair import RepairReply
from signet_actors.operations.transcripts import OwnAgent
from signet_actors.protocol.leases import ReapLeases
from signet_actors.protocol.message import Asked
from signet_actors.store.command_context import CommandContext
from signet_actors.writer.commands import jobs


def release_leases(context: CommandContext, asked: Asked[OwnAgent]) -> RepairReply:
    """Return the jobs whose leases expired to the queue, or declare them dead after their last attempt."""
    principal = asked.caller.principal
    enter(context, rules.RELEASE, principal)
    reaped = jobs.reap(context, ReapLeases())
    message = f"Released {reaped.requeued + reaped.dead} expired leases"
    message += f"; {reaped.dead} jobs had no attempts left and are dead" if reaped.dead else ""
    return done(context, rules.RELEASE, reaped.requeued + reaped.dead, principal, message)


def reembed(context: CommandContext, asked: Asked[BatchRequest]) -> RepairReply:
    """Enqueue an embed job for at most ``limit`` memories that have no vector of their present content."""
    principal, limit = asked.caller.principal, asked.request.limit
    enter(context, rules.REEMBED, principal)
    if configured_space(context.config.embedding) is None:
        message = "No embedding model is configured"
        return RepairReply(action=rules.REEMBED, success=False, affected=0, message=message, steps=[])
    found = without_vector(context.tx, limit)
    for memory_id in found:
        jobs.enqueue_new(context, EMBED, memory_id)
    more = "; there may be more" if len(found) == limit else ""
    return done(context, rules.REEMBED, len(found), principal, f"Enqueued the vectors of {len(found)} memories{more}")
