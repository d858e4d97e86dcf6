"""Virtual time: one thread, one heap of events, one random generator. A seed determines the whole run."""

from __future__ import annotations

import hashlib
import heapq
import itertools
import random
from collections.abc import Callable, Generator
from typing import Any

NS = 1_000_000_000
BEGIN_WALL_MS = 1_767_225_600_000  # 2026-01-01T00:00:00Z


class Timer:
    """A scheduled event that can be cancelled. Has the interface of asyncio's handle."""

    __slots__ = ("arguments", "call", "due_ns")

    def __init__(self, due_ns: int, call: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        self.due_ns = due_ns
        self.call = call
        self.arguments = arguments

    def cancel(self) -> None:
        self.call = _nothing
        self.arguments = ()


def _nothing() -> None:
    """The callback of a cancelled event."""


class Promise:
    """The part of an asyncio future that requests need; the waiting script continues in a later event."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: list[Callable[[Promise], None]] = []
        self._outcome: tuple[Any, BaseException | None] | None = None

    def done(self) -> bool:
        return self._outcome is not None

    def set_result(self, value: Any) -> None:
        self._settle(value, None)

    def set_exception(self, error: BaseException) -> None:
        self._settle(None, error)

    def result(self) -> Any:
        assert self._outcome is not None
        value, error = self._outcome
        if error is not None:
            raise error
        return value

    def then(self, call: Callable[[Promise], None]) -> None:
        if self.done():
            self._world.call_later(0, call, self)
        else:
            self._waiting.append(call)

    def _settle(self, value: Any, error: BaseException | None) -> None:
        assert self._outcome is None, "two outcomes of one ask"
        self._outcome = value, error
        for call in self._waiting:
            self._world.call_later(0, call, self)


Script = Generator[Promise | float, Any, None]
"""What a client does: it yields an ask to wait for, or seconds to let pass."""


class World:
    """The clock and the event queue. Implements ``Clock`` and the part of an asyncio loop that requests use."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.now_ns = NS
        self._wall_skew_ms = 0
        self._events: list[tuple[int, int, Timer]] = []
        self._numbers = itertools.count()
        self._trace = hashlib.sha256()
        self.running_scripts = 0

    # the clock

    def monotonic_ns(self) -> int:
        return self.now_ns

    def wall_ms(self) -> int:
        return BEGIN_WALL_MS + self.now_ns // 1_000_000 + self._wall_skew_ms

    def jump(self, by_ms: int) -> None:
        """Change the wall clock; monotonic time stays."""
        self._wall_skew_ms += by_ms
        self.note("jump", by_ms)

    # the loop

    def call_later(self, delay_s: float, call: Callable[..., None], *arguments: Any) -> Timer:
        timer = Timer(self.now_ns + int(delay_s * NS), call, arguments)
        heapq.heappush(self._events, (timer.due_ns, next(self._numbers), timer))
        return timer

    def create_future(self) -> Promise:
        return Promise(self)

    def run_until(self, end_ns: int, enough: Callable[[], bool] = lambda: False) -> None:
        """Run events until that time, or until ``enough`` returns True."""
        events = self._events
        while events and events[0][0] <= end_ns:
            if enough():
                return
            due_ns, _, timer = heapq.heappop(events)
            self.now_ns = max(self.now_ns, due_ns)
            timer.call(*timer.arguments)
        self.now_ns = max(self.now_ns, end_ns)

    # scripts and the trace

    def play(self, script: Script) -> None:
        """Run ``script`` from now on, concurrently with all others."""
        self.running_scripts += 1
        self.call_later(0, self._step, script, script.__next__)

    def note(self, *facts: object) -> None:
        """Add an event to the trace of the run."""
        self._trace.update(repr((self.now_ns, *facts)).encode())

    @property
    def trace(self) -> str:
        """Return a digest of the trace; it is equal for two runs of one seed."""
        return self._trace.hexdigest()[:16]

    def _step(self, script: Script, advance: Callable[[], Promise | float]) -> None:
        try:
            wanted = advance()
        except StopIteration:
            self.running_scripts -= 1
            return
        if isinstance(wanted, Promise):
            wanted.then(lambda promise: self._step(script, lambda: _resume(script, promise)))
        else:
            self.call_later(wanted, self._step, script, script.__next__)


def _resume(script: Script, promise: Promise) -> Promise | float:
    try:
        value = promise.result()
    except BaseException as error:  # noqa: BLE001 - passed to the waiting script
        return script.throw(error)
    return script.send(value)
