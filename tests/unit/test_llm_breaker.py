"""The circuit breaker with every sequence of events, and the ring buffer of outcomes."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from signet_actors.domain.providers import CircuitState
from signet_actors.providers.llm.breaker import BreakerPolicy, CircuitBreaker, Permit
from signet_actors.providers.llm.guarded import CallOutcome, CallOutcomes

POLICY = BreakerPolicy(failures=3, cooldown_ms=100, max_cooldown_ms=450)


def opened(breaker: CircuitBreaker, now_ms: int = 0) -> None:
    for _ in range(POLICY.failures):
        permit = breaker.admit(now_ms)
        assert permit is not None
        breaker.failed(permit, now_ms)


def test_consecutive_failures_open_the_circuit() -> None:
    breaker = CircuitBreaker(POLICY)
    for failing in (True, True, False, True, True):
        permit = breaker.admit(0)
        assert permit is not None
        if failing:
            breaker.failed(permit, 0)
        else:
            breaker.succeeded(permit)
    assert breaker.state(0) is CircuitState.CLOSED
    permit = breaker.admit(0)
    assert permit is not None
    breaker.failed(permit, 0)
    assert breaker.state(0) is CircuitState.OPEN
    assert breaker.admit(0) is None
    assert breaker.waits_ms(0) == POLICY.cooldown_ms


def test_after_the_pause_one_probe_is_sent_and_its_success_closes_the_circuit() -> None:
    breaker = CircuitBreaker(POLICY)
    opened(breaker)
    assert breaker.admit(99) is None
    assert breaker.state(100) is CircuitState.HALF_OPEN
    probe = breaker.admit(100)
    assert probe is not None
    assert probe.probe
    assert breaker.admit(100) is None, "a second call beside the probe"
    breaker.succeeded(probe)
    assert breaker.state(100) is CircuitState.CLOSED
    assert breaker.admit(100) == Permit(epoch=2, probe=False)


def test_each_failed_probe_doubles_the_pause_up_to_its_bound_and_a_success_resets_it() -> None:
    breaker = CircuitBreaker(POLICY)
    opened(breaker)
    now, pauses = 0, []
    for _ in range(5):
        pauses.append(breaker.waits_ms(now))
        now += breaker.waits_ms(now)
        probe = breaker.admit(now)
        assert probe is not None
        breaker.failed(probe, now)
    assert pauses == [100, 200, 400, 450, 450]
    now += breaker.waits_ms(now)
    probe = breaker.admit(now)
    assert probe is not None
    breaker.succeeded(probe)
    opened(breaker, now)
    assert breaker.waits_ms(now) == POLICY.cooldown_ms


def test_a_retry_time_of_the_provider_opens_the_circuit_at_once() -> None:
    breaker = CircuitBreaker(POLICY)
    permit = breaker.admit(0)
    assert permit is not None
    breaker.failed(permit, 0, retry_after_ms=7000)
    assert breaker.waits_ms(0) == 7000


def test_a_cancelled_probe_permits_the_next_one() -> None:
    breaker = CircuitBreaker(POLICY)
    opened(breaker)
    first = breaker.admit(100)
    assert first is not None
    breaker.abandoned(first)
    second = breaker.admit(100)
    assert second is not None
    assert second.probe


def test_results_of_calls_before_the_pause_are_ignored() -> None:
    breaker = CircuitBreaker(POLICY)
    slow_failure, slow_success = breaker.admit(0), breaker.admit(0)
    assert slow_failure is not None
    assert slow_success is not None
    opened(breaker)
    breaker.succeeded(slow_success)
    assert breaker.state(0) is CircuitState.OPEN
    probe = breaker.admit(100)
    assert probe is not None
    breaker.failed(slow_failure, 100)
    assert breaker.state(100) is CircuitState.HALF_OPEN
    breaker.succeeded(probe)
    assert breaker.state(100) is CircuitState.CLOSED


def test_late_failures_neither_lengthen_the_pause_nor_end_the_probe() -> None:
    breaker = CircuitBreaker(POLICY)
    slow = [breaker.admit(0) for _ in range(2 * POLICY.failures)]
    opened(breaker)
    for permit in slow[: POLICY.failures]:
        assert permit is not None
        breaker.failed(permit, 50)
    assert breaker.waits_ms(50) == 50
    probe = breaker.admit(100)
    for permit in slow[POLICY.failures :]:
        assert permit is not None
        breaker.failed(permit, 100)
    assert breaker.probing
    assert probe is not None
    breaker.succeeded(probe)
    assert breaker.state(100) is CircuitState.CLOSED


def test_a_late_success_does_not_interrupt_later_consecutive_failures() -> None:
    breaker = CircuitBreaker(POLICY)
    slow = breaker.admit(0)
    assert slow is not None
    opened(breaker)
    probe = breaker.admit(100)
    assert probe is not None
    breaker.succeeded(probe)
    for failure in range(POLICY.failures):
        if failure == POLICY.failures - 1:
            breaker.succeeded(slow)
        permit = breaker.admit(100)
        assert permit is not None
        breaker.failed(permit, 100)
    assert breaker.state(100) is CircuitState.OPEN


class BreakerMachine(RuleBasedStateMachine):
    """Any order of calls, ends and waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.breaker = CircuitBreaker(POLICY)
        self.now = 0
        self.out: list[Permit] = []

    @rule(ms=st.integers(0, 600))
    def time_passes(self, ms: int) -> None:
        self.now += ms

    @rule()
    def a_call_wants_out(self) -> None:
        state = self.breaker.state(self.now)
        probing = self.breaker.probing
        permit = self.breaker.admit(self.now)
        if state is CircuitState.CLOSED:
            assert permit is not None
            assert not permit.probe
        elif state is CircuitState.OPEN or probing:
            assert permit is None
        else:
            assert permit is not None
            assert permit.probe
        if permit is not None:
            self.out.append(permit)

    @precondition(lambda self: self.out)
    @rule(pick=st.randoms(use_true_random=False), end=st.sampled_from(["success", "failure", "abandoned", "told"]))
    def a_call_ends(self, pick: random.Random, end: str) -> None:
        permit = self.out.pop(pick.randrange(len(self.out)))
        if end == "success":
            self.breaker.succeeded(permit)
        elif end == "abandoned":
            self.breaker.abandoned(permit)
        else:
            self.breaker.failed(permit, self.now, retry_after_ms=1000 if end == "told" else None)

    @invariant()
    def at_most_one_probe_is_out(self) -> None:
        live = [permit for permit in self.out if permit.probe and permit.epoch == self.breaker.epoch]
        assert len(live) == self.breaker.probing

    @invariant()
    def no_pause_is_longer_than_its_bound(self) -> None:
        assert self.breaker.waits_ms(self.now) <= max(POLICY.max_cooldown_ms, 1000)

    @invariant()
    def it_always_recovers_when_the_provider_does(self) -> None:
        """From any state: give up what is out, wait out the pause, succeed once; then calls go out again."""
        if not self.breaker.probing:
            later = self.now + self.breaker.waits_ms(self.now)
            assert self.breaker.state(later) is not CircuitState.OPEN


TestBreakerLife = BreakerMachine.TestCase


@given(st.integers(1, 8), st.lists(st.sampled_from(list(CallOutcome)), max_size=50))
def test_the_ring_buffer_counts_exactly_its_last_entries(capacity: int, outcomes: list[CallOutcome]) -> None:
    ring = CallOutcomes(capacity)
    for outcome in outcomes:
        ring.record(outcome)
    last = outcomes[-capacity:]
    counts = ring.counts
    assert counts.total == len(last)
    assert (counts.successes, counts.failures, counts.timeouts) == tuple(
        last.count(kind) for kind in (CallOutcome.SUCCESS, CallOutcome.FAILURE, CallOutcome.TIMEOUT)
    )
    assert counts.availability_rate == (counts.successes / len(last) if last else 1.0)
