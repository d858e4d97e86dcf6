"""What may be written of a proposal, decided from its words and its target alone.

The writer asks in the transaction in which it would write, so the target is what it is then and not what it was when
the model saw it. Whether a fact is there already only the store knows; that comes after these gates.

Source: memory-pipeline.txt "Pipeline Modes", "Controlled Writes"; wire.md section 3 "Decision"; decisions.md 16, 19.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from signet_actors.domain.extraction.proposals import Proposal
from signet_actors.domain.normalization import normalized_content, storage_content

LOW_FACT_CONFIDENCE: Final = "low_fact_confidence"
EMPTY_FACT_CONTENT: Final = "empty_fact_content"
SHADOW: Final = "shadow"
FROZEN: Final = "frozen"
DESTRUCTIVE_DISABLED: Final = "destructive_mutations_disabled"
TARGET_GONE: Final = "target_gone"
OTHER_SCOPE: Final = "other_scope"
PINNED: Final = "pinned"
CONSTRAINT: Final = "constraint"
VERSION_CONFLICT: Final = "version_conflict"
CONTRADICTION: Final = "contradiction"


class Mode(StrEnum):
    """How far a run may go, from nothing to everything."""

    FROZEN = "frozen"
    SHADOW = "shadow"
    CONTROLLED_WRITE = "controlled-write"
    FULL = "full"


_STRICTEST_FIRST = tuple(Mode)


def stricter(first: Mode, second: Mode) -> Mode:
    """Of two modes the one that allows less: a brake pulled after a run began holds for what it writes."""
    return min(first, second, key=_STRICTEST_FIRST.index)


def mode_of(*, shadow: bool, frozen: bool, allow_update_delete: bool) -> Mode:
    """The mode that the configuration's flags make together."""
    if frozen:
        return Mode.FROZEN
    if shadow:
        return Mode.SHADOW
    return Mode.FULL if allow_update_delete else Mode.CONTROLLED_WRITE


class Target(NamedTuple):
    """The memory that a proposal would change, as it is now. ``same_scope``: it is the source memory's equal in agent,
    visibility, project and scope."""

    version: int
    type: str
    pinned: bool
    is_deleted: bool
    same_scope: bool


class Decision(StrEnum):
    """What the writer does with a proposal: everything but ``APPLY`` only leaves a record."""

    APPLY = "apply"
    SKIPPED = "skipped"
    RECORDED = "recorded"
    BLOCKED = "blocked"
    REVIEW = "review"


class Verdict(NamedTuple):
    """``reason`` is one of the codes above where nothing is applied; ``review`` asks for a person's decision.

    Never in shadow or frozen mode, which leave history and nothing else.
    """

    decision: Decision
    reason: str | None = None
    review: bool = False


def judge(proposal: Proposal, *, mode: Mode, min_confidence: float, target: Target | None) -> Verdict:
    """What may become of the proposal. ``target`` is None where its target does not exist (any more)."""
    destructive = proposal.action in {"update", "delete"}
    flagged = destructive and proposal.contradiction_risk
    if proposal.action == "none":
        return Verdict(Decision.RECORDED)
    if mode in {Mode.FROZEN, Mode.SHADOW}:
        return Verdict(Decision.RECORDED, FROZEN if mode is Mode.FROZEN else SHADOW)
    if destructive and mode is not Mode.FULL:
        return Verdict(Decision.BLOCKED, DESTRUCTIVE_DISABLED, flagged)
    # Written so that a confidence that is no number does not pass.
    if not proposal.fact.confidence >= min_confidence:
        return Verdict(Decision.SKIPPED, LOW_FACT_CONFIDENCE)
    if proposal.action != "delete" and not normalized_content(storage_content(proposal.fact.content)):
        return Verdict(Decision.SKIPPED, EMPTY_FACT_CONTENT)
    return _judge_target(proposal, target, flagged=flagged) if destructive else Verdict(Decision.APPLY)


def _judge_target(proposal: Proposal, target: Target | None, *, flagged: bool) -> Verdict:
    """A target that does not exist, is protected, or is not what the model saw is not touched."""
    if target is None or target.is_deleted:
        return Verdict(Decision.SKIPPED, TARGET_GONE)
    if not target.same_scope:
        return Verdict(Decision.BLOCKED, OTHER_SCOPE)
    if target.pinned:
        return Verdict(Decision.BLOCKED, PINNED)
    if target.type == "constraint":
        return Verdict(Decision.BLOCKED, CONSTRAINT)
    if proposal.target_version != target.version:
        return Verdict(Decision.SKIPPED, VERSION_CONFLICT)
    if flagged:
        return Verdict(Decision.REVIEW, CONTRADICTION, review=True)
    return Verdict(Decision.APPLY)
