"""The kinds of durable jobs, the life of a job as a table, and how long it waits for its next attempt.

Source: memory-pipeline.txt "Worker Model"; docs/decisions.md 11-14.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, NamedTuple


class JobKindSpec(NamedTuple):
    """``needs`` is the provider without which a job of the kind waits; ``of_memory`` says that its subject is a memory,
    without which there is nothing to do."""

    name: str
    needs: Literal["llm", "embedding"]
    of_memory: bool = True


EXTRACT: Final = "extract"
PROSPECTIVE_INDEX: Final = "prospective_index"
EMBED: Final = "embed"

JOB_KINDS: Final = (
    JobKindSpec(EXTRACT, needs="llm"),
    JobKindSpec(PROSPECTIVE_INDEX, needs="llm"),
    JobKindSpec(EMBED, needs="embedding"),
)
"""Every kind that is ever enqueued. A new kind is a line here and a file in ``extractor/jobs/``."""

STALE_LEASE_MS: Final = 600_000
"""A lease that is older is an anomaly: no configuration lets one last longer without being renewed."""


class JobState(StrEnum):
    """Where a job rests. ``failed`` is recorded with the job but is no state (docs/decisions.md 13)."""

    PENDING = "pending"
    LEASED = "leased"
    COMPLETED = "completed"
    DEAD = "dead"


class PoisonCandidates(StrEnum):
    """Whether jobs whose worker went away are among those that are asked for: they may be what ended it."""

    INCLUDED = "included"
    EXCLUDED = "excluded"
    ONLY = "only"


class JobEvent(StrEnum):
    """What happens to a job. A lost or failed attempt is ``RETRY`` while attempts remain, else ``GIVE_UP``.

    ``RELEASE`` gives the attempt back, because the provider was away (docs/decisions.md 14). ``DROP`` ends a job whose
    subject is gone before it was ever handed out. ``REQUEUE`` is a person's word.
    """

    LEASE = "lease"
    COMPLETE = "complete"
    RETRY = "retry"
    GIVE_UP = "give_up"
    RELEASE = "release"
    DROP = "drop"
    REQUEUE = "requeue"


TRANSITIONS: Final[dict[tuple[JobState, JobEvent], JobState]] = {
    (JobState.PENDING, JobEvent.LEASE): JobState.LEASED,
    (JobState.LEASED, JobEvent.COMPLETE): JobState.COMPLETED,
    (JobState.LEASED, JobEvent.RETRY): JobState.PENDING,
    (JobState.LEASED, JobEvent.GIVE_UP): JobState.DEAD,
    (JobState.LEASED, JobEvent.RELEASE): JobState.PENDING,
    (JobState.PENDING, JobEvent.DROP): JobState.COMPLETED,
    (JobState.DEAD, JobEvent.REQUEUE): JobState.PENDING,
}

RETRY_BASE_MS: Final = 1_000
RETRY_CAP_MS: Final = 30_000
RETRY_JITTER_MS: Final = 500
MAX_DELAY_MS: Final = 60_000
"""No job is ever made to wait for longer: one that seems to must be judged by a wall clock that went back since."""


def advance(state: JobState, event: JobEvent) -> JobState:
    """The state after ``event``; raises ValueError where the table has no such transition."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise ValueError(f"a {state} job cannot {event}") from None


def event_after_failure(attempts: int, max_attempts: int) -> JobEvent:
    """What the end of attempt number ``attempts`` without a result means for the job."""
    return JobEvent.GIVE_UP if attempts >= max_attempts else JobEvent.RETRY


def retry_delay_ms(attempts: int, share: float) -> int:
    """How long the next attempt waits after ``attempts`` failed ones: doubling from one second, at most thirty, and
    up to half a second more by ``share``, a random number in [0, 1), so that jobs that failed together part.
    """
    doubled: int = RETRY_BASE_MS << min(max(attempts, 1) - 1, 16)
    return min(doubled, RETRY_CAP_MS) + int(share * RETRY_JITTER_MS)


def release_delay_ms(releases: int, share: float) -> int:
    """How long a job waits after its attempt was given back for the ``releases``-th time in a row.

    As long as after so many failed attempts: a provider that comes and goes is not asked in circles, and one that is
    back finds everything due within half a minute.
    """
    return retry_delay_ms(releases, share)
