"""Decide what happens to each proposal, from the pipeline mode, the gates in order, and the memory's current state.

The writer calls ``gate`` inside its transaction and reads the target in the same transaction. Nothing can change
between the decision and its effect.

Source: memory-pipeline.txt "Pipeline Modes", "Controlled Writes"; memory-system.txt "Shadow Mode vs. Controlled
Writes", "History and Audit Trail"; architecture.txt "Memory Pipeline";
docs/compatibility.md "Worked examples: decision"; docs/decisions.md 16.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, Protocol

from msgspec import Struct

from signet_actors.domain.extraction.proposals import DESTRUCTIVE, Proposal
from signet_actors.domain.normalization import has_token

PIPELINE_ACTOR: Final = "pipeline-v2"
SHADOW_ACTOR: Final = "pipeline-shadow"
EXTRACTED_WHY: Final = "extracted-fact"
DEFAULT_MIN_CONFIDENCE: Final = 0.7


class PipelineMode(StrEnum):
    """What the pipeline may do. FROZEN and SHADOW run and record, but change no memory.

    Departs: a frozen pipeline is a mode separate from shadow, so that the history shows which of the two applied.
    """

    OFF = "off"
    SHADOW = "shadow"
    FROZEN = "frozen"
    CONTROLLED_WRITE = "controlled_write"
    FULL = "full"


class PipelineFlags(Struct, frozen=True):
    """The configuration flags that decide about proposals.

    ``autonomous.frozen`` stops everything autonomous, and therefore every update and deletion that no person requested.
    ``confirm_changes``: a change that passes all other gates waits for a person.
    """

    enabled: bool = True
    shadow_mode: bool = False
    mutations_frozen: bool = False
    allow_update_delete: bool = False
    autonomous_frozen: bool = False
    confirm_changes: bool = False


class AutonomySwitches(Protocol):
    """The ``autonomous`` section of the configuration."""

    @property
    def frozen(self) -> bool: ...
    @property
    def allow_update_delete(self) -> bool: ...


class PipelineSwitches(Protocol):
    """The part of the pipeline configuration that decides about proposals."""

    @property
    def enabled(self) -> bool: ...
    @property
    def shadow_mode(self) -> bool: ...
    @property
    def mutations_frozen(self) -> bool: ...
    @property
    def confirm(self) -> Literal["auto", "review"]: ...
    @property
    def autonomous(self) -> AutonomySwitches: ...


def flags_of(switches: PipelineSwitches) -> PipelineFlags:
    return PipelineFlags(
        enabled=switches.enabled,
        shadow_mode=switches.shadow_mode,
        mutations_frozen=switches.mutations_frozen,
        allow_update_delete=switches.autonomous.allow_update_delete,
        autonomous_frozen=switches.autonomous.frozen,
        confirm_changes=switches.confirm == "review",
    )


def restrict(flags: PipelineFlags, mode: PipelineMode, *, autonomous_frozen: bool = False) -> PipelineFlags:
    """Return ``flags`` with the restrictions of ``mode``, the mode in which a run started; never more permissive.

    ``autonomous_frozen``: autonomous changes were frozen when the run started. Blocked proposals then give that as the
    reason.
    """
    return PipelineFlags(
        enabled=flags.enabled and mode is not PipelineMode.OFF,
        shadow_mode=flags.shadow_mode or mode is PipelineMode.SHADOW,
        mutations_frozen=flags.mutations_frozen or mode is PipelineMode.FROZEN,
        allow_update_delete=flags.allow_update_delete
        and (mode is not PipelineMode.CONTROLLED_WRITE or autonomous_frozen),
        autonomous_frozen=flags.autonomous_frozen or autonomous_frozen,
        confirm_changes=flags.confirm_changes,
    )


class ProposalOutcome(StrEnum):
    """What became of a proposal. ``gate`` returns the first eight; the last three come from a person's review."""

    CREATED = "created"
    DEDUPED = "deduped"
    SKIPPED = "skipped"
    RECORDED = "recorded"
    BLOCKED = "blocked"
    REVIEW = "review"
    UPDATED = "updated"
    DELETED = "deleted"
    APPROVED = "approved"
    REJECTED = "rejected"
    UNDONE = "undone"


