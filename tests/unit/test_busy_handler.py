"""How long a command may wait for a lock of another program, counted from when it was sent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from signet_actors.config.schema import WriterConfig
from signet_actors.writer.group_commit import lock_wait_until_ns

_MS = 1_000_000


@given(st.integers(0, 10**15), st.integers(0, 60_000), st.integers(1_000, 60_000))
def test_the_wait_for_a_lock_ends_at_the_budget_or_the_callers_deadline(
    asked_ns: int, busy_ms: int, request_ms: int
) -> None:
    limits = WriterConfig(busy_timeout_ms=busy_ms, request_timeout_ms=request_ms)
    until_ns = lock_wait_until_ns(asked_ns + request_ms * _MS, limits)
    assert until_ns <= asked_ns + busy_ms * _MS
    assert until_ns < asked_ns + request_ms * _MS


def test_the_default_wait_is_the_busy_timeout() -> None:
    limits = WriterConfig()
    assert lock_wait_until_ns(limits.request_timeout_ms * _MS, limits) == limits.busy_timeout_ms * _MS
