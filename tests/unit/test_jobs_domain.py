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
def test_each_state_and_event_leads_somewhere_or_is_refused(state: JobState, event: JobEvent) -> None:
    if (state, event) in TRANSITIONS:
        assert advance(state, event) in JobState
    else:
        with pytest.raises(ValueError, match=f"a {state} job cannot {event}"):
            advance(state, event)


def test_nothing_leads_out_of_an_end_but_a_persons_word() -> None:
    ways = {(state, event) for state, event in TRANSITIONS if state in {JobState.COMPLETED, JobState.DEAD}}
    assert ways == {(JobState.DEAD, JobEvent.REQUEUE)}


def test_only_a_worker_that_holds_the_lease_or_nobody_at_all_can_end_a_job() -> None:
    ends = {(state, event) for (state, event), after in TRANSITIONS.items() if after is JobState.COMPLETED}
    assert ends == {(JobState.LEASED, JobEvent.COMPLETE), (JobState.PENDING, JobEvent.DROP)}


def test_no_kind_of_job_is_registered_twice_and_each_says_what_it_needs() -> None:
    assert len({kind.name for kind in JOB_KINDS}) == len(JOB_KINDS)
    assert {kind.needs for kind in JOB_KINDS} <= {"llm", "embedding"}


@given(st.integers(1, 1_000), st.floats(0, 1, exclude_max=True))
def test_no_wait_is_so_long_that_it_is_taken_for_a_clock_that_went_back(count: int, share: float) -> None:
    assert max(retry_delay_ms(count, share), release_delay_ms(count, share)) < MAX_DELAY_MS


def test_the_last_attempt_that_is_lost_is_the_end() -> None:
    assert event_after_failure(1, 3) is JobEvent.RETRY
    assert event_after_failure(3, 3) is JobEvent.GIVE_UP
    assert event_after_failure(4, 3) is JobEvent.GIVE_UP


@given(st.integers(-5, 1_000), st.floats(0, 1, exclude_max=True))
def test_a_retry_waits_between_the_base_and_the_cap(attempts: int, share: float) -> None:
    assert RETRY_BASE_MS <= retry_delay_ms(attempts, share) <= RETRY_CAP_MS + RETRY_JITTER_MS
    assert retry_delay_ms(attempts, share) <= retry_delay_ms(attempts + 1, share)
