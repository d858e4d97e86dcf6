"""Long work of the gateway makes way for searches."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from signet_actors.gateway.limits import PAUSE_PER_WORK, SearchesFirst

OVERSLEPT_S = 0.004


class Seconds:
    """A clock on which work and pauses take as long as the test says; a pause is longer than asked for."""

    def __init__(self) -> None:
        self.now = 100.0
        self.paused = 0.0
        self.pauses = 0

    def work(self, seconds: float) -> None:
        self.now += seconds

    def sleep(self, seconds: float) -> None:
        assert seconds <= OVERSLEPT_S
        self.now += OVERSLEPT_S
        self.paused += OVERSLEPT_S
        self.pauses += 1


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


def first(seconds: Seconds, searching: Callable[[], bool]) -> SearchesFirst:
    return SearchesFirst(searching, clock=lambda: seconds.now, sleep=seconds.sleep)


def test_without_searches_nothing_waits(seconds: Seconds) -> None:
    searches = first(seconds, lambda: False)
    seconds.work(0.05)
    searches.make_way()
    assert seconds.pauses == 0


def test_work_goes_on_when_the_search_is_answered(seconds: Seconds) -> None:
    searches = first(seconds, lambda: seconds.pauses < 3)
    seconds.work(0.05)
    searches.make_way()
    assert seconds.pauses == 3


def test_under_constant_searches_a_third_of_the_time_is_work(seconds: Seconds) -> None:
    searches = first(seconds, lambda: True)
    for _ in range(5):
        seconds.work(0.02)
        searches.make_way()
    assert PAUSE_PER_WORK * 0.1 <= seconds.paused <= PAUSE_PER_WORK * 0.1 + 5 * OVERSLEPT_S
