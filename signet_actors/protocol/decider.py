"""The decider's mailbox: it receives a fact and returns a proposal, without writing anything.

Source: memory-pipeline.txt "Decision Stage", "Semantic Contradiction Detection"; docs/decisions.md 16 and 19.
"""

from __future__ import annotations

import msgspec

from signet_actors.domain.extraction.facts import Fact
from signet_actors.domain.extraction.proposals import Proposal
from signet_actors.domain.providers import ModelState
from signet_actors.protocol.message import Failure, Message, Request


class FactOrigin(msgspec.Struct, frozen=True, omit_defaults=True):
    """The source of a fact; it determines which memories the fact may be compared with (docs/decisions.md 4)."""

    memory_id: str
    agent_id: str
    visibility: str
    project: str | None = None
    scope: str | None = None
    created_at: str = ""
    """When the memory was created, to decide whether a recall came before or after it; empty if not known."""


class Decided(Message, frozen=True, tag="decider.decided"):
    """The proposal for the fact; None if the model's answer was unusable (see ``warnings``).

    ``failed``: the model accepted the prompt and failed at it, as far as one can tell because of the prompt;
    ``timed_out``: the last time, because it did not answer in time. ``calls``
    counts the model calls; ``candidate_ids`` are the memories shown to the model. ``echo`` is the reason for which the
    fact was rejected as a repetition of what a recall had returned.
    """

    proposal: Proposal | None
    warnings: tuple[str, ...] = ()
    candidate_ids: tuple[str, ...] = ()
    calls: int = 0
    failed: bool = False
    echo: str | None = None
    timed_out: bool = False


class Decide(Request[Decided], frozen=True, tag="decider.decide"):
    """Compare ``fact`` with what is stored; with ``vector_model``, its vector is frame 0.

    ``Failure(UNAVAILABLE)``: no model answers now.
    """

    fact: Fact
    origin: FactOrigin
    vector_model: str | None = None


class ContradictionChecked(Message, frozen=True, tag="decider.contradiction_checked"):
    """``contradicts``: one statement being true makes the other false, and the model is sure enough."""

    contradicts: bool
    confidence: float


class CheckContradiction(Request[ContradictionChecked], frozen=True, tag="decider.check_contradiction"):
    """Ask a model whether both statements can be true. An answer that cannot be read counts as no contradiction."""

    first: str
    second: str


class DeciderStatus(Message, frozen=True, tag="decider.status"):
    """Counters since this process started; ``decisions`` counts by action, and ``no_proposal``."""

    model: ModelState
    decisions: dict[str, int]


class GetDeciderStatus(Request[DeciderStatus], frozen=True, tag="decider.get_status"):
    """Ask for the counters."""


DeciderRequest = Decide | CheckContradiction | GetDeciderStatus
DeciderReply = Decided | ContradictionChecked | DeciderStatus | Failure
