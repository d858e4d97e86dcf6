"""Return jobs with expired leases to the queue, or declare them dead, within a minute.

Source: memory-system.txt "Lease Mechanism"; docs/decisions.md 11.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signet_actors.protocol.leases import LeasesReaped, ReapLeases
from signet_actors.protocol.message import Failure
from signet_actors.retention.writer_ref import ASK_TIMEOUT_MS, WriterRef
from signet_actors.runtime.clock import Clock

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

INTERVAL_MS = 60_000
FIRST_AFTER_MS = 5_000
"""Leases that expired while the daemon was down need not wait a whole interval."""


class LeaseReaper:
    """Ask the writer once a minute to reap leases; after a failure, retry a minute later."""

    def __init__(self, writer: WriterRef, clock: Clock, log: FilteringBoundLogger) -> None:
        self._writer = writer
        self._clock = clock
        self._log = log
        self.requeued = 0
        self.dead = 0
        self.due_ns = clock.monotonic_ns() + FIRST_AFTER_MS * 1_000_000

    def step(self) -> LeasesReaped | Failure:
        """Reap one bounded batch of expired leases; a full batch is followed by another at once."""
        request = ReapLeases()
        answer = self._writer.ask(request, timeout_ms=ASK_TIMEOUT_MS)
        now_ns = self._clock.monotonic_ns()
        self.due_ns = now_ns + INTERVAL_MS * 1_000_000
        if isinstance(answer, Failure):
            self._log.warning("lease_reaping_postponed", code=answer.code.value, detail=answer.detail)
            return answer
        self.requeued += answer.requeued
        self.dead += answer.dead
        if answer.requeued or answer.dead:
            self._log.info("leases_reaped", requeued=answer.requeued, dead=answer.dead)
        if answer.requeued + answer.dead >= request.limit:
            self.due_ns = now_ns
        return answer
