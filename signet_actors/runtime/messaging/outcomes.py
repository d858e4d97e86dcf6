"""How the last asks of one kind ended, from which health follows: processes that look alive may answer nothing."""

from __future__ import annotations

from typing import Final

from signet_actors.runtime.clock import Clock

IN_A_ROW: Final = 3
"""One slow query or one late batch is no news; so many without a success between them are."""
WINDOW_NS: Final = 10_000_000_000
"""What happened longer ago says nothing about now."""


class Outcomes:
    """``succeeded`` and ``failed`` are called with each ask that has ended; refusals for a bad request are neither."""

    def __init__(self, clock: Clock, kind: str) -> None:
        self._clock = clock
        self._kind = kind
        self._in_a_row = 0
        self._failed_ns = 0
        self._why = ""

    def succeeded(self) -> None:
        """Note an ask that did what it was asked for."""
        self._in_a_row = 0

    def failed(self, why: str) -> None:
        """Note an ask that was not answered, or whose answer was that nothing could be done."""
        self._in_a_row += 1
        self._failed_ns = self._clock.monotonic_ns()
        self._why = why

    def problem(self) -> str | None:
        """Return what is wrong with the latest asks, None where nothing is."""
        if self._in_a_row < IN_A_ROW or self._clock.monotonic_ns() - self._failed_ns > WINDOW_NS:
            return None
        return f"the last {self._in_a_row} {self._kind} failed ({self._why})"
