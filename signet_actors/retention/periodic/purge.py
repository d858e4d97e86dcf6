"""Purge what has outlived its retention window, in the mandatory order and in short batches.

A sweep is a generator that yields after each request to the writer, so that the loop can send heartbeats, reply and
drain between any two batches. A sweep may be cut off anywhere: the next one does the rest.

Source: memory-system.txt "Retention Worker"; docs/reliability.md R16, "Supervision policy".
Departs: the documents do one batch per step and sweep. We repeat a full batch up to ``MAX_BATCHES`` times and start the
next sweep a minute later if rows are left, so that the sweeps keep up with a mass deletion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from signet_actors.config.schema import Config
from signet_actors.domain import retention as rules
from signet_actors.domain.timestamps import epoch_ms, iso
from signet_actors.protocol.leases import AdvanceHighWaterMark
from signet_actors.protocol.message import Failure
from signet_actors.protocol.writer import Purged, PurgeStep
from signet_actors.retention.writer_ref import ASK_TIMEOUT_MS, WriterRef
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.sync_points import sync_point

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

MAX_BATCHES = 200
"""Batches per step and sweep."""
FIRST_AFTER_MS = 60_000
"""The first sweep waits until the daemon has settled."""
FOLLOW_UP_MS = 60_000
"""The wait before the next sweep when rows were left."""
PAUSE_MS = 10
"""The wait between two batches, so that callers' writes are not queued behind an unbroken purge."""
RETRY_MIN_MS, RETRY_MAX_MS = 5_000, 300_000


def window_ms(config: Config, step: rules.Step) -> int:
    """Return the age limit of the step: a key of ``retention``, or that of session checkpoints or of telemetry."""
    if step.window == rules.CHECKPOINT_WINDOW:
        return config.memory.pipeline_v2.continuity.retention_days * rules.DAY_MS
    if step.window == rules.TELEMETRY_WINDOW:
        return config.memory.pipeline_v2.telemetry.retention_days * rules.DAY_MS
    window: int = getattr(config.retention, step.window)
    return window


