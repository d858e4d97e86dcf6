"""The outcomes of the last requests of one kind. Health uses them: a process that is up may still answer nothing."""

from __future__ import annotations

from typing import Final

from signet_actors.runtime.clock import Clock

IN_A_ROW: Final = 3
"""So many failures without a success between them are a problem; a single slow query is not."""
WINDOW_NS: Final = 10_000_000_000
"""Older failures do not count."""


class Outcomes:
    """Counts consecutive failures; requests refused as invalid count neither as success nor as failure."""

    def __init__(self, clock: Clock, kind: str) -> None:
        self._clock = clock
        self._kind = kind
        self._in_a_row = 0
        self._failed_ns = 0
        self._why = ""

    def succeeded(self) -> None:
        """Record a request that was carried out."""
        self._in_a_row = 0

    def failed(self, why: str) -> None:
        """Record a request that was not answered, or whose reply was that nothing could be done."""
        self._in_a_row += 1
        self._failed_ns = self._clock.monotonic_ns()
        self._why = why

    def problem(self) -> str | None:
        """Return a description of the recent failures, None if there is no problem."""
        if self._in_a_row < IN_A_ROW or self._clock.monotonic_ns() - self._failed_ns > WINDOW_NS:
            return None
        return f"the last {self._in_a_row} {self._kind} failed ({self._why})"
