"""The order of a sweep, its cutoffs, and when its clock is trusted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.config.pipeline_schema import ContinuityConfig, MemoryConfig, PipelineV2Config
from signet_actors.config.schema import Config
from signet_actors.domain.retention import (
    CONFIRM_AFTER_MS,
    HOUR_MS,
    MAX_BACKWARD_JUMP_MS,
    MAX_FORWARD_JUMP_MS,
    STEPS,
    ClockVerdict,
    check_clock,
    cutoff_ms,
)
from signet_actors.retention.periodic.purge import window_ms

NOW = 1_771_668_000_000
DAY = 24 * HOUR_MS
times = st.integers(0, 4 * NOW)


def test_the_steps_have_the_mandatory_order() -> None:
    assert [step.name for step in STEPS] == [
        "graph_links",
        "embeddings",
        "tombstones",
        "pipeline_runs",
        "history",
        "completed_jobs",
        "dead_jobs",
        "provider_usage",
        "sessions",
        "session_memories",
        "transcripts",
        "session_checkpoints",
        "audit_log",
        "telemetry_events",
    ]


def test_every_step_has_a_configured_window_and_follows_its_dependencies() -> None:
    seen: set[str] = set()
    for step in STEPS:
        assert window_ms(Config(), step) >= HOUR_MS
        assert set(step.after) <= seen
        seen.add(step.name)


def test_session_checkpoints_are_kept_for_the_configured_days() -> None:
    continuity = ContinuityConfig(retention_days=3)
    config = Config(memory=MemoryConfig(pipeline_v2=PipelineV2Config(continuity=continuity)))
    (step,) = [step for step in STEPS if step.name == "session_checkpoints"]
    assert (window_ms(Config(), step), window_ms(config, step)) == (7 * DAY, 3 * DAY)


def test_a_cutoff_is_the_window_before_now_and_never_before_the_epoch() -> None:
    assert cutoff_ms(NOW, 30 * DAY) == NOW - 30 * DAY
    assert cutoff_ms(5, 30 * DAY) == 0
    assert cutoff_ms(NOW, -5) == NOW


@pytest.mark.parametrize("now", [NOW, NOW + 11 * 365 * DAY, NOW - 11 * 365 * DAY, 0])
def test_the_first_sweep_of_all_only_notes_the_clock(now: int) -> None:
    first = check_clock(now, None)
    assert (first.verdict, first.may_purge, first.suspected_since_ms) == (ClockVerdict.FIRST, False, now)
    assert first.recheck_in_ms == CONFIRM_AFTER_MS
    assert first.reason == "no sweep has seen this clock yet; nothing is purged until a sweep in 60 minutes confirms it"
    assert not check_clock(now + 60_000, None, suspected_since_ms=now).may_purge
    assert not check_clock(now + 900 * DAY, None, suspected_since_ms=now).may_purge, "it has jumped since"
    assert check_clock(now + CONFIRM_AFTER_MS, None, suspected_since_ms=now).verdict is ClockVerdict.CONFIRMED
    assert check_clock(now, None, on_demand=True).verdict is ClockVerdict.CONFIRMED
    assert not check_clock(now, now - 900 * DAY, on_demand=True).may_purge


def test_an_ordinary_sweep_may_purge() -> None:
    assert check_clock(NOW + 6 * HOUR_MS, NOW).verdict is ClockVerdict.STEADY
    assert check_clock(NOW + MAX_FORWARD_JUMP_MS, NOW).verdict is ClockVerdict.STEADY
    assert check_clock(NOW - MAX_BACKWARD_JUMP_MS, NOW).verdict is ClockVerdict.STEADY


def test_a_clock_jump_of_more_than_48_hours_is_suspected() -> None:
    decision = check_clock(NOW + 3653 * DAY, NOW)
    assert decision.verdict is ClockVerdict.JUMPED_FORWARD
    assert not decision.may_purge
    assert decision.suspected_since_ms == NOW + 3653 * DAY
    assert decision.recheck_in_ms == CONFIRM_AFTER_MS
    assert decision.reason == (
        "the clock is 3653 days ahead of the last sweep; nothing is purged until a sweep in 60 minutes confirms it"
    )


def test_elapsed_monotonic_time_excuses_a_long_interval() -> None:
    assert not check_clock(NOW + 7 * DAY, NOW).may_purge
    assert check_clock(NOW + 7 * DAY, NOW, elapsed_ms=7 * DAY).verdict is ClockVerdict.STEADY
    assert not check_clock(NOW + 10 * DAY, NOW, elapsed_ms=7 * DAY).may_purge


def test_a_clock_jump_is_confirmed_by_a_second_sweep_an_hour_later() -> None:
    jumped = NOW + 30 * DAY
    early = check_clock(jumped + 60_000, NOW, suspected_since_ms=jumped)
    assert early.verdict is ClockVerdict.UNCONFIRMED
    assert early.suspected_since_ms == jumped
    assert early.recheck_in_ms == CONFIRM_AFTER_MS - 60_000
    assert check_clock(jumped + CONFIRM_AFTER_MS, NOW, suspected_since_ms=jumped).verdict is ClockVerdict.CONFIRMED


def test_a_second_clock_jump_restarts_the_suspicion() -> None:
    decision = check_clock(NOW + 900 * DAY, NOW, suspected_since_ms=NOW + 30 * DAY)
    assert decision.verdict is ClockVerdict.JUMPED_FORWARD
    assert decision.suspected_since_ms == NOW + 900 * DAY


def test_a_clock_that_returns_to_the_mark_is_trusted_at_once() -> None:
    decision = check_clock(NOW + HOUR_MS, NOW, suspected_since_ms=NOW + 3653 * DAY)
    assert decision.verdict is ClockVerdict.STEADY
    assert decision.suspected_since_ms is None


def test_a_clock_that_went_back_is_suspected_for_an_hour() -> None:
    back = NOW - 3653 * DAY
    decision = check_clock(back, NOW)
    assert decision.verdict is ClockVerdict.JUMPED_BACK
    assert "went back to 3653 days before" in decision.reason
    assert not check_clock(back + 1, NOW, suspected_since_ms=back).may_purge
    assert check_clock(back + CONFIRM_AFTER_MS, NOW, suspected_since_ms=back).may_purge


def test_an_operators_confirmation_is_final() -> None:
    assert check_clock(NOW + 3653 * DAY, NOW, operator_confirmed=True).verdict is ClockVerdict.CONFIRMED


@given(times, times, st.none() | times, st.integers(0, 30 * DAY))
def test_one_sweep_alone_never_confirms_a_wrong_clock(now: int, mark: int, since: int | None, elapsed: int) -> None:
    decision = check_clock(now, mark, suspected_since_ms=since, elapsed_ms=elapsed)
    assert decision.may_purge == (decision.reason == "") == (decision.suspected_since_ms is None)
    off = now - mark > MAX_FORWARD_JUMP_MS + elapsed or mark - now > MAX_BACKWARD_JUMP_MS
    if decision.may_purge and off:
        assert since is not None
        assert CONFIRM_AFTER_MS <= now - since <= MAX_FORWARD_JUMP_MS + elapsed
    if not decision.may_purge:
        assert off
        assert 0 < decision.recheck_in_ms <= CONFIRM_AFTER_MS


@pytest.mark.parametrize("word", ["minutes", "hours", "days"])
def test_reasons_have_readable_time_spans(word: str) -> None:
    behind = {"minutes": 10 * 60_000, "hours": 5 * HOUR_MS, "days": 4 * DAY}[word]
    assert f"{word} before the last sweep" in check_clock(NOW - behind, NOW).reason
