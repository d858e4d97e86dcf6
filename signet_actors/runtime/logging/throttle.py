"""Rate-limit warnings about received messages: at most one line per second, with the number of those left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from signet_actors.runtime.clock import Clock

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

INTERVAL_NS = 1_000_000_000


class LogThrottle:
    """A rate limit for one source of warnings."""

    def __init__(self, log: FilteringBoundLogger, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._due_ns = 0
        self._left_out = 0

    def warning(self, event: str, **values: Any) -> None:
        """Log a warning, or count it if one was logged less than a second ago."""
        now_ns = self._clock.monotonic_ns()
        if now_ns < self._due_ns:
            self._left_out += 1
            return
        not_logged, self._left_out = self._left_out, 0
        self._due_ns = now_ns + INTERVAL_NS
        self._log.warning(event, **values, not_logged=not_logged)
