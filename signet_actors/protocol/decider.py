"""The decider's mailbox: a fact goes in, a proposal comes out. Nothing is written on the way.

Source: memory-pipeline.txt "Decision Stage", "Semantic Contradiction Detection"; decisions.md 16 and 19.
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.extraction.facts import Fact
from signet_actors.domain.extraction.proposals import Proposal
from signet_actors.protocol.message import Failure, Message, Request


class FactOrigin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a fact comes from, and therefore which memories it may be compared with (decisions.md 4)."""

    memory_id: str
    agent_id: str
    visibility: str
    project: str | None = None
    scope: str | None = None


class Decided(Message, frozen=True, tag="decider.decided"):
    """What is to be done with the fact; None where the model's answer could not be used, and ``warnings`` say why.

    ``calls`` is how often a model was asked; ``candidate_ids`` are the memories that it was shown, in their order.
    """

    proposal: Proposal | None
    warnings: tuple[str, ...] = ()
    candidate_ids: tuple[str, ...] = ()
    calls: int = 0


class Decide(Request[Decided], frozen=True, tag="decider.decide"):
    """Compare ``fact`` with what is stored. With ``vector_model`` its vector is frame 0.

    ``Failure(UNAVAILABLE)``: no model answers now, and no attempt was made; ``Failure(OUTCOME_UNKNOWN)`` is never said.
    """

    fact: Fact
    origin: FactOrigin
    vector_model: str | None = None


class ModelState(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model as the process that calls it sees it.

    ``provider``: its name, or none; ``reason`` says in words why it was chosen and, if it is not used now, why not.
    ``circuit``: closed, open or half_open; ``retry_in_ms`` until the next trial; ``outcomes`` counts the last calls.
    """

    provider: str
    model: str
    reason: str
    available: bool
    circuit: str = "closed"
    retry_in_ms: int = 0
    outcomes: dict[str, int] = {}
    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost_microusd: int = 0
    in_flight: int = 0


class DeciderStatus(Message, frozen=True, tag="decider.status"):
    """Figures since this life of the decider began; ``decisions`` counts by action and by ``no_proposal``."""

    model: ModelState
    decisions: dict[str, int]


class GetDeciderStatus(Request[DeciderStatus], frozen=True, tag="decider.get_status"):
    """Ask for the figures."""


DeciderRequest = Decide | GetDeciderStatus
DeciderReply = Decided | DeciderStatus | Failure
