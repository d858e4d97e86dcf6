"""The decider's mailbox: a fact goes in, a proposal comes out. Nothing is written on the way.

Source: memory-pipeline.txt "Decision Stage", "Semantic Contradiction Detection"; docs/decisions.md 16 and 19.
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.extraction.facts import Fact
from signet_actors.domain.extraction.proposals import Proposal
from signet_actors.domain.providers import ModelState
from signet_actors.protocol.message import Failure, Message, Request


class FactOrigin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a fact comes from, and therefore which memories it may be compared with (docs/decisions.md 4)."""

    memory_id: str
    agent_id: str
    visibility: str
    project: str | None = None
    scope: str | None = None
    created_at: str = ""
    """Of the memory, by which a recall is before or after it; empty where it is not known."""


class Decided(Message, frozen=True, tag="decider.decided"):
    """What is to be done with the fact; None where the model's answer could not be used, and ``warnings`` say why.

    ``failed`` says that the model took the question up and failed at it, and that it is the question's fault, as far as
    one can tell. ``calls`` is how often a model was asked; ``candidate_ids`` are the memories that it was shown.
    ``echo`` is the reason for which the fact was turned away as a repetition of what a recall had returned.
    """

    proposal: Proposal | None
    warnings: tuple[str, ...] = ()
    candidate_ids: tuple[str, ...] = ()
    calls: int = 0
    failed: bool = False
    echo: str | None = None


class Decide(Request[Decided], frozen=True, tag="decider.decide"):
    """Compare ``fact`` with what is stored. With ``vector_model`` its vector is frame 0.

    ``Failure(UNAVAILABLE)``: no model answers now, whatever it is asked.
    """

    fact: Fact
    origin: FactOrigin
    vector_model: str | None = None


class DeciderStatus(Message, frozen=True, tag="decider.status"):
    """Figures since this life of the decider began; ``decisions`` counts by action and by ``no_proposal``."""

    model: ModelState
    decisions: dict[str, int]


class GetDeciderStatus(Request[DeciderStatus], frozen=True, tag="decider.get_status"):
    """Ask for the figures."""


DeciderRequest = Decide | GetDeciderStatus
DeciderReply = Decided | DeciderStatus | Failure
