"""What a person's decisions about proposals speak for."""

from __future__ import annotations

import pytest

from signet_actors.domain.extraction.gates import PipelineFlags
from signet_actors.features.reviews.rules import decided, hint_of

CONFIRMED, DESTRUCTIVE = "confirmation", "destructive_mutations_disabled"


def last(reason: str, *, approved: int, rejected: int = 0) -> list[tuple[str, str]]:
    return [(reason, "rejected")] * rejected + [(reason, "approved")] * approved


@pytest.mark.parametrize(
    ("rows", "flags", "key"),
    [
        (last(CONFIRMED, approved=10), PipelineFlags(confirm_changes=True), "memory.pipelineV2.confirm"),
        (last(CONFIRMED, approved=9, rejected=1), PipelineFlags(confirm_changes=True), "memory.pipelineV2.confirm"),
        (last(CONFIRMED, approved=20, rejected=2), PipelineFlags(confirm_changes=True), None),
        (last(CONFIRMED, approved=9), PipelineFlags(confirm_changes=True), None),
        (last(CONFIRMED, approved=10), PipelineFlags(), None),
        (last(DESTRUCTIVE, approved=10), PipelineFlags(), "memory.pipelineV2.autonomous.allowUpdateDelete"),
        (last(DESTRUCTIVE, approved=10), PipelineFlags(allow_update_delete=True), None),
        ([], PipelineFlags(confirm_changes=True), None),
    ],
)
def test_a_hint_needs_ten_decisions_of_which_at_most_one_is_a_rejection(
    rows: list[tuple[str, str]], flags: PipelineFlags, key: str | None
) -> None:
    hint = hint_of(decided(rows), flags)
    assert (hint and hint.key) == key


def test_only_the_last_ten_decisions_of_a_kind_are_counted() -> None:
    (made,) = decided([*last(CONFIRMED, approved=10), *last(CONFIRMED, approved=0, rejected=5)])
    assert (made.decisions, made.approved) == (10, 10)
