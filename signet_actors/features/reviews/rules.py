"""What a person's decisions speak for. Source: docs/guides/dashboard.md "Review"."""

from __future__ import annotations

from typing import Final

from signet_actors.domain.extraction.gates import PipelineFlags, PipelineMode, pipeline_mode
from signet_actors.features.reviews.api import DecidedReviews, ReviewHint

DECISIONS: Final = 10
"""So many last decisions are looked at, and there is no hint before."""
MOST_REJECTED: Final = 1
"""Of them, for a hint."""
_APPLIES: Final = (PipelineMode.CONTROLLED_WRITE, PipelineMode.FULL)


def hint_of(made: DecidedReviews, flags: PipelineFlags) -> ReviewHint | None:
    """Return the setting by which such proposals do not wait, if nearly all were approved and it is not set."""
    approves = made.decisions == DECISIONS <= made.approved + MOST_REJECTED
    if not (approves and flags.confirm_changes and pipeline_mode(flags) in _APPLIES):
        return None
    told = f"You approved {made.approved} of the last {made.decisions} proposals that waited only for you."
    return ReviewHint(f"{told} Let the pipeline apply such proposals by itself?", "memory.pipelineV2.confirm", "auto")
