"""One timer: it fires once, unless it is replaced or cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

from signet_actors.gateway.server.load_shedding import Deadline


class Timer:
    def __init__(self, after_s: float, act: Callable[[], None]) -> None:
        self.after_s = after_s
        self._act: Callable[[], None] | None = act

    def cancel(self) -> None:
        self._act = None

    def time_is_up(self) -> None:
        if self._act is not None:
            self._act()


class Loop:
    """A loop whose timers run when the test says so."""

    def __init__(self) -> None:
        self.timers: list[Timer] = []

    def call_later(self, delay: float, callback: Callable[..., None], *args: Any) -> Timer:
        self.timers.append(Timer(delay, lambda: callback(*args)))
        return self.timers[-1]

    def all_times_are_up(self) -> None:
        for timer in self.timers:
            timer.time_is_up()


def new() -> tuple[Deadline, Loop]:
    loop = Loop()
    return Deadline(cast("asyncio.AbstractEventLoop", loop)), loop


def test_an_armed_timer_fires_once() -> None:
    deadline, loop = new()
    running: list[bool] = []
    deadline.arm(1500, lambda: running.append(deadline.is_armed))
    assert deadline.is_armed
    assert [timer.after_s for timer in loop.timers] == [1.5]
    loop.all_times_are_up()
    assert running == [False]


def test_arming_again_replaces_the_timer() -> None:
    deadline, loop = new()
    happened: list[str] = []
    deadline.arm(1, lambda: happened.append("first"))
    deadline.arm(2, lambda: happened.append("second"))
    loop.all_times_are_up()
    assert happened == ["second"]


def test_a_cancelled_timer_never_fires_and_another_can_be_armed() -> None:
    deadline, loop = new()
    happened: list[str] = []
    deadline.disarm()
    deadline.arm(1, lambda: happened.append("never"))
    deadline.disarm()
    assert not deadline.is_armed
    deadline.arm(1, lambda: deadline.arm(1, lambda: happened.append("at last")))
    for timer in list(loop.timers):
        timer.time_is_up()
    assert deadline.is_armed
    loop.timers[-1].time_is_up()
    assert (happened, deadline.is_armed) == (["at last"], False)