class Reason(StrEnum):
    """Why a proposal was not applied. Uses the specification's words where it has one.

    Departs: ``destructive_mutations_not_implemented`` is never used, because updates and deletions are implemented;
    blocked ones get ``destructive_mutations_disabled``.
    """

    PIPELINE_DISABLED = "pipeline_disabled"
    SHADOW = "shadow"
    FROZEN = "frozen"
    ALREADY_COVERED = "already_covered"
    LOW_FACT_CONFIDENCE = "low_fact_confidence"
    EMPTY_FACT_CONTENT = "empty_fact_content"
    DUPLICATE_CONTENT = "duplicate_content"
    DESTRUCTIVE_MUTATIONS_DISABLED = "destructive_mutations_disabled"
    AUTONOMOUS_FROZEN = "autonomous_frozen"
    LOW_DECISION_CONFIDENCE = "low_decision_confidence"
    TARGET_GONE = "target_gone"
    PINNED = "pinned"
    VERSION_CONFLICT = "version_conflict"
    UNCHANGED = "unchanged"
    CONTRADICTION = "contradiction"
    INSTRUCTION = "instruction"
    CONFIRMATION = "confirmation"


OUTCOME_OF: Final[dict[Reason, ProposalOutcome]] = {
    Reason.PIPELINE_DISABLED: ProposalOutcome.SKIPPED,
    Reason.SHADOW: ProposalOutcome.RECORDED,
    Reason.FROZEN: ProposalOutcome.RECORDED,
    Reason.ALREADY_COVERED: ProposalOutcome.RECORDED,
    Reason.LOW_FACT_CONFIDENCE: ProposalOutcome.SKIPPED,
    Reason.EMPTY_FACT_CONTENT: ProposalOutcome.SKIPPED,
    Reason.DUPLICATE_CONTENT: ProposalOutcome.DEDUPED,
    Reason.DESTRUCTIVE_MUTATIONS_DISABLED: ProposalOutcome.BLOCKED,
    Reason.AUTONOMOUS_FROZEN: ProposalOutcome.BLOCKED,
    Reason.LOW_DECISION_CONFIDENCE: ProposalOutcome.SKIPPED,
    Reason.TARGET_GONE: ProposalOutcome.BLOCKED,
    Reason.PINNED: ProposalOutcome.BLOCKED,
    Reason.VERSION_CONFLICT: ProposalOutcome.BLOCKED,
    Reason.UNCHANGED: ProposalOutcome.RECORDED,
    Reason.CONTRADICTION: ProposalOutcome.REVIEW,
    Reason.INSTRUCTION: ProposalOutcome.REVIEW,
    Reason.CONFIRMATION: ProposalOutcome.REVIEW,
}
"""The outcome of each reason. An outcome without a reason means that a memory was changed."""


class Target(Struct, frozen=True):
    """The current state of the memory to update or delete: not deleted, and owned by the job's agent."""

    id: str
    version: int
    pinned: bool
    content: str


class GateOutcome(Struct, frozen=True):
    """The result of the gates. ``reason`` is None only if a memory is created, updated or deleted.

    ``existing_id`` is the memory with the same content, for ``deduped``. ``review_needed`` means that a person should
    look at the proposal. It is also set on blocked proposals, which a person can only look at.
    """

    outcome: ProposalOutcome
    reason: Reason | None = None
    existing_id: str | None = None
    review_needed: bool = False

    @property
    def changes(self) -> bool:
        """True if the writer changes a memory."""
        return self.reason is None


def pipeline_mode(flags: PipelineFlags) -> PipelineMode:
    """Return the mode that the flags select. Off has priority over frozen, and frozen over every other mode."""
    if not flags.enabled:
        return PipelineMode.OFF
    if flags.mutations_frozen:
        return PipelineMode.FROZEN
    if flags.shadow_mode:
        return PipelineMode.SHADOW
    if flags.allow_update_delete and not flags.autonomous_frozen:
        return PipelineMode.FULL
    return PipelineMode.CONTROLLED_WRITE