class Purge:
    """The sweep and its schedule.

    ``steps`` holds the results of the present or last sweep, one entry per step that was started, in order;
    ``skipped_reason`` why it did not do all of it. ``suspended_reason`` is set while nothing is purged at all.
    """

    def __init__(self, writer: WriterRef, clock: Clock, log: FilteringBoundLogger, config: Config) -> None:
        self._writer = writer
        self._clock = clock
        self._log = log
        self._config = config
        self._sweep: Iterator[None] | None = None
        self._accepted_ns: int | None = None
        self._failures = 0
        self._next_in_ms = 0
        self.steps: list[Purged] = []
        self.skipped_reason: str | None = None
        self.suspended_reason: str | None = None
        self.last_sweep_at: str | None = None
        self.last_counts: dict[str, int] = {}
        self.sweeps = 0
        self.rows = 0
        self.due_ns = clock.monotonic_ns() + min(FIRST_AFTER_MS, config.retention.interval_ms) * 1_000_000

    @property
    def running(self) -> bool:
        return self._sweep is not None

    def reload(self, config: Config) -> None:
        """Apply the new windows from the next sweep on, and a shorter interval at once."""
        self._config = config
        self.due_ns = min(self.due_ns, self._clock.monotonic_ns() + config.retention.interval_ms * 1_000_000)

    def begin(self, *, operator_confirmed: bool = False, on_demand: bool = False) -> None:
        """Start a sweep unless one is in progress; for the arguments see ``check_clock``."""
        if self._sweep is None:
            self.steps = []
            self.skipped_reason = None
            self._next_in_ms = self._config.retention.interval_ms
            self._sweep = self._run_sweep(operator_confirmed=operator_confirmed, on_demand=on_demand)
            self.due_ns = self._clock.monotonic_ns()

    def step(self) -> bool:
        """Send one request to the writer; return True if this ended the sweep."""
        self.begin()
        assert self._sweep is not None
        try:
            next(self._sweep)
        except StopIteration:
            self._sweep = None
            self.due_ns = self._clock.monotonic_ns() + self._next_in_ms * 1_000_000
            return True
        self.due_ns = self._clock.monotonic_ns() + PAUSE_MS * 1_000_000
        return False

    def stop(self) -> None:
        """End a sweep between two batches; the next sweep starts from the beginning."""
        if self._sweep is not None:
            self.skipped_reason = "the daemon is stopping; the next sweep continues"
        self._sweep = None

    def _run_sweep(self, *, operator_confirmed: bool, on_demand: bool) -> Iterator[None]:
        now_ms = self._clock.wall_ms()
        decision = self._check_clock(now_ms, operator_confirmed=operator_confirmed, on_demand=on_demand)
        if decision is None:
            return
        if not decision.may_purge:
            self.skipped_reason = self.suspended_reason = decision.reason
            self._next_in_ms = min(self._next_in_ms, decision.recheck_in_ms)
            log = self._log.info if decision.verdict is rules.ClockVerdict.FIRST else self._log.warning
            log("purge_suspended", verdict=decision.verdict.value, reason=decision.reason)
            return
        self.suspended_reason = None
        yield
        for step in rules.STEPS:
            sync_point("maintenance.between_steps")
            if any(done.step in step.after and done.more for done in self.steps):
                self.skipped_reason = f"{step.name} waits until {' and '.join(step.after)} have nothing left to purge"
                continue
            cutoff = iso(rules.cutoff_ms(now_ms, window_ms(self._config, step)))
            for purged in self._batches(step, cutoff):
                if purged is None:
                    return
                yield
        self._finish(now_ms)

    def _batches(self, step: rules.Step, cutoff: str) -> Iterator[Purged | None]:
        """Yield the batches of one step while they are full, and None if the writer did not reply."""
        at = len(self.steps)
        self.steps.append(Purged(step=step.name, count=0, more=True))
        for _ in range(MAX_BATCHES):
            request = PurgeStep(step=step.name, cutoff=cutoff, limit=self._config.retention.batch_limit)
            answer = self._writer.ask(request, timeout_ms=ASK_TIMEOUT_MS)
            if isinstance(answer, Failure):
                self._postpone(answer)
                yield None
                return
            self.rows += answer.count
            self.steps[at] = Purged(step=step.name, count=self.steps[at].count + answer.count, more=answer.more)
            yield answer
            if not answer.more:
                return

    def _check_clock(self, now_ms: int, *, operator_confirmed: bool, on_demand: bool) -> rules.ClockDecision | None:
        """Decide whether this sweep may trust its clock, and store the decision. None if the writer did not reply.

        The first request reads the high-water mark and clears a suspicion that is stored with it. If this process
        crashes before the second request stores the suspicion again, the suspicion starts over, which only delays
        purging.
        """
        now = iso(now_ms)
        known = self._writer.ask(AdvanceHighWaterMark(now, accept=False), timeout_ms=ASK_TIMEOUT_MS)
        if isinstance(known, Failure):
            self._postpone(known)
            return None
        now_ns = self._clock.monotonic_ns()
        decision = rules.check_clock(
            now_ms,
            epoch_ms(known.previous) if known.previous else None,
            suspected_since_ms=epoch_ms(known.suspected_jump_since) if known.suspected_jump_since else None,
            elapsed_ms=0 if self._accepted_ns is None else (now_ns - self._accepted_ns) // 1_000_000,
            operator_confirmed=operator_confirmed,
            on_demand=on_demand,
        )
        since = decision.suspected_since_ms
        verdict = AdvanceHighWaterMark(
            now, suspected_jump_since=None if since is None else iso(since), accept=decision.may_purge
        )
        stored = self._writer.ask(verdict, timeout_ms=ASK_TIMEOUT_MS)
        if isinstance(stored, Failure):
            self._postpone(stored)
            return None
        if decision.may_purge:
            self._accepted_ns = now_ns
        return decision

    def _postpone(self, failure: Failure) -> None:
        """Wait before the next sweep: 5 s, then twice as long after each failure, up to 5 minutes."""
        delay = min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** min(self._failures, 10))
        self._failures += 1
        self._next_in_ms = min(self._next_in_ms, max(delay, failure.retry_after_ms or 0))
        self.skipped_reason = self.suspended_reason = f"the writer could not purge: {failure.detail}"
        self._log.warning(
            "purge_postponed", code=failure.code.value, detail=failure.detail, retry_in_ms=self._next_in_ms
        )

    def _finish(self, now_ms: int) -> None:
        self._failures = 0
        self.sweeps += 1
        self.last_sweep_at = iso(now_ms)
        self.last_counts = {purged.step: purged.count for purged in self.steps}
        if any(purged.more for purged in self.steps):
            self._next_in_ms = min(self._next_in_ms, FOLLOW_UP_MS)
        self._log.info("sweep_finished", **self.last_counts, next_in_ms=self._next_in_ms)
