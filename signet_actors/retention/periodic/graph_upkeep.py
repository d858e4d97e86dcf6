"""Keep the knowledge graph tidy: which attributes are active, and which entities form a community.

A walk through all aspects finds contradictions that came from different sessions. Communities are found by a process of
its own, at a change of the dependencies, and stored in small steps. A result that is stored in part is completed by the
next round, and the same graph gives the same result.

Source: knowledge-graph.txt "Retroactive Supersession"; architecture.txt "Knowledge Graph" (entity communities).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from signet_actors.config.schema import Config
from signet_actors.domain.timestamps import iso
from signet_actors.features.communities import api
from signet_actors.features.communities.rules import steps
from signet_actors.protocol.message import Failure, Request
from signet_actors.protocol.pipeline import SettleAttributes
from signet_actors.retention.work_process import Work, WorkProcess
from signet_actors.retention.writer_ref import ASK_TIMEOUT_MS, WriterRef
from signet_actors.runtime.clock import Clock

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

R = TypeVar("R")

FIRST_AFTER_MS: Final = 60_000
INTERVAL_MS: Final = 3_600_000
"""The wait between two walks through the aspects."""
CHECK_MS: Final = 300_000
"""The wait between two looks whether the dependencies have changed."""
PAUSE_MS: Final = 100
"""The wait between two steps, so that callers' writes are not queued behind them."""
POSTPONED_MS: Final = 60_000


class CommunityProcess(WorkProcess[api.Communities]):
    """The process that finds communities."""

    def __init__(self, workspace: Path) -> None:
        super().__init__(
            "signet_actors.searcher.communities",
            [str(workspace)],
            api.Communities,
            lambda reason: api.Communities(problem=reason),
        )


class _GraphDuty:
    """A duty that asks the writer in steps, while the graph is on and the daemon may act on its own."""

    def __init__(self, writer: WriterRef, clock: Clock, log: FilteringBoundLogger, config: Config) -> None:
        self._writer = writer
        self._clock = clock
        self._log = log
        self._config = config
        self.due_ns = clock.monotonic_ns() + FIRST_AFTER_MS * 1_000_000

    def reload(self, config: Config) -> None:
        self._config = config

    @property
    def _is_on(self) -> bool:
        pipeline = self._config.memory.pipeline_v2
        return pipeline.graph.enabled and pipeline.autonomous.enabled and not pipeline.autonomous.frozen

    def _ask(self, request: Request[R]) -> R | None:
        """Return the reply, or None if the step is to be tried again later."""
        answer = self._writer.ask(request, timeout_ms=ASK_TIMEOUT_MS)
        if isinstance(answer, Failure):
            self._log.info("graph_upkeep_postponed", code=answer.code.value, detail=answer.detail)
            self._due_in(POSTPONED_MS)
            return None
        return answer

    def _due_in(self, ms: int) -> None:
        self.due_ns = self._clock.monotonic_ns() + ms * 1_000_000


class SupersessionSweep(_GraphDuty):
    """Have the writer settle the attributes of all aspects, some at a time."""

    def __init__(self, writer: WriterRef, clock: Clock, log: FilteringBoundLogger, config: Config) -> None:
        super().__init__(writer, clock, log, config)
        self._after = ""
        self.settled = 0

    def step(self) -> None:
        """Settle the next aspects."""
        answer = self._ask(SettleAttributes(self._after)) if self._is_on else None
        if answer is None:
            self._due_in(POSTPONED_MS)
            return
        self.settled += answer.changed
        self._after = answer.next or ""
        self._due_in(INTERVAL_MS if answer.next is None else PAUSE_MS)


class CommunityDuty(_GraphDuty):
    """Find communities after a change of the dependencies, and have the writer store them."""

    def __init__(
        self,
        writer: WriterRef,
        clock: Clock,
        log: FilteringBoundLogger,
        config: Config,
        begin: Callable[[], Work[api.Communities]],
    ) -> None:
        super().__init__(writer, clock, log, config)
        self._begin = begin
        self._process: Work[api.Communities] | None = None
        self._stamp = ""
        """The state of the graph whose communities are stored."""
        self._new_stamp = ""
        self._found_at = ""
        self._steps: Iterator[tuple[api.Community, ...]] | None = None
        self._step: tuple[api.Community, ...] | None = None
        self.rounds = 0

    def step(self) -> None:
        """Do the next step of a round, or look whether one is due."""
        self._due_in(PAUSE_MS)
        if self._process is not None:
            self._look(self._process)
        elif self._steps is not None:
            self._store(self._steps)
        elif self._is_on:
            self._check()
        else:
            self._due_in(CHECK_MS)

    def stop(self) -> None:
        """End the process if it runs."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _check(self) -> None:
        answer = self._ask(api.GetGraphStamp())
        if answer is None:
            return
        self._new_stamp = answer.read(api.GraphStamp).stamp
        if self._new_stamp == self._stamp:
            self._due_in(CHECK_MS)
            return
        try:
            self._process = self._begin()
        except OSError as error:
            self._fail(f"the process cannot be started: {error.strerror}")

    def _look(self, process: Work[api.Communities]) -> None:
        found = process.poll()
        if found is None:
            return
        self._process = None
        if found.problem is not None:
            self._fail(found.problem)
            return
        self._steps, self._step = steps(found.communities), None
        self._found_at = iso(self._clock.wall_ms())

    def _store(self, steps_left: Iterator[tuple[api.Community, ...]]) -> None:
        """Store the next communities, and delete outdated ones after the last; a failed step is repeated."""
        if self._step is None:
            self._step = next(steps_left, ())
        request = (
            api.StoreCommunities(self._found_at, self._step) if self._step else api.DropCommunities(self._found_at)
        )
        answer = self._ask(request)
        if answer is None:
            return
        if self._step:
            self._step = None
        elif not answer.read(api.Stored).more:
            self._steps, self._stamp = None, self._new_stamp
            self.rounds += 1
            self._due_in(CHECK_MS)

    def _fail(self, problem: str) -> None:
        self._log.warning("communities_not_found", reason=problem)
        self._due_in(INTERVAL_MS)
