"""A model's decision may only target the memories that it was shown, and must be complete."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.extraction.facts import UNPARSEABLE, Fact
from signet_actors.domain.extraction.proposals import (
    ACTIONS,
    MAX_REASON_CHARS,
    NO_CANDIDATES_REASON,
    Candidate,
    Decision,
    Proposal,
    parse_decision,
    proposal_needs_semantic_check,
    proposal_target,
    propose_add,
    with_semantic,
)
from tests.support.model_answers import LOSSLESS

FACT = Fact("The cache is disabled in production", "fact", 0.8)
CANDIDATES = tuple(
    Candidate(f"0190aaaa-0000-7000-8000-00000000000{number}", number + 10, "fact", content)
    for number, content in enumerate(
        ["The cache is enabled in production", "The cache holds a thousand rows", "Tea is served at four"], 1
    )
)
FOREIGN = "0190bbbb-0000-7000-8000-000000000001"


def decided(candidates: tuple[Candidate, ...] = CANDIDATES, **members: object) -> Decision:
    value = {"action": "update", "targetId": 1, "confidence": 0.9, "reason": "It changed.", **members}
    return parse_decision(json.dumps(value), FACT, candidates)


def refusal(**members: object) -> str:
    decision = decided(**members)
    assert decision.proposal is None
    assert decision.parsed
    return decision.warnings[0]


def test_without_candidates_the_fact_is_added_with_its_own_confidence() -> None:
    assert propose_add(FACT) == Proposal("add", FACT, 0.8, NO_CANDIDATES_REASON)
    assert NO_CANDIDATES_REASON == "No existing memory covers this fact"


@pytest.mark.parametrize("action", ["add", "none"])
def test_an_addition_and_no_action_have_no_target(action: str) -> None:
    proposal = decided(action=action, targetId=2).proposal
    assert proposal is not None
    assert (proposal.action, proposal.target_id, proposal.target_version) == (action, None, None)


@pytest.mark.parametrize("action", ["update", "delete"])
@pytest.mark.parametrize("target", [2, "2", "#2", "[2]", " 2. ", 2.0, CANDIDATES[1].id, f" {CANDIDATES[1].id}\n"])
def test_a_target_is_given_by_number_or_full_id(action: str, target: object) -> None:
    proposal = decided(action=action, targetId=target).proposal
    assert proposal is not None
    assert (proposal.target_id, proposal.target_version) == (CANDIDATES[1].id, CANDIDATES[1].version)


@pytest.mark.parametrize("key", ["targetId", "target_id", "target"])
def test_a_target_is_accepted_in_each_spelling(key: str) -> None:
    answer = json.dumps({"action": "delete", key: 3, "confidence": 1, "reason": "Over."})
    proposal = parse_decision(answer, FACT, CANDIDATES).proposal
    assert proposal is not None
    assert proposal.target_id == CANDIDATES[2].id


@pytest.mark.parametrize(
    "target",
    [
        0,
        4,
        6,
        -1,
        1.5,
        True,
        "0",
        "4",
        "01x",
        "\u0661",
        "1e0",
        FOREIGN,
        CANDIDATES[0].id[:8],
        CANDIDATES[0].id.upper(),
        "*",
        "",
        [1],
        [CANDIDATES[0].id],
        {"id": 1},
        10**30,
        1e300,
    ],
)
def test_a_target_that_was_not_shown_is_refused(target: object) -> None:
    assert refusal(targetId=target).startswith("Decision target is not a candidate:")
    assert refusal(targetId=target, action="delete").startswith("Decision target is not a candidate:")


def test_only_five_candidates_count() -> None:
    many = tuple(Candidate(f"id-{number}", 1, "fact", "text") for number in range(9))
    assert decided(many, targetId=5).proposal is not None
    assert decided(many, targetId=6).proposal is None
    assert decided(many, targetId="id-6").proposal is None


@pytest.mark.parametrize("action", ["update", "delete"])
def test_a_missing_target_is_refused(action: str) -> None:
    assert refusal(action=action, targetId=None) == f"Decision without target: {action}"


@pytest.mark.parametrize("reason", [None, "", " \n ", 5, ["because"]])
@pytest.mark.parametrize("action", ACTIONS)
def test_a_missing_reason_is_refused(action: str, reason: object) -> None:
    assert refusal(action=action, reason=reason) == f"Decision without reason: {action}"


@pytest.mark.parametrize("action", ["merge", "", None, 1, ["add"], "add; delete", "x" * 500])
def test_an_unknown_action_is_refused(action: object) -> None:
    assert refusal(action=action).startswith("Unknown decision action: ")


def test_the_action_is_case_insensitive() -> None:
    proposal = decided(action=" UPDATE ").proposal
    assert proposal is not None
    assert proposal.action == "update"


def test_a_long_reason_is_truncated() -> None:
    proposal = decided(reason="because " * 1_000).proposal
    assert proposal is not None
    assert len(proposal.reason) <= MAX_REASON_CHARS


@pytest.mark.parametrize(("said", "meant"), [(2, 1.0), (-1, 0.0), ("0.4", 0.4), (True, 0.5), (None, 0.5)])
def test_the_confidence_is_clamped_or_the_default(said: object, meant: float) -> None:
    proposal = decided(confidence=said).proposal
    assert proposal is not None
    assert proposal.confidence == meant


def test_warnings_are_part_of_the_proposal() -> None:
    decision = decided(confidence="sure")
    assert decision.proposal is not None
    assert decision.proposal.warnings == decision.warnings == ("Invalid confidence str, using 0.5",)


@pytest.mark.parametrize("answer", ["I would add it.", "", "[]", "<think>{", b"\xff"])
def test_an_answer_without_an_object_is_distinguished(answer: str | bytes) -> None:
    assert parse_decision(answer, FACT, CANDIDATES) == Decision(warnings=(UNPARSEABLE,), parsed=False)


def test_a_contradiction_of_the_target_is_flagged() -> None:
    against, beside = decided(targetId=1).proposal, decided(targetId=2).proposal
    assert against is not None
    assert beside is not None
    assert (against.syntactic_contradiction, against.semantic_contradiction, against.contradiction_risk) == (
        True,
        None,
        True,
    )
    assert (beside.syntactic_contradiction, beside.contradiction_risk) == (False, False)
    assert with_semantic(beside, True).contradiction_risk
    assert not with_semantic(beside, False).contradiction_risk


def test_a_model_checks_updates_with_three_shared_words_and_no_found_conflict() -> None:
    fact = Fact("The shop moved its orders to MongoDB", "fact", 0.9)
    shown = (
        Candidate("a", 1, "fact", "The shop stores its orders in PostgreSQL"),
        Candidate("b", 1, "fact", "The end"),
    )

    def asked(enabled: bool = True, **members: object) -> bool:
        value = {"action": "update", "targetId": 1, "confidence": 0.9, "reason": "Moved.", **members}
        proposal = parse_decision(json.dumps(value), fact, shown).proposal
        assert proposal is not None
        return proposal_needs_semantic_check(proposal, shown, enabled=enabled)

    assert asked()
    assert not asked(enabled=False)
    assert not asked(action="delete")
    assert not asked(action="add")
    assert not asked(targetId=2)


def test_the_target_of_a_proposal_is_resolved() -> None:
    proposal = decided(targetId=3).proposal
    assert proposal is not None
    assert proposal_target(proposal, CANDIDATES) is CANDIDATES[2]
    assert proposal_target(propose_add(FACT), CANDIDATES) is None


UPDATE = json.dumps({"action": "update", "targetId": 2, "confidence": 0.75, "reason": "It grew to a thousand rows."})
BROKEN_UPDATES = {name: answer for name, change in LOSSLESS.items() if (answer := change(UPDATE)) is not None}


@pytest.mark.parametrize("answer", BROKEN_UPDATES.values(), ids=BROKEN_UPDATES)
def test_a_broken_decision_is_repaired(answer: str) -> None:
    proposal = parse_decision(answer, FACT, CANDIDATES).proposal
    assert proposal is not None
    assert (proposal.action, proposal.target_id, proposal.confidence) == ("update", CANDIDATES[1].id, 0.75)
    assert proposal.reason == "It grew to a thousand rows."


anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.sampled_from(ACTIONS) | anything,
    st.sampled_from([1, 2, 3, 4, "1", CANDIDATES[0].id, FOREIGN]) | anything,
    anything,
    st.just("reason") | anything,
    st.integers(0, 3),
)
def test_no_answer_can_target_a_memory_that_was_not_shown(
    action: object, target: object, confidence: object, reason: object, shown: int
) -> None:
    candidates = CANDIDATES[:shown]
    value = {"action": action, "targetId": target, "confidence": confidence, "reason": reason}
    proposal = parse_decision(json.dumps(value), FACT, candidates).proposal
    if proposal is None:
        return
    assert proposal.action in ACTIONS
    assert proposal.reason.strip()
    assert 0.0 <= proposal.confidence <= 1.0
    assert (proposal.target_id is not None) is (proposal.action in ("update", "delete"))
    if proposal.target_id is not None:
        assert (proposal.target_id, proposal.target_version) in {(known.id, known.version) for known in candidates}
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(proposal), type=Proposal) == proposal


@given(st.text(st.characters(exclude_categories=())) | st.binary())
def test_no_answer_raises(answer: str | bytes) -> None:
    assert parse_decision(answer, FACT, CANDIDATES).proposal is None
