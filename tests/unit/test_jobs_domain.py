"""The states of a job: each pair of state and event is declared or refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.jobs import (
    RETRY_BASE_MS,
    RETRY_CAP_MS,
    RETRY_JITTER_MS,
    TRANSITIONS,
    JobEvent,
    JobState,
    advance,
    lost_attempt,
    retry_delay_ms,
)


@pytest.mark.parametrize(("state", "event"), list(itertools.product(JobState, JobEvent)))
def test_each_state_and_event_leads_somewhere_or_is_refused(state: JobState, event: JobEvent) -> None:
    if (state, event) in TRANSITIONS:
        assert advance(state, event) in JobState
    else:
        with pytest.raises(ValueError, match=f"a {state} job cannot {event}"):
            advance(state, event)


def test_nothing_leads_out_of_an_end() -> None:
    assert not {state for state, _ in TRANSITIONS} & {JobState.COMPLETED, JobState.DEAD}


def test_the_last_attempt_that_is_lost_is_the_end() -> None:
    assert lost_attempt(1, 3) is JobEvent.RETRY
    assert lost_attempt(3, 3) is JobEvent.GIVE_UP
    assert lost_attempt(4, 3) is JobEvent.GIVE_UP


@given(st.integers(-5, 1_000), st.floats(0, 1, exclude_max=True))
def test_a_retry_waits_between_the_base_and_the_cap(attempts: int, share: float) -> None:
    assert RETRY_BASE_MS <= retry_delay_ms(attempts, share) <= RETRY_CAP_MS + RETRY_JITTER_MS
    assert retry_delay_ms(attempts, share) <= retry_delay_ms(attempts + 1, share)
