"""Have maps of the memories made on request, one after the other, by a process of its own, and the writer store them.

Source: architecture.txt "UMAP Projection"; docs/compatibility.md "Embeddings".
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from signet_actors.features.projection.api import Projection, StoreProjection
from signet_actors.protocol.message import Failure
from signet_actors.retention.work_process import Work, WorkProcess
from signet_actors.retention.writer_ref import ASK_TIMEOUT_MS, WriterRef
from signet_actors.runtime.clock import Clock

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

Wanted = tuple[str, int]
"""The agent, and of how many dimensions its map is."""

POLL_MS: Final = 50
IDLE_MS: Final = 3_600_000
RETRY_MS: Final = 2_000
FAILED_MS: Final = 60_000
"""A map that could not be made is tried again after this time at the earliest."""
MAX_WAITING: Final = 16


class ProjectionProcess(WorkProcess[Projection]):
    """The process that makes a map."""

    def __init__(self, workspace: Path, agent_id: str, dimensions: int) -> None:
        super().__init__(
            "signet_actors.searcher.projection",
            [str(workspace), agent_id, str(dimensions)],
            Projection,
            lambda reason: Projection(problem=reason),
        )


class Projections:
    """The maps that are wanted, and the one that is being made."""

    def __init__(
        self, writer: WriterRef, clock: Clock, log: FilteringBoundLogger, begin: Callable[[str, int], Work[Projection]]
    ) -> None:
        self._writer = writer
        self._clock = clock
        self._log = log
        self._begin = begin
        self._waiting: list[Wanted] = []
        self._process: Work[Projection] | None = None
        self._made: Projection | None = None
        self._failed: dict[Wanted, tuple[str, int]] = {}
        self.made = 0
        self.due_ns = clock.monotonic_ns() + IDLE_MS * 1_000_000

    def request(self, agent_id: str, dimensions: int) -> str | None:
        """Have the map made unless that is under way; return why it cannot be made now, else None."""
        wanted = (agent_id, dimensions)
        problem, until_ns = self._failed.get(wanted, ("", 0))
        if self._clock.monotonic_ns() < until_ns:
            return problem
        if wanted not in self._waiting:
            if len(self._waiting) >= MAX_WAITING:
                return "too many maps are waiting to be made"
            self._waiting.append(wanted)
            self._due_in(0)
        return None

    def step(self) -> None:
        """Begin the next map, look at the one in progress, or have it stored."""
        if self._made is not None:
            self._store(self._made)
        elif self._process is not None:
            self._look(self._process)
        elif self._waiting:
            try:
                self._process = self._begin(*self._waiting[0])
                self._due_in(POLL_MS)
            except (OSError, ValueError) as error:
                self._fail(f"the process cannot be started: {error}")
        else:
            self._due_in(IDLE_MS)

    def stop(self) -> None:
        """End the process if it runs."""
        if self._process is not None:
            self._process.stop()
            self._process = None

    def _look(self, process: Work[Projection]) -> None:
        found = process.poll()
        self._due_in(POLL_MS)
        if found is None:
            return
        self._process = None
        if found.problem is not None:
            self._fail(found.problem)
        else:
            self._made = found
            self._due_in(0)

    def _store(self, made: Projection) -> None:
        agent_id, dimensions = self._waiting[0]
        answer = self._writer.ask(StoreProjection(agent_id, dimensions, made), timeout_ms=ASK_TIMEOUT_MS)
        if isinstance(answer, Failure):
            self._log.info("projection_postponed", code=answer.code.value, detail=answer.detail)
            self._due_in(RETRY_MS)
            return
        self._end()
        self.made += 1

    def _fail(self, problem: str) -> None:
        now_ns = self._clock.monotonic_ns()
        self._log.warning("projection_failed", reason=problem)
        self._failed = {wanted: failed for wanted, failed in self._failed.items() if failed[1] > now_ns}
        self._failed[self._waiting[0]] = (problem, now_ns + FAILED_MS * 1_000_000)
        self._end()

    def _end(self) -> None:
        self._made = None
        del self._waiting[0]
        self._due_in(0)

    def _due_in(self, ms: int) -> None:
        self.due_ns = self._clock.monotonic_ns() + ms * 1_000_000
