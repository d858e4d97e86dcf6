"""Each memory that should have a job and has none gets one: all memories are looked at, a few at a time, now and then.

A job is made in the transaction that makes it due, so there is nothing to find unless something went wrong: a table was
repaired by hand, a store was put together from parts. Whatever it was, it shall not cost a memory its extraction. Or
the embedding model was changed: then all vectors are of the former one, and a round begins at once.

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
"""Between the ends of two rounds."""
FIRST_AFTER_MS = 90_000
"""The first round waits until the daemon has settled."""
PAUSE_MS = 100
"""Between two steps of a round, so that callers' writes are not queued behind it."""
POSTPONED_MS = 60_000


class Reconciliation:
    """Walks through the memories by steps. A writer that is busy or away is asked for the same step a minute later."""

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
        """With another embedding model, or a tracker that was off, a round begins when the writer, too, has had time
        to hear of it."""
        changed = space_name(config.embedding) != space_name(self._config.embedding)
        begun = _tracks(config) and not _tracks(self._config)
        self._config = config
        if changed or begun:
            self._begin_again()

    def step(self) -> None:
        """Some memories have been looked at, or the writer did not answer."""
        answer = self._writer.ask(ReconcileJobs(after=self._after), timeout_ms=ASK_TIMEOUT_MS)
        if isinstance(answer, Failure):
            self._log.warning("reconciliation_postponed", code=answer.code.value, detail=answer.detail)
            self._due_in(POSTPONED_MS)
            return
        if answer.space != space_name(self._config.embedding):
            self._begin_again()  # one of us has not read the configuration yet that the other goes by
            return
        self._found += answer.enqueued
        self.enqueued += answer.enqueued
        if answer.next is not None:
            self._after = answer.next
            self._due_in(PAUSE_MS)
            return
        if self._found:
            self._log.info("jobs_were_missing", enqueued=self._found)
        self._after = self._found = 0
        self._due_in(INTERVAL_MS)

    def _begin_again(self) -> None:
        self._after = self._found = 0
        self._due_in(self._config.memory.pipeline_v2.embedding_tracker.poll_ms)

    def _due_in(self, ms: int) -> None:
        self.due_ns = self._clock.monotonic_ns() + ms * 1_000_000


def _tracks(config: Config) -> bool:
    return config.memory.pipeline_v2.embedding_tracker.enabled
