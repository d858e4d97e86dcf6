"""What a person's decisions about proposals speak for."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from signet_actors.domain.extraction.facts import Fact
from signet_actors.domain.extraction.gates import PipelineFlags, gate
from signet_actors.domain.extraction.proposals import Proposal
from signet_actors.features.reviews.api import DecidedReviews
from signet_actors.features.reviews.rules import hint_of

CONFIRMED = PipelineFlags(confirm_changes=True)


@pytest.mark.parametrize(
    ("decisions", "approved", "flags", "is_given"),
    [
        (10, 10, CONFIRMED, True),
        (10, 9, CONFIRMED, True),
        (10, 8, CONFIRMED, False),
        (9, 9, CONFIRMED, False),
        (0, 0, CONFIRMED, False),
        (10, 10, PipelineFlags(), False),
        (10, 10, replace(CONFIRMED, enabled=False), False),
        (10, 10, replace(CONFIRMED, shadow_mode=True), False),
        (10, 10, replace(CONFIRMED, mutations_frozen=True), False),
        (10, 10, replace(CONFIRMED, allow_update_delete=True), True),
    ],
)
def test_a_hint_needs_ten_decisions_of_which_at_most_one_is_a_rejection(
    decisions: int, approved: int, flags: PipelineFlags, *, is_given: bool
) -> None:
    hint = hint_of(DecidedReviews(decisions, approved), flags)
    assert (hint and (hint.key, hint.value)) == (("memory.pipelineV2.confirm", "auto") if is_given else None)


def test_what_waited_only_to_be_confirmed_is_applied_with_the_setting() -> None:
    proposal = Proposal("add", Fact("The build uses Ninja", "fact", 0.9), 0.9, "It is new.")
    assert not gate(proposal, CONFIRMED).changes
    assert gate(proposal, replace(CONFIRMED, confirm_changes=False)).changes
