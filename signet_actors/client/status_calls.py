"""Exchanges about the daemon itself."""

from __future__ import annotations

from signet_actors.client.exchange import Caller, Exchange
from signet_actors.operations.health import HEALTH, READY, HealthReply, ReadyReply
from signet_actors.operations.pipeline import PIPELINE_STATUS, PipelineStatusReply
from signet_actors.operations.status import STATUS, StatusReply


def status(caller: Caller) -> Exchange[StatusReply]:
    """Return a summary of processes, stored data and jobs."""
    return (yield from caller.call(STATUS))


def health(caller: Caller) -> Exchange[HealthReply]:
    """Return the health of the daemon."""
    return (yield from caller.call(HEALTH))


def ready(caller: Caller) -> Exchange[ReadyReply]:
    """Return whether memories can be written and read now; ``not_up`` names what is missing."""
    return (yield from caller.call(READY))


def pipeline_status(caller: Caller) -> Exchange[PipelineStatusReply]:
    """Return the state of the extraction of facts: queues, models, budgets."""
    return (yield from caller.call(PIPELINE_STATUS))
