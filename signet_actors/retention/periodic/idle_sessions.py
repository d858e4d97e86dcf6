"""End sessions that fell silent without a report of their end, so that a crash or a closed terminal loses no facts.

Source: docs/guides/transcripts.md "Summaries"; docs/decisions.md 65.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from signet_actors.config.schema import Config
from signet_actors.domain.timestamps import iso
from signet_actors.protocol.message import Failure
from signet_actors.protocol.session_summaries import EndIdleSessions
from signet_actors.retention.writer_ref import ASK_TIMEOUT_MS, WriterRef
from signet_actors.runtime.clock import Clock

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

INTERVAL_MS: Final = 30_000
FIRST_AFTER_MS: Final = 15_000
PAUSE_MS: Final = 100
"""The wait between two steps, so that callers' writes are not queued behind them."""
_MINUTE_MS: Final = 60_000


class IdleSessions:
    """Ask the writer every half minute; what a failed step leaves, the next one does."""

    def __init__(self, writer: WriterRef, clock: Clock, log: FilteringBoundLogger, config: Config) -> None:
        self._writer = writer
        self._clock = clock
        self._log = log
        self._idle_ms = config.sessions.idle_minutes * _MINUTE_MS
        self.due_ns = clock.monotonic_ns() + FIRST_AFTER_MS * 1_000_000

    def step(self) -> None:
        """End some of the sessions that are silent for too long."""
        request = EndIdleSessions(iso(self._clock.wall_ms() - self._idle_ms))
        done = self._writer.ask(request, timeout_ms=ASK_TIMEOUT_MS)
        wait_ms = INTERVAL_MS
        if not isinstance(done, Failure):
            wait_ms = PAUSE_MS if done.more else INTERVAL_MS
            for session in done.sessions:
                self._log.info("session_ended", session=session.session_key, reason="idle", job=session.job_id)
        self.due_ns = self._clock.monotonic_ns() + wait_ms * 1_000_000

    def reload(self, config: Config) -> None:
        self._idle_ms = config.sessions.idle_minutes * _MINUTE_MS
