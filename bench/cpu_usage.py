"""CPU time of the daemon's processes and of the load generator over a phase."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from bench.daemon import cpu_ms

LOAD_GENERATOR: Final = "load generator"


class CpuUsage:
    """The CPU time between entering and leaving ``measured``, by process name."""

    def __init__(self, processes: Mapping[str, int]) -> None:
        self._processes = processes
        self.spent_ms: dict[str, float] = {}
        self.wall_s = 0.0

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Count the time inside the block; a second block adds to the first."""
        before = {name: cpu_ms(pid) for name, pid in self._processes.items()}
        own = time.process_time()
        began = time.perf_counter()
        try:
            yield
        finally:
            self.wall_s += time.perf_counter() - began
            for name, pid in self._processes.items():
                self._add(name, cpu_ms(pid) - before[name])
            self._add(LOAD_GENERATOR, (time.process_time() - own) * 1000)

    @property
    def tree_ms(self) -> dict[str, float]:
        """Return the daemon's share."""
        return {name: spent for name, spent in self.spent_ms.items() if name != LOAD_GENERATOR}

    def each(self, count: int) -> dict[str, float]:
        """Return the CPU milliseconds of each process per request."""
        return {name: round(spent / max(1, count), 3) for name, spent in self.spent_ms.items()}

    def _add(self, name: str, spent_ms: float) -> None:
        self.spent_ms[name] = self.spent_ms.get(name, 0.0) + spent_ms
