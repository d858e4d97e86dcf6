"""The restart policy with generated sequences of crashes."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.config.schema import SupervisionConfig
from signet_actors.runtime.supervision.restart_policy import (
    CrashHistory,
    GiveUp,
    Restart,
    RestartPolicy,
    backoff_ms,
    decide_restart,
)

POLICIES = st.builds(
    RestartPolicy,
    restarts=st.integers(0, 20),
    window_ms=st.integers(1_000, 600_000),
    backoff_min_ms=st.integers(1, 1_000),
    backoff_max_ms=st.integers(1_000, 60_000),
    settled_ms=st.integers(0, 10_000),
)
LIVES = st.lists(st.one_of(st.none(), st.integers(0, 20_000)), max_size=60)
"""How long each incarnation ran after Ready, None = it never became ready."""


def replay(
    policy: RestartPolicy, uptimes: list[int | None], seed: int
) -> list[tuple[int, int | None, Restart | GiveUp]]:
    """Return (time of the crash, time after Ready, decision) of each incarnation until the child is failed."""
    rng = random.Random(seed)
    now, history, decisions = 0, CrashHistory(), []
    for uptime in uptimes:
        ready_at = None if uptime is None else now
        now += uptime or 0
        decision = decide_restart(policy, history, now_ms=now, ready_at_ms=ready_at, rng=rng)
        decisions.append((now, uptime, decision))
        if isinstance(decision, GiveUp):
            break
        history = decision.history
        now += decision.delay_ms
    return decisions


@given(POLICIES, LIVES, st.integers())
def test_never_more_than_the_budget_of_counted_restarts_within_a_window(
    policy: RestartPolicy, uptimes: list[int | None], seed: int
) -> None:
    counted = [
        at
        for at, uptime, decision in replay(policy, uptimes, seed)
        if (uptime is None or uptime < policy.settled_ms) and isinstance(decision, Restart)
    ]
    for first in counted:
        assert sum(first <= at < first + policy.window_ms for at in counted) <= policy.restarts


@given(POLICIES, LIVES, st.integers())
def test_a_child_that_had_served_is_restarted_at_once_and_its_crashes_are_forgotten(
    policy: RestartPolicy, uptimes: list[int | None], seed: int
) -> None:
    for _, uptime, decision in replay(policy, uptimes, seed):
        if uptime is not None and uptime >= policy.settled_ms:
            assert isinstance(decision, Restart)
            assert decision.delay_ms == 0
            assert decision.history.in_a_row == 0


@given(POLICIES, LIVES, st.integers())
def test_after_an_early_crash_the_delay_is_positive_and_bounded(
    policy: RestartPolicy, uptimes: list[int | None], seed: int
) -> None:
    for _, uptime, decision in replay(policy, uptimes, seed):
        if (uptime is None or uptime < policy.settled_ms) and isinstance(decision, Restart):
            assert policy.backoff_min_ms <= decision.delay_ms <= policy.backoff_max_ms


@given(POLICIES, LIVES, st.integers())
def test_the_stored_crash_history_is_bounded(policy: RestartPolicy, uptimes: list[int | None], seed: int) -> None:
    for _, _, decision in replay(policy, uptimes, seed):
        assert len(decision.history.crashes_ms) <= policy.restarts + 1


@given(POLICIES, LIVES, st.integers())
def test_the_same_seed_gives_the_same_delays(policy: RestartPolicy, uptimes: list[int | None], seed: int) -> None:
    assert replay(policy, uptimes, seed) == replay(policy, uptimes, seed)


@given(POLICIES, st.integers(1, 10_000), st.integers())
def test_the_wait_without_its_jitter_never_shrinks(policy: RestartPolicy, in_a_row: int, seed: int) -> None:
    now = backoff_ms(policy, in_a_row, random.Random(seed))
    later = backoff_ms(policy, in_a_row + 1, random.Random(seed))
    assert now <= later


def test_a_crash_loop_of_the_writer_ends_after_five_restarts() -> None:
    policy = RestartPolicy(restarts=5, window_ms=60_000, backoff_min_ms=100, backoff_max_ms=30_000, settled_ms=2_000)
    decisions = replay(policy, [None] * 20, seed=1)
    assert len(decisions) == 6
    assert isinstance(decisions[-1][2], GiveUp)


def test_a_child_is_started_at_most_fifteen_times_a_minute() -> None:
    policy = RestartPolicy(restarts=10, window_ms=60_000, backoff_min_ms=100, backoff_max_ms=30_000, settled_ms=2_000)
    for uptime in (None, 100, 5_000):
        decisions = replay(policy, [uptime] * 100, seed=2)
        crashes = [at for at, _, _ in decisions]
        assert max(sum(first <= at < first + 60_000 for at in crashes) for first in crashes) <= 15


@pytest.mark.parametrize("role", ["writer", "searcher", "gateway"])
@pytest.mark.parametrize("start_ms", [0, 2_000, 15_000])
def test_a_core_child_that_crashes_at_each_start_exceeds_the_default_budget(role: str, start_ms: int) -> None:
    shipped = SupervisionConfig()
    budget = getattr(shipped.budgets, role)
    start_ms = min(start_ms, 5_000) if role == "writer" else start_ms
    policy = RestartPolicy(
        budget.restarts, budget.window_ms, shipped.backoff_min_ms, shipped.backoff_max_ms, shipped.settled_ms
    )
    rng, now, history = random.Random(1), 0, CrashHistory()
    for _ in range(budget.restarts):
        now += start_ms
        decision = decide_restart(policy, history, now_ms=now, ready_at_ms=None, rng=rng)
        assert isinstance(decision, Restart)
        history, now = decision.history, now + decision.delay_ms
    assert isinstance(decide_restart(policy, history, now_ms=now + start_ms, ready_at_ms=None, rng=rng), GiveUp)
