"""When a batch waits for more requests, and when it does not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from signet_actors.runtime.messaging.mailbox import LONGEST_NS, POLL_INTERVAL_NS, Linger


def after(*sizes: int, most: int = 256) -> Linger:
    linger = Linger(most)
    for size in sizes:
        linger.on_batch(size)
    return linger


def naps(linger: Linger, arrivals: list[int]) -> tuple[int, int]:
    """``(requests, nanoseconds slept)`` of a batch that holds ``arrivals[i]`` requests after ``i`` naps."""
    waited = 0
    count = arrivals[0]
    later = iter(arrivals[1:])
    while nap := linger.wait_ns(count, waited):
        waited += nap
        count = next(later, count)
    return count, waited


def test_a_single_sender_never_waits() -> None:
    linger = Linger(256)
    for _ in range(10):
        assert naps(linger, [1]) == (1, 0)
        linger.on_batch(1)


def test_a_batch_gathers_until_it_is_as_large_as_the_last_one() -> None:
    assert naps(after(1, 4), [1, 2, 4, 9]) == (4, 2 * POLL_INTERVAL_NS)


def test_a_batch_as_large_as_the_last_one_is_processed_at_once() -> None:
    assert naps(after(3, 3), [3]) == (3, 0)
    assert naps(after(3, 3), [7]) == (7, 0)


def test_after_a_burst_two_batches_linger_for_a_bounded_time() -> None:
    linger = after(40, 40)
    count, waited = naps(linger, [1])
    assert (count, waited) == (1, LONGEST_NS)
    linger.on_batch(count)
    assert naps(linger, [1]) == (1, LONGEST_NS)
    linger.on_batch(1)
    assert naps(linger, [1]) == (1, 0)


def test_the_linger_time_grows_with_the_number_of_senders() -> None:
    _, two = naps(after(2, 2), [1])
    _, twenty = naps(after(20, 20), [1])
    assert 0 < two < twenty


def test_a_batch_never_waits_for_more_than_its_limit() -> None:
    assert naps(after(500, 500, most=64), [64]) == (64, 0)


@given(st.lists(st.integers(1, 1000), max_size=6), st.lists(st.integers(1, 1000), min_size=1, max_size=80))
def test_no_batch_lingers_longer_than_the_limit(sizes: list[int], arrivals: list[int]) -> None:
    _, waited = naps(after(*sizes), sorted(arrivals))
    assert waited <= LONGEST_NS
