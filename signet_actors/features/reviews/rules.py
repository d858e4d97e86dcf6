"""What a person's decisions speak for. Source: docs/guides/dashboard.md "Review"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from signet_actors.domain.extraction.gates import PipelineFlags, Reason
from signet_actors.features.reviews.api import DecidedReviews, ReviewHint

DECISIONS: Final = 10
"""So many last decisions of a kind are looked at, and there is no hint before."""
MOST_REJECTED: Final = 1
"""Of them, for a hint."""
_SETTINGS: Final = {
    Reason.CONFIRMATION: ("that waited only for you", "memory.pipelineV2.confirm", "auto"),
    Reason.DESTRUCTIVE_MUTATIONS_DISABLED: (
        "to change or forget a memory",
        "memory.pipelineV2.autonomous.allowUpdateDelete",
        "true",
    ),
}
"""Why a proposal waits because of a setting: what such proposals are, and what lets the pipeline apply them."""
REASONS: Final = tuple(reason.value for reason in _SETTINGS)


def decided(rows: Iterable[tuple[str, str]]) -> list[DecidedReviews]:
    """Return what was decided last about proposals, each given by its reason and its state, the newest first."""
    states: dict[str, list[str]] = defaultdict(list)
    for reason, state in rows:
        states[reason].append(state)
    last = {reason: states[reason][:DECISIONS] for reason in REASONS if states[reason]}
    return [DecidedReviews(reason, len(each), each.count("approved")) for reason, each in last.items()]


def hint_of(made: Iterable[DecidedReviews], flags: PipelineFlags) -> ReviewHint | None:
    """Return the setting for which nearly all of the last decisions speak, unless it is set."""
    waits = {
        Reason.CONFIRMATION: flags.confirm_changes,
        Reason.DESTRUCTIVE_MUTATIONS_DISABLED: not flags.allow_update_delete,
    }
    for each in made:
        if waits[Reason(each.reason)] and each.decisions == DECISIONS <= each.approved + MOST_REJECTED:
            what, key, value = _SETTINGS[Reason(each.reason)]
            told = f"You approved {each.approved} of the last {each.decisions} proposals {what}."
            return ReviewHint(f"{told} Let the pipeline apply such proposals by itself?", key, value)
    return None
