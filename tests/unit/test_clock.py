"""Heartbeat times that all processes share without communication."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from signet_actors.runtime.clock import next_heartbeat_ns

EVERY_NS = 500_000_000
moments = st.integers(min_value=0, max_value=10**18)


@given(moments, st.integers(min_value=1_000_000, max_value=60_000_000_000))
def test_the_next_heartbeat_is_at_the_same_time_for_all_processes(now_ns: int, every_ns: int) -> None:
    beat_ns = next_heartbeat_ns(now_ns, every_ns)
    assert beat_ns % every_ns == 0
    assert 0 < beat_ns - now_ns <= every_ns + every_ns // 50


def test_a_timer_that_fired_early_is_not_set_for_the_same_heartbeat_again() -> None:
    assert next_heartbeat_ns(EVERY_NS - 1_000_000, EVERY_NS) == 2 * EVERY_NS
    assert next_heartbeat_ns(EVERY_NS, EVERY_NS) == 2 * EVERY_NS
    assert next_heartbeat_ns(EVERY_NS + 1_000_000, EVERY_NS) == 2 * EVERY_NS
