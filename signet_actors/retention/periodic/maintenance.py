"""Measure the health of the store now and then, and repair what it calls for.

``observe`` only logs the repairs. A repair that does not improve the health three times in a row is not run again until
a cycle calls for none.

Source: memory-pipeline.txt "Maintenance Worker"; architecture.txt "Maintenance worker".
Departs: calls of models are not part of this health, because no repair changes them. A halt ends with a cycle that
calls for no repair, not only with the process.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from signet_actors.config.schema import Config
from signet_actors.features.diagnostics.rules import report
from signet_actors.features.repairs import api as repairs
from signet_actors.features.repairs import rules
from signet_actors.operations.diagnostics import DiagnosticsReport
from signet_actors.operations.repair import RepairReply
from signet_actors.operations.transcripts import OwnAgent
from signet_actors.protocol.message import Answered, Caller, Failure, Principal, message_of
from signet_actors.protocol.pipeline import JobsRequeued, RequeueJobs
from signet_actors.retention.periodic.purge import Purge
from signet_actors.retention.writer_ref import ASK_TIMEOUT_MS, WriterRef
from signet_actors.runtime.clock import Clock

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

MAX_VAIN_RUNS: Final = 3
REPAIR_TIMEOUT_MS: Final = 5_000
"""The writer goes on with what takes longer, as a large text index may; the next cycle finds it done."""
SWEEP_WAIT_MS: Final = 1_000
_NEVER_NS: Final = 2**62
_PRINCIPAL: Final = Principal("maintenance", "daemon")


class Maintenance:
    """Run a cycle every ``maintenanceIntervalMs`` while ``autonomous`` is enabled and not frozen."""

    def __init__(
        self, writer: WriterRef, clock: Clock, log: FilteringBoundLogger, config: Config, purge: Purge
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._log = log
        self._purge = purge
        self._config = config.memory.pipeline_v2.autonomous
        self._before: float | None = None
        """The score before the repairs of a cycle that waits for its sweep to end."""
        self._performed: dict[str, int] = {}
        self._vain_runs: dict[str, int] = {}
        self.cycles = self.repairs = 0
        self.due_ns = 0
        self._wait()

    @property
    def is_on(self) -> bool:
        """Whether cycles run by themselves."""
        return self._config.enabled and not self._config.frozen

    @property
    def halted(self) -> frozenset[str]:
        """The repairs that have not helped and are not run."""
        return frozenset(action for action, runs in self._vain_runs.items() if runs >= MAX_VAIN_RUNS)

    def reload(self, config: Config) -> None:
        """Wait for the new interval if something changed."""
        if config.memory.pipeline_v2.autonomous != self._config:
            self._config = config.memory.pipeline_v2.autonomous
            self._wait()

    def step(self) -> None:
        """Run a cycle, or end the one whose sweep has ended."""
        if self._before is not None:
            if self._purge.running:
                self._due_in(SWEEP_WAIT_MS)
                return
            purged = sum(step.count for step in self._purge.steps)
            if purged:
                self._ask(repairs.RecordRepair(action=rules.SWEEP, affected=purged, principal=_PRINCIPAL))
            self._end(self._before)
            return
        self._wait()
        self.cycles += 1
        measured = self._measure()
        if measured is None or measured.composite is None:
            return
        wanted = rules.recommendations(measured)
        if not wanted:
            self._vain_runs.clear()
            return
        if self._config.maintenance_mode == "observe":
            for action, reason in wanted.items():
                self._log.info("repair_recommended", action=action, reason=reason)
            return
        self._performed = {}
        for action, reason in wanted.items():
            if action not in self.halted:
                self._perform(action, reason)
        if rules.SWEEP in self._performed:
            self._before = measured.composite.score
            self._due_in(SWEEP_WAIT_MS)
        elif self._performed:
            self._end(measured.composite.score)

    def _perform(self, action: str, reason: str) -> None:
        affected = _REPAIRS[action](self)
        if isinstance(affected, Failure):
            self._log.info("repair_postponed", action=action, reason=reason, detail=affected.detail)
            return
        self._performed[action] = affected
        self.repairs += 1
        self._log.info("repair_performed", action=action, reason=reason, affected=affected)

    def _end(self, before: float) -> None:
        """Compare the health with the one before the repairs."""
        self._before = None
        self._wait()
        measured = self._measure()
        if measured is None or measured.composite is None:
            return
        delta = round(measured.composite.score - before, 3)
        self._log.info("maintenance_done", score=measured.composite.score, delta=delta, actions=sorted(self._performed))
        for action in self._performed:
            self._vain_runs[action] = 0 if delta > 0 else self._vain_runs.get(action, 0) + 1
            if action in self.halted:
                self._log.warning("repair_halted", action=action, runs=self._vain_runs[action])

    def _measure(self) -> DiagnosticsReport | None:
        answer = self._writer.ask(repairs.MeasureStore(), timeout_ms=ASK_TIMEOUT_MS)
        if isinstance(answer, Failure):
            self._log.warning("maintenance_postponed", code=answer.code.value, detail=answer.detail)
            return None
        figures = answer.read(repairs.StoreFigures)
        return report(figures.health, figures.changes, None, (), figures.at)

    def _release(self) -> int | Failure:
        return _affected(self._ask(message_of(repairs.RELEASE)(caller=_CALLER, request=OwnAgent())))

    def _check_text(self) -> int | Failure:
        return _affected(
            self._ask(message_of(repairs.CHECK_TEXT)(caller=_CALLER, request=repairs.CheckTextRequest(repair=True)))
        )

    def _requeue(self) -> int | Failure:
        answer: JobsRequeued | Failure = self._ask(RequeueJobs(principal=_PRINCIPAL))
        return answer if isinstance(answer, Failure) else len(answer.requeued)

    def _sweep(self) -> int | Failure:
        """Begin a sweep; how many rows it deletes is not known yet."""
        admitted: Answered | Failure = self._ask(repairs.EnterRepair(action=rules.SWEEP, principal=_PRINCIPAL))
        if isinstance(admitted, Failure):
            return admitted
        self._purge.begin()
        return 0

    def _ask(self, request: Any) -> Any:
        return self._writer.ask(request, timeout_ms=REPAIR_TIMEOUT_MS)

    def _wait(self) -> None:
        if self.is_on:
            self._due_in(self._config.maintenance_interval_ms)
        else:
            self._before, self.due_ns = None, _NEVER_NS

    def _due_in(self, ms: int) -> None:
        self.due_ns = self._clock.monotonic_ns() + ms * 1_000_000


def _affected(answer: Answered | Failure) -> int | Failure:
    return answer if isinstance(answer, Failure) else answer.read(RepairReply).affected


_CALLER: Final = Caller(principal=_PRINCIPAL)
_REPAIRS: Final[dict[str, Callable[[Maintenance], int | Failure]]] = {
    rules.RELEASE: Maintenance._release,
    rules.REQUEUE: Maintenance._requeue,
    rules.CHECK_TEXT: Maintenance._check_text,
    rules.SWEEP: Maintenance._sweep,
}
