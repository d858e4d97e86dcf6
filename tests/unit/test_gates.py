"""Every proposal has one outcome in every mode, and no destructive change is applied unless allowed."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.extraction.facts import Fact
from signet_actors.domain.extraction.gates import (
    OUTCOME_OF,
    GateOutcome,
    PipelineFlags,
    PipelineMode,
    ProposalOutcome,
    Reason,
    Target,
    changed_by,
    extracts,
    gate,
    gate_approved,
    history_metadata,
    pipeline_mode,
    restrict,
)
from signet_actors.domain.extraction.injection_detector import InjectionKind
from signet_actors.domain.extraction.proposals import ACTIONS, Action, Proposal

FACT = Fact("The cache holds two thousand rows", "fact", 0.9)
TARGET = Target("m1", 3, pinned=False, content="The cache holds a thousand rows")
FULL = PipelineFlags(allow_update_delete=True)
CONTROLLED = PipelineFlags()
SHADOW = PipelineFlags(shadow_mode=True, allow_update_delete=True)
FROZEN = PipelineFlags(mutations_frozen=True, allow_update_delete=True)
OFF = PipelineFlags(enabled=False)
CONFIRMED = PipelineFlags(allow_update_delete=True, confirm_changes=True)


def proposal(
    action: Action = "update",
    *,
    fact: Fact = FACT,
    confidence: float = 0.9,
    contradicts: bool = False,
    version: int = 3,
    suspicion: InjectionKind | None = None,
) -> Proposal:
    names_target = action in ("update", "delete")
    return Proposal(
        action,
        fact,
        confidence,
        "It grew.",
        target_id="m1" if names_target else None,
        target_version=version if names_target else None,
        syntactic_contradiction=contradicts,
        suspicion=suspicion,
    )


# Every reason, and one situation that leads to it: the table of the module has no row that cannot happen.
SITUATIONS: dict[Reason, GateOutcome] = {
    Reason.PIPELINE_DISABLED: gate(proposal("add"), OFF),
    Reason.SHADOW: gate(proposal("add"), SHADOW),
    Reason.FROZEN: gate(proposal("add"), FROZEN),
    Reason.ALREADY_COVERED: gate(proposal("none"), CONTROLLED),
    Reason.LOW_FACT_CONFIDENCE: gate(proposal("add", fact=Fact(FACT.content, "fact", 0.69)), CONTROLLED),
    Reason.EMPTY_FACT_CONTENT: gate(proposal("add", fact=Fact("..........!!", "fact", 0.9)), CONTROLLED),
    Reason.DUPLICATE_CONTENT: gate(proposal("add"), CONTROLLED, duplicate_of="m7"),
    Reason.DESTRUCTIVE_MUTATIONS_DISABLED: gate(proposal(), CONTROLLED, target=TARGET),
    Reason.AUTONOMOUS_FROZEN: gate(
        proposal(), PipelineFlags(allow_update_delete=True, autonomous_frozen=True), target=TARGET
    ),
    Reason.LOW_DECISION_CONFIDENCE: gate(proposal("delete", confidence=0.5), FULL, target=TARGET),
    Reason.TARGET_GONE: gate(proposal(), FULL, target=None),
    Reason.PINNED: gate(proposal(), FULL, target=msgspec.structs.replace(TARGET, pinned=True)),
    Reason.VERSION_CONFLICT: gate(proposal(version=2), FULL, target=TARGET),
    Reason.UNCHANGED: gate(proposal(), FULL, target=TARGET, duplicate_of="m1"),
    Reason.CONTRADICTION: gate(proposal(contradicts=True), FULL, target=TARGET),
    Reason.INSTRUCTION: gate(proposal("add", suspicion=InjectionKind.IMPERATIVE), CONTROLLED),
    Reason.CONFIRMATION: gate(proposal("add"), CONFIRMED),
}

# The words of the documents, and those that they ask for without giving one.
DOCUMENTED = {"low_fact_confidence", "empty_fact_content", "destructive_mutations_disabled"}
REASON_WORDS = DOCUMENTED | {
    "pipeline_disabled",
    "shadow",
    "frozen",
    "already_covered",
    "duplicate_content",
    "autonomous_frozen",
    "low_decision_confidence",
    "target_gone",
    "pinned",
    "version_conflict",
    "unchanged",
    "contradiction",
    "instruction",
    "confirmation",
}


def test_the_reasons_are_the_documented_ones() -> None:
    assert {reason.value for reason in Reason} == REASON_WORDS
    assert set(OUTCOME_OF) == set(Reason)


@pytest.mark.parametrize("reason", list(Reason))
def test_each_reason_is_given_in_its_situation(reason: Reason) -> None:
    outcome = SITUATIONS[reason]
    assert (outcome.reason, outcome.outcome) == (reason, OUTCOME_OF[reason])
    assert not outcome.changes


def test_the_outcomes_are_the_documented_ones() -> None:
    words = "created deduped skipped recorded blocked review updated deleted approved rejected undone"
    assert {outcome.value for outcome in ProposalOutcome} == set(words.split())


@pytest.mark.parametrize(
    ("flags", "mode"),
    [
        (PipelineFlags(), PipelineMode.CONTROLLED_WRITE),
        (FULL, PipelineMode.FULL),
        (SHADOW, PipelineMode.SHADOW),
        (FROZEN, PipelineMode.FROZEN),
        (PipelineFlags(shadow_mode=True, mutations_frozen=True), PipelineMode.FROZEN),
        (PipelineFlags(allow_update_delete=True, autonomous_frozen=True), PipelineMode.CONTROLLED_WRITE),
        (OFF, PipelineMode.OFF),
        (PipelineFlags(enabled=False, shadow_mode=True, mutations_frozen=True), PipelineMode.OFF),
    ],
)
def test_the_flags_make_the_mode(flags: PipelineFlags, mode: PipelineMode) -> None:
    assert pipeline_mode(flags) is mode
    assert extracts(mode) is (mode is not PipelineMode.OFF)


@pytest.mark.parametrize("flags", [CONTROLLED, FULL])
def test_a_new_fact_is_created(flags: PipelineFlags) -> None:
    assert gate(proposal("add"), flags) == GateOutcome(ProposalOutcome.CREATED)


def test_an_allowed_update_and_deletion_are_applied() -> None:
    assert gate(proposal("update"), FULL, target=TARGET) == GateOutcome(ProposalOutcome.UPDATED)
    assert gate(proposal("delete"), FULL, target=TARGET) == GateOutcome(ProposalOutcome.DELETED)


def test_a_duplicate_has_the_id_of_the_existing_memory() -> None:
    assert gate(proposal("add"), FULL, duplicate_of="m7").existing_id == "m7"
    assert gate(proposal("update"), FULL, target=TARGET, duplicate_of="m7").outcome is ProposalOutcome.DEDUPED


@pytest.mark.parametrize("semantic", [True, False, None])
def test_a_contradiction_found_by_a_model_waits_for_review(semantic: bool | None) -> None:
    asked = msgspec.structs.replace(proposal(), semantic_contradiction=semantic)
    outcome = gate(asked, FULL, target=TARGET)
    assert outcome.outcome is (ProposalOutcome.REVIEW if semantic else ProposalOutcome.UPDATED)
    assert outcome.review_needed is bool(semantic)


def test_a_blocked_contradiction_is_flagged_for_review() -> None:
    assert gate(proposal(contradicts=True), CONTROLLED, target=TARGET).review_needed
    assert not gate(proposal(), CONTROLLED, target=TARGET).review_needed
    assert gate(proposal("delete", contradicts=True), SHADOW, target=TARGET).review_needed


@pytest.mark.parametrize("action", ["add", "update", "delete"])
@pytest.mark.parametrize("mark", list(InjectionKind))
def test_an_instruction_waits_for_review(action: Action, mark: InjectionKind) -> None:
    suspicious = proposal(action, suspicion=mark)
    assert gate(suspicious, FULL, target=TARGET) == GateOutcome(
        ProposalOutcome.REVIEW, Reason.INSTRUCTION, review_needed=True
    )
    assert gate_approved(suspicious, CONTROLLED, target=TARGET).changes


@pytest.mark.parametrize("action", ["add", "update", "delete"])
def test_each_change_waits_for_review_if_changes_are_confirmed(action: Action) -> None:
    waiting = GateOutcome(ProposalOutcome.REVIEW, Reason.CONFIRMATION, review_needed=True)
    assert gate(proposal(action), CONFIRMED, target=TARGET) == waiting
    assert gate(proposal(action), restrict(CONFIRMED, PipelineMode.FULL), target=TARGET) == waiting
    assert gate_approved(proposal(action), CONFIRMED, target=TARGET).changes


def test_confirmation_asks_for_nothing_that_would_not_be_stored() -> None:
    assert gate(proposal("add"), CONFIRMED, duplicate_of="m7").reason is Reason.DUPLICATE_CONTENT
    assert gate(proposal("none"), CONFIRMED).reason is Reason.ALREADY_COVERED
    assert gate(proposal(), CONFIRMED, target=None).reason is Reason.TARGET_GONE
    held = gate(proposal(), PipelineFlags(confirm_changes=True), target=TARGET)
    assert (held.reason, held.review_needed) == (Reason.DESTRUCTIVE_MUTATIONS_DISABLED, False)


def test_an_instruction_blocked_by_another_gate_is_not_reviewed() -> None:
    twin = gate(proposal("add", suspicion=InjectionKind.OVERRIDE), CONTROLLED, duplicate_of="m7")
    assert (twin.reason, twin.review_needed) == (Reason.DUPLICATE_CONTENT, False)
    held = gate(proposal("delete", suspicion=InjectionKind.OVERRIDE), CONTROLLED, target=TARGET)
    assert (held.reason, held.review_needed) == (Reason.DESTRUCTIVE_MUTATIONS_DISABLED, False)


@pytest.mark.parametrize("action", ["add", "update", "delete"])
def test_a_fact_below_the_confidence_threshold_changes_nothing(action: Action) -> None:
    unsure = proposal(action, fact=Fact(FACT.content, "fact", 0.69), confidence=0.99)
    assert gate(unsure, FULL, target=TARGET) == GateOutcome(ProposalOutcome.SKIPPED, Reason.LOW_FACT_CONFIDENCE)
    empty = proposal(action, fact=Fact("..........!!", "fact", 0.9))
    assert gate(empty, FULL, target=TARGET) == GateOutcome(ProposalOutcome.SKIPPED, Reason.EMPTY_FACT_CONTENT)


@pytest.mark.parametrize("began_frozen", [True, False])
def test_a_run_begun_while_autonomous_changes_were_frozen_has_this_reason(began_frozen: bool) -> None:
    held = restrict(FULL, PipelineMode.CONTROLLED_WRITE, autonomous_frozen=began_frozen)
    outcome = gate(proposal(), held, target=TARGET)
    assert outcome.reason is (Reason.AUTONOMOUS_FROZEN if began_frozen else Reason.DESTRUCTIVE_MUTATIONS_DISABLED)
    assert gate(proposal("add"), held).changes


@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.9, 1.0])
def test_the_threshold_is_the_configured_one(threshold: float) -> None:
    outcome = gate(proposal("add"), CONTROLLED, min_confidence=threshold)
    assert outcome.changes is (threshold <= 0.9)


@pytest.mark.parametrize(
    ("first", "later"),
    [
        (
            gate(proposal("add", fact=Fact("...", "fact", 0.1)), FULL, duplicate_of="m7"),
            Reason.LOW_FACT_CONFIDENCE,
        ),
        (gate(proposal("add", fact=Fact("...", "fact", 0.9)), FULL, duplicate_of="m7"), Reason.EMPTY_FACT_CONTENT),
        (
            gate(proposal(version=1, contradicts=True), FULL, target=Target("m1", 3, pinned=True, content="")),
            Reason.PINNED,
        ),
        (gate(proposal(version=1, contradicts=True), FULL, target=TARGET), Reason.VERSION_CONFLICT),
        (gate(proposal(confidence=0.1, contradicts=True), FULL, target=TARGET), Reason.LOW_DECISION_CONFIDENCE),
        (gate(proposal(contradicts=True), FULL, target=TARGET, duplicate_of="m7"), Reason.DUPLICATE_CONTENT),
    ],
)
def test_the_first_closed_gate_decides(first: GateOutcome, later: Reason) -> None:
    assert first.reason is later


def test_a_target_that_is_another_memory_counts_as_missing() -> None:
    assert gate(proposal(), FULL, target=Target("m2", 3, pinned=False, content="")).reason is Reason.TARGET_GONE


@pytest.mark.parametrize("action", ["update", "delete"])
def test_a_person_may_approve_flagged_blocked_or_uncertain_proposals(action: Action) -> None:
    unsure = proposal(action, fact=Fact(FACT.content, "fact", 0.1), confidence=0.1, contradicts=True)
    for flags in (FULL, CONTROLLED, SHADOW, OFF):
        assert gate_approved(unsure, flags, target=TARGET).changes


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (gate_approved(proposal(), FROZEN, target=TARGET), Reason.FROZEN),
        (gate_approved(proposal(), FULL, target=Target("m1", 3, pinned=True, content="")), Reason.PINNED),
        (gate_approved(proposal(version=2), FULL, target=TARGET), Reason.VERSION_CONFLICT),
        (gate_approved(proposal(), FULL, target=None), Reason.TARGET_GONE),
        (gate_approved(proposal(), FULL, target=TARGET, duplicate_of="m7"), Reason.DUPLICATE_CONTENT),
        (gate_approved(proposal("none"), FULL, target=None), Reason.ALREADY_COVERED),
    ],
)
def test_an_approval_is_refused_for_a_changed_or_protected_memory(outcome: GateOutcome, reason: Reason) -> None:
    assert outcome.reason is reason


def test_an_approved_addition_is_created() -> None:
    assert gate_approved(proposal("add"), CONTROLLED, target=None) == GateOutcome(ProposalOutcome.CREATED)


booleans = st.booleans()
flag_sets = st.builds(PipelineFlags, booleans, booleans, booleans, booleans, booleans)
targets = st.none() | st.builds(Target, st.sampled_from(["m1", "m2"]), st.integers(2, 4), booleans, st.text(max_size=5))
confidences = st.floats(0, 1) | st.just(float("nan"))


@given(
    st.sampled_from(ACTIONS),
    flag_sets,
    targets,
    confidences,
    confidences,
    booleans,
    st.sampled_from([None, "m1", "m7"]),
    st.none() | st.sampled_from(InjectionKind),
)
def test_no_gate_allows_a_forbidden_change(
    action: Action,
    flags: PipelineFlags,
    target: Target | None,
    fact_confidence: float,
    confidence: float,
    contradicts: bool,
    duplicate_of: str | None,
    suspicion: InjectionKind | None,
) -> None:
    proposed = proposal(
        action,
        fact=Fact(FACT.content, "fact", fact_confidence),
        confidence=confidence,
        contradicts=contradicts,
        suspicion=suspicion,
    )
    outcome = gate(proposed, flags, target=target, duplicate_of=duplicate_of)
    assert (outcome.reason is None) is (
        outcome.outcome in (ProposalOutcome.CREATED, ProposalOutcome.UPDATED, ProposalOutcome.DELETED)
    )
    if outcome.reason is not None:
        assert outcome.outcome is OUTCOME_OF[outcome.reason]
    if outcome.changes:
        assert suspicion is None
        assert flags.enabled
        assert not flags.shadow_mode
        assert not flags.mutations_frozen
        assert fact_confidence >= 0.7
    if outcome.outcome in (ProposalOutcome.UPDATED, ProposalOutcome.DELETED):
        assert flags.allow_update_delete
        assert not flags.autonomous_frozen
        assert target is not None
        assert (target.id, target.version, target.pinned) == ("m1", 3, False)
        assert not contradicts
        assert confidence >= 0.7


@pytest.mark.parametrize(
    ("flags", "actor"), [(FULL, "pipeline-v2"), (SHADOW, "pipeline-shadow"), (FROZEN, "pipeline-shadow")]
)
def test_shadow_records_have_their_own_actor(flags: PipelineFlags, actor: str) -> None:
    assert changed_by(gate(proposal("add"), flags)) == actor


def metadata(proposed: Proposal, outcome: GateOutcome) -> dict[str, object]:
    return history_metadata(
        proposed,
        outcome,
        run_id="r1",
        source_memory_id="m0",
        extraction_model="qwen3:4b",
        fact_count=2,
        entity_count=1,
    )


def test_history_metadata_reconstructs_the_decision() -> None:
    assert metadata(proposal(contradicts=True), gate(proposal(contradicts=True), CONTROLLED, target=TARGET)) == {
        "runId": "r1",
        "shadow": False,
        "proposedAction": "update",
        "outcome": "blocked",
        "targetMemoryId": "m1",
        "confidence": 0.9,
        "decisionReason": "It grew.",
        "factContent": FACT.content,
        "factType": "fact",
        "factConfidence": 0.9,
        "contradictionRisk": True,
        "reviewNeeded": True,
        "sourceMemoryId": "m0",
        "extractionModel": "qwen3:4b",
        "factCount": 2,
        "entityCount": 1,
        "blockedReason": "destructive_mutations_disabled",
    }


def test_history_metadata_has_the_reason_in_the_documented_keys() -> None:
    said = {reason: metadata(proposal(), outcome) for reason, outcome in SITUATIONS.items()}
    for reason, entry in said.items():
        key = {ProposalOutcome.SKIPPED: "skippedReason", ProposalOutcome.BLOCKED: "blockedReason"}.get(
            OUTCOME_OF[reason], "recordedReason"
        )
        assert entry[key] == reason.value
        assert entry["shadow"] is (reason in (Reason.SHADOW, Reason.FROZEN))
    assert said[Reason.DUPLICATE_CONTENT]["dedupedExistingId"] == "m7"
    made = metadata(proposal("add"), gate(proposal("add"), FULL))
    assert not {"skippedReason", "blockedReason", "recordedReason", "dedupedExistingId"} & set(made)


def test_every_combination_of_flags_and_actions_has_an_encodable_outcome() -> None:
    for bits in itertools.product([False, True], repeat=6):
        for action in ACTIONS:
            outcome = gate(proposal(action), PipelineFlags(*bits), target=TARGET)
            assert msgspec.msgpack.decode(msgspec.msgpack.encode(outcome), type=GateOutcome) == outcome
