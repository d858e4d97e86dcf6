"""The life of a durable job, as a table, and how long a failed attempt waits for the next.

Source: memory-pipeline.txt "Job Queue"; decisions.md 11-13.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class JobState(StrEnum):
    """Where a job rests. ``failed`` is recorded with the job but is no state (decisions.md 13)."""

    PENDING = "pending"
    LEASED = "leased"
    COMPLETED = "completed"
    DEAD = "dead"


class JobEvent(StrEnum):
    """What happens to a job. A lost or failed attempt is ``RETRY`` while attempts remain, else ``GIVE_UP``."""

    LEASE = "lease"
    COMPLETE = "complete"
    RETRY = "retry"
    GIVE_UP = "give_up"


TRANSITIONS: Final[dict[tuple[JobState, JobEvent], JobState]] = {
    (JobState.PENDING, JobEvent.LEASE): JobState.LEASED,
    (JobState.LEASED, JobEvent.COMPLETE): JobState.COMPLETED,
    (JobState.LEASED, JobEvent.RETRY): JobState.PENDING,
    (JobState.LEASED, JobEvent.GIVE_UP): JobState.DEAD,
}

RETRY_BASE_MS: Final = 1_000
RETRY_CAP_MS: Final = 30_000
RETRY_JITTER_MS: Final = 500


def advance(state: JobState, event: JobEvent) -> JobState:
    """The state after ``event``; raises ValueError where the table has no such transition."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise ValueError(f"a {state} job cannot {event}") from None


def lost_attempt(attempts: int, max_attempts: int) -> JobEvent:
    """What the end of attempt number ``attempts`` without a result means for the job."""
    return JobEvent.GIVE_UP if attempts >= max_attempts else JobEvent.RETRY


def retry_delay_ms(attempts: int, share: float) -> int:
    """How long the next attempt waits after ``attempts`` failed ones: doubling from one second, at most thirty, and
    up to half a second more by ``share``, a random number in [0, 1), so that jobs that failed together part.
    """
    doubled: int = RETRY_BASE_MS << min(max(attempts, 1) - 1, 16)
    return min(doubled, RETRY_CAP_MS) + int(share * RETRY_JITTER_MS)
