"""Walk through all memories, a few at a time, and enqueue the jobs that are missing.

A job is inserted in the transaction that makes it necessary, so a job is missing only after a manual repair or in a
store that was assembled from parts. After a change of the embedding model every vector is of the previous model; then a
round starts at once.

Source: docs/decisions.md 5, 11-15; memory-pipeline.txt "Embedding Tracker" (stale detection).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signet_actors.config.embedding_models import space_name
from signet_actors.config.schema import Config
from signet_actors.protocol.message import Failure
from signet_actors.protocol.pipeline import ReconcileJobs
from signet_actors.retention.writer_ref import ASK_TIMEOUT_MS, WriterRef
from signet_actors.runtime.clock import Clock

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

INTERVAL_MS = 3_600_000
"""The wait between two rounds."""
FIRST_AFTER_MS = 10_000
"""The first round comes soon: after a restart with another embedding model, every vector is to be made again."""
PAUSE_MS = 100
"""The wait between two steps of a round, so that callers' writes are not queued behind it."""
WAIT_MS = 1_000
"""The wait until the writer is asked again while earlier jobs are still pending."""
POSTPONED_MS = 60_000


class Reconciliation:
    """Walk through the memories step by step. A step that fails is repeated a minute later."""

    def __init__(self, writer: WriterRef, clock: Clock, log: FilteringBoundLogger, config: Config) -> None:
        self._config = config
        self._writer = writer
        self._clock = clock
        self._log = log
        self._after = 0
        self._found = 0
        self.enqueued = 0
        self.due_ns = clock.monotonic_ns() + FIRST_AFTER_MS * 1_000_000

    def reload(self, config: Config) -> None:
        """Start a round if the embedding model changed or the tracker was switched on.

        The round waits for one poll interval, so that the writer has read the new configuration too.
        """
        changed = space_name(config.embedding) != space_name(self._config.embedding)
        begun = _tracks(config) and not _tracks(self._config)
        self._config = config
        if changed or begun:
            self._begin_again()

    def step(self) -> None:
        """Have the writer check the next memories."""
        answer = self._writer.ask(ReconcileJobs(after=self._after), timeout_ms=ASK_TIMEOUT_MS)
        if isinstance(answer, Failure):
            self._log.warning("reconciliation_postponed", code=answer.code.value, detail=answer.detail)
            self._due_in(POSTPONED_MS)
            return
        if answer.space != space_name(self._config.embedding):
            self._begin_again()  # writer and retention have read different configurations; retry when both are current
            return
        self._found += answer.enqueued
        self.enqueued += answer.enqueued
        if answer.next is not None:
            waits = answer.next == self._after  # enough jobs of earlier steps are pending
            self._after = answer.next
            self._due_in(WAIT_MS if waits else PAUSE_MS)
            return
        if self._found:
            self._log.info("missing_jobs_created", enqueued=self._found)
        self._after = self._found = 0
        self._due_in(INTERVAL_MS)

    def _begin_again(self) -> None:
        self._after = self._found = 0
        self._due_in(self._config.memory.pipeline_v2.embedding_tracker.poll_ms)

    def _due_in(self, ms: int) -> None:
        self.due_ns = self._clock.monotonic_ns() + ms * 1_000_000


def _tracks(config: Config) -> bool:
    return config.memory.pipeline_v2.embedding_tracker.enabled