def extracts(mode: PipelineMode) -> bool:
    return mode is not PipelineMode.OFF


def gate(
    proposal: Proposal,
    flags: PipelineFlags,
    *,
    min_confidence: float = DEFAULT_MIN_CONFIDENCE,
    target: Target | None = None,
    duplicate_of: str | None = None,
) -> GateOutcome:
    """Return the outcome of ``proposal``: the first gate that does not pass decides.

    An update or a deletion passes only if the mode allows it, the memory is not pinned, its version is the one that the
    decider saw, and no contradiction is suspected. A suspected contradiction, or a fact that looks like an instruction
    to an agent, is sent to a person for review; so is every change if the flags ask for confirmation.

    ``target`` is the memory that the proposal names, or None if it does not exist, is deleted, or belongs to another
    agent. ``duplicate_of`` is a live memory in the same scope with the same content hash as the fact.

    Departs: the semantic check, which memory-pipeline.txt calls advisory, also sends a proposal to review
    (docs/decisions.md 16).
    """
    mode = pipeline_mode(flags)
    mode_reason = {
        PipelineMode.OFF: Reason.PIPELINE_DISABLED,
        PipelineMode.FROZEN: Reason.FROZEN,
        PipelineMode.SHADOW: Reason.SHADOW,
    }.get(mode)
    if mode_reason is not None:
        return _not_applied(mode_reason, proposal)
    if proposal.action == "none":
        return _not_applied(Reason.ALREADY_COVERED, proposal)
    if proposal.action == "add":
        return _review_if_needed(
            _check_fact(proposal, ProposalOutcome.CREATED, min_confidence, duplicate_of), proposal, flags
        )
    if mode is not PipelineMode.FULL:
        frozen = flags.allow_update_delete and flags.autonomous_frozen
        return _not_applied(Reason.AUTONOMOUS_FROZEN if frozen else Reason.DESTRUCTIVE_MUTATIONS_DISABLED, proposal)
    refused = _check_target(proposal, target)
    if refused is not None:
        return refused
    if proposal.confidence < min_confidence:
        return _not_applied(Reason.LOW_DECISION_CONFIDENCE, proposal)
    if proposal.action == "delete":
        outcome = _check_fact(proposal, ProposalOutcome.DELETED, min_confidence, None)
    else:
        outcome = _check_fact(proposal, ProposalOutcome.UPDATED, min_confidence, duplicate_of)
    if outcome.changes and proposal.contradiction_risk:
        return _not_applied(Reason.CONTRADICTION, proposal)
    return _review_if_needed(outcome, proposal, flags)


def gate_approved(
    proposal: Proposal, flags: PipelineFlags, *, target: Target | None, duplicate_of: str | None = None
) -> GateOutcome:
    """Return the outcome of a proposal that a person approved.

    The approval overrides the gates for contradiction, suspicion, confirmation, confidence and disabled updates. It
    also overrides ``pipeline_disabled`` and ``shadow``, which restrict the pipeline and not people. Frozen mutations, a
    pinned, missing or changed memory, and a duplicate still stop the proposal.
    """
    if flags.mutations_frozen:
        return _not_applied(Reason.FROZEN, proposal)
    if proposal.action == "none":
        return _not_applied(Reason.ALREADY_COVERED, proposal)
    if proposal.action == "add":
        return _check_fact(proposal, ProposalOutcome.CREATED, 0.0, duplicate_of)
    refused = _check_target(proposal, target)
    if refused is not None:
        return refused
    if proposal.action == "delete":
        return GateOutcome(ProposalOutcome.DELETED)
    return _check_fact(proposal, ProposalOutcome.UPDATED, 0.0, duplicate_of)


