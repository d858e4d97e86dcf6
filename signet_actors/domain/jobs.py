"""The kinds of durable jobs, the state machine of a job, and the delays before its next attempt.

Source: memory-pipeline.txt "Worker Model"; docs/decisions.md 11-14.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, NamedTuple


class JobKindSpec(NamedTuple):
    """A kind of job.

    ``needs`` is the provider that the job requires; the job waits while it is unavailable. ``of_memory`` means that the
    subject of the job is a memory; if it no longer exists, there is nothing to do. ``newest_first`` hands the newest
    jobs out first, because new memories are asked for most; the old ones wait until the queue gets shorter.
    """

    name: str
    needs: Literal["llm", "embedding"]
    of_memory: bool = True
    newest_first: bool = False


EXTRACT: Final = "extract"
PROSPECTIVE_INDEX: Final = "prospective_index"
EMBED: Final = "embed"
SUMMARIZE: Final = "summarize"
SCORE_SESSION: Final = "score_session"
STRUCTURAL_CLASSIFY: Final = "structural_classify"

JOB_KINDS: Final = (
    JobKindSpec(EXTRACT, needs="llm"),
    JobKindSpec(PROSPECTIVE_INDEX, needs="llm"),
    JobKindSpec(EMBED, needs="embedding", newest_first=True),
    JobKindSpec(SUMMARIZE, needs="llm", of_memory=False),
    JobKindSpec(SCORE_SESSION, needs="llm", of_memory=False),
    JobKindSpec(STRUCTURAL_CLASSIFY, needs="llm", of_memory=False),
)
"""Every kind of job. To add one, add a line here and a file in ``extractor/jobs/``."""

SECOND_VECTOR: Final = "second_vector"
"""Not a job: a memory has a first vector, which a better one may follow. A worker can wait for it as for a job."""
STALE_LEASE_MS: Final = 600_000
"""An older lease is an anomaly: no configuration permits one to last longer without a renewal."""


class JobState(StrEnum):
    """The stored state of a job. ``failed`` is recorded with the job but is not a state (docs/decisions.md 13)."""

    PENDING = "pending"
    LEASED = "leased"
    COMPLETED = "completed"
    DEAD = "dead"


class PoisonJobs(StrEnum):
    """Whether to include poison jobs: those whose worker exited while it held their lease.

    Such a job may have crashed the worker. It is leased only while no other poison job is.
    """

    INCLUDED = "included"
    EXCLUDED = "excluded"
    ONLY = "only"


class JobEvent(StrEnum):
    """An event of a job. A lost or failed attempt is ``RETRY`` while attempts remain, else ``GIVE_UP``.

    ``RELEASE`` does not count the attempt, because the provider was unavailable (docs/decisions.md 14). ``DROP``
    completes a job whose subject was deleted before its first lease. ``REQUEUE`` is requested by a person.
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
"""No job has to wait longer. A longer remaining delay means that the wall clock went back after the delay was set."""


def advance(state: JobState, event: JobEvent) -> JobState:
    """Return the state after ``event``. Raises ValueError if the table has no such transition."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise ValueError(f"a {state} job cannot {event}") from None


def event_after_failure(attempts: int, max_attempts: int) -> JobEvent:
    """Return the event for a job whose attempt number ``attempts`` ended without a result."""
    return JobEvent.GIVE_UP if attempts >= max_attempts else JobEvent.RETRY


def retry_delay_ms(attempts: int, share: float) -> int:
    """Return the delay before the next attempt after ``attempts`` failed ones.

    It doubles from one second up to thirty. ``share``, a random number in [0, 1), adds up to half a second of jitter,
    so that jobs that failed together do not retry together.
    """
    doubled: int = RETRY_BASE_MS << min(max(attempts, 1) - 1, 16)
    return min(doubled, RETRY_CAP_MS) + int(share * RETRY_JITTER_MS)


def release_delay_ms(releases: int, share: float) -> int:
    """Return the delay after the attempt was released for the ``releases``-th time in a row.

    It is the delay after as many failed attempts. A provider that is only briefly available is not called in a loop,
    and when a provider is back, every job is due within half a minute.
    """
    return retry_delay_ms(releases, share)
