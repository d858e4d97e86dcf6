"""The states of a job: each pair of state and event is declared or refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.jobs import (
    JOB_KINDS,
    MAX_DELAY_MS,
    RETRY_BASE_MS,
    RETRY_CAP_MS,
    RETRY_JITTER_MS,
    TRANSITIONS,
    JobEvent,
    JobState,
    advance,
    event_after_failure,
    release_delay_ms,
    retry_delay_ms,
)


@pytest.mark.parametrize(("state", "event"), list(itertools.product(JobState, JobEvent)))
def test_each_state_and_event_is_a_transition_or_refused(state: JobState, event: JobEvent) -> None:
    if (state, event) in TRANSITIONS:
        assert advance(state, event) in JobState
    else:
        with pytest.raises(ValueError, match=f"a {state} job cannot {event}"):
            advance(state, event)


def test_only_a_persons_requeue_leaves_a_final_state() -> None:
    ways = {(state, event) for state, event in TRANSITIONS if state in {JobState.COMPLETED, JobState.DEAD}}
    assert ways == {(JobState.DEAD, JobEvent.REQUEUE)}


def test_a_job_is_ended_by_its_lease_holder_or_without_a_lease() -> None:
    ends = {(state, event) for (state, event), after in TRANSITIONS.items() if after is JobState.COMPLETED}
    assert ends == {(JobState.LEASED, JobEvent.COMPLETE), (JobState.PENDING, JobEvent.DROP)}


def test_each_kind_of_job_is_registered_once_with_its_provider() -> None:
    assert len({kind.name for kind in JOB_KINDS}) == len(JOB_KINDS)
    assert {kind.needs for kind in JOB_KINDS} <= {"llm", "embedding"}


@given(st.integers(1, 1_000), st.floats(0, 1, exclude_max=True))
def test_no_delay_is_as_long_as_the_limit_for_clock_changes(count: int, share: float) -> None:
    assert max(retry_delay_ms(count, share), release_delay_ms(count, share)) < MAX_DELAY_MS


def test_a_lost_last_attempt_makes_a_job_dead() -> None:
    assert event_after_failure(1, 3) is JobEvent.RETRY
    assert event_after_failure(3, 3) is JobEvent.GIVE_UP
    assert event_after_failure(4, 3) is JobEvent.GIVE_UP


@given(st.integers(-5, 1_000), st.floats(0, 1, exclude_max=True))
def test_a_retry_waits_between_the_base_and_the_cap(attempts: int, share: float) -> None:
    assert RETRY_BASE_MS <= retry_delay_ms(attempts, share) <= RETRY_CAP_MS + RETRY_JITTER_MS
    assert retry_delay_ms(attempts, share) <= retry_delay_ms(attempts + 1, share)
