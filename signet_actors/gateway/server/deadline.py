"""A timer of which at most one runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Deadline:
    """Something happens when time is up, unless it is called off or another deadline takes its place."""

    __slots__ = ("_loop", "_timer")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_armed(self) -> bool:
        """Whether time is not up, and nobody called it off."""
        return self._timer is not None

    def arm(self, after_ms: float, callback: Callable[[], None]) -> None:
        """``callback`` happens after ``after_ms``, and whatever was armed before does not."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(after_ms / 1000, self._expire, callback)

    def disarm(self) -> None:
        """Nothing happens."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self, callback: Callable[[], None]) -> None:
        self._timer = None
        callback()