def _check_target(proposal: Proposal, target: Target | None) -> GateOutcome | None:
    if target is None or target.id != proposal.target_id:
        return _not_applied(Reason.TARGET_GONE, proposal)
    if target.pinned:
        return _not_applied(Reason.PINNED, proposal)
    if target.version != proposal.target_version:
        return _not_applied(Reason.VERSION_CONFLICT, proposal)
    return None


def _check_fact(
    proposal: Proposal, applied: ProposalOutcome, min_confidence: float, duplicate_of: str | None
) -> GateOutcome:
    """Check the fact before anything is written, in the documented order: confidence, emptiness, duplicate."""
    if not proposal.fact.confidence >= min_confidence:
        return _not_applied(Reason.LOW_FACT_CONFIDENCE, proposal)
    if not has_token(proposal.fact.content):
        return _not_applied(Reason.EMPTY_FACT_CONTENT, proposal)
    if duplicate_of is not None:
        unchanged = applied is ProposalOutcome.UPDATED and duplicate_of == proposal.target_id
        return _not_applied(Reason.UNCHANGED if unchanged else Reason.DUPLICATE_CONTENT, proposal, duplicate_of)
    return GateOutcome(applied)


def _review_if_needed(outcome: GateOutcome, proposal: Proposal, flags: PipelineFlags) -> GateOutcome:
    """Send a change to review if its fact looks like an instruction to an agent, or if all changes are confirmed.

    Source: docs/security.md "Poisoned memories"; docs/pipeline.md "Reviews".
    """
    if not outcome.changes:
        return outcome
    if proposal.suspicion is not None:
        return _not_applied(Reason.INSTRUCTION, proposal)
    return _not_applied(Reason.CONFIRMATION, proposal) if flags.confirm_changes else outcome


def _not_applied(reason: Reason, proposal: Proposal, existing_id: str | None = None) -> GateOutcome:
    risky = reason in (Reason.INSTRUCTION, Reason.CONFIRMATION) or (
        proposal.action in DESTRUCTIVE and proposal.contradiction_risk
    )
    return GateOutcome(OUTCOME_OF[reason], reason, existing_id, review_needed=risky)


def changed_by(outcome: GateOutcome) -> str:
    """Return the actor for the history row. Proposals only recorded in shadow or frozen mode have a separate actor."""
    return SHADOW_ACTOR if outcome.reason in (Reason.SHADOW, Reason.FROZEN) else PIPELINE_ACTOR


def history_metadata(
    proposal: Proposal,
    outcome: GateOutcome,
    *,
    run_id: str,
    source_memory_id: str,
    extraction_model: str,
    fact_count: int,
    entity_count: int,
) -> dict[str, object]:
    """Return the documented metadata of the proposal's history row: the proposal, its origin and its outcome.

    ``skippedReason``, ``blockedReason``, ``recordedReason`` and ``dedupedExistingId`` are present only if they apply.
    """
    metadata: dict[str, object] = {
        "runId": run_id,
        "shadow": outcome.reason in (Reason.SHADOW, Reason.FROZEN),
        "proposedAction": proposal.action,
        "outcome": outcome.outcome.value,
        "targetMemoryId": proposal.target_id,
        "confidence": proposal.confidence,
        "decisionReason": proposal.reason,
        "factContent": proposal.fact.content,
        "factType": proposal.fact.type,
        "factConfidence": proposal.fact.confidence,
        "contradictionRisk": proposal.contradiction_risk,
        "reviewNeeded": outcome.review_needed,
        "sourceMemoryId": source_memory_id,
        "extractionModel": extraction_model,
        "factCount": fact_count,
        "entityCount": entity_count,
    }
    if outcome.reason is not None:
        reason_key = {ProposalOutcome.SKIPPED: "skippedReason", ProposalOutcome.BLOCKED: "blockedReason"}.get(
            outcome.outcome, "recordedReason"
        )
        metadata[reason_key] = outcome.reason.value
    if outcome.existing_id is not None:
        metadata["dedupedExistingId"] = outcome.existing_id
    return metadata
