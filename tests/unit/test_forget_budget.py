"""The number of memories that may be forgotten without a confirm token, and its time window."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.forget_budget import (
    WINDOW_MS,
    deletions_text,
    needs_confirmation,
    parse_deletions,
    recently_deleted,
    with_deletion,
)

NOW = 1_800_000_000_000


def test_twenty_five_in_five_minutes_need_no_confirmation_and_one_more_does() -> None:
    assert not needs_confirmation(25, 0)
    assert needs_confirmation(26, 0)
    assert not needs_confirmation(5, 20)
    assert needs_confirmation(1, 25)
    assert not needs_confirmation(0, 1000)


@given(st.lists(st.tuples(st.integers(0, 2 * WINDOW_MS), st.integers(1, 200)), max_size=200))
def test_every_deletion_of_the_window_is_counted_and_the_list_stays_short(steps: list[tuple[int, int]]) -> None:
    kept: list[tuple[int, int]] = []
    steps.sort()
    for at_ms, count in steps:
        kept = parse_deletions(deletions_text(with_deletion(kept, NOW + at_ms, count)))
        assert len(kept) <= 70
    now_ms = NOW + (steps[-1][0] if steps else 0)
    within = sum(count for at_ms, count in steps if NOW + at_ms > now_ms - WINDOW_MS)
    longer = sum(count for at_ms, count in steps if NOW + at_ms > now_ms - WINDOW_MS - 20_000)
    assert within <= recently_deleted(kept, now_ms) <= longer


def test_a_deletion_with_a_future_time_is_dropped() -> None:
    ahead = with_deletion([], NOW + 100 * WINDOW_MS, 26)
    assert recently_deleted(ahead, NOW) == 0
    assert with_deletion(ahead, NOW, 1) == [(NOW, 1)]
