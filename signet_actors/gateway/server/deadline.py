"""A timer with at most one pending callback."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Deadline:
    """Call a function when a time has passed, unless disarmed or armed anew before."""

    __slots__ = ("_loop", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_armed(self) -> bool:
        """True while a callback is pending."""
        return self._timer is not None

    def arm(self, after_ms: float, callback: Callable[[], None]) -> None:
        """Call ``callback`` after ``after_ms``; cancel any callback that was armed before."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(after_ms / 1000, self._expire, callback)

    def disarm(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self, callback: Callable[[], None]) -> None:
        self._timer = None
        callback()
