"""Memory that the allocator keeps of what was freed, given back to the machine."""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Callable
from typing import Final

QUIET_NS: Final = 2_000_000_000
"""A process that has done next to nothing for so long is at rest."""
_IDLE_CPU_SHARE: Final = 0.02
"""Of a core; a heartbeat and what belongs to it take a tenth of that."""
_MIN_CPU_S: Final = 0.25
"""CPU that was spent since the last time; giving back takes some ten milliseconds."""


def trim_heap() -> None:
    """Nothing is kept of what loading something large has left behind; a millisecond or two, where the C library can.

    glibc returns only the end of its heap by itself, and a parser's scraps lie everywhere in it.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # absent from musl, which keeps little
        if trim is not None:
            trim(0)


def free_memory() -> None:
    """Neither garbage nor what it leaves on the heap is kept."""
    gc.collect()
    trim_heap()


class IdleTrimmer:
    """Gives back, once after each load, what that has left on the heap: not while work comes, but when all is quiet.

    ``look`` is called with each heartbeat of the loop that does the work. ``first`` lets go of what the process itself
    keeps for speed's sake and can have again for less than it is worth.
    """

    def __init__(
        self, free_memory: Callable[[], None] = free_memory, cpu_seconds: Callable[[], float] = time.process_time
    ) -> None:
        self.before_trim: Callable[[], None] = lambda: None
        self._free_memory = free_memory
        self._cpu_seconds = cpu_seconds
        self._trimmed_at_s = 0.0
        self._last_s = 0.0
        self._last_ns = 0
        self._quiet_since_ns = 0

    def check(self, now_ns: int) -> None:
        """Memory has been given back if the process has worked since the last time and is at rest now."""
        spent_s = self._cpu_seconds()
        if not self._last_ns:
            self._quiet_since_ns = now_ns  # a birth, and whoever waits for it, come first
        if (spent_s - self._last_s) * 1e9 > (now_ns - self._last_ns) * _IDLE_CPU_SHARE:
            self._quiet_since_ns = now_ns
        self._last_s, self._last_ns = spent_s, now_ns
        if now_ns - self._quiet_since_ns >= QUIET_NS and spent_s - self._trimmed_at_s >= _MIN_CPU_S:
            self.before_trim()
            self._free_memory()
            self._trimmed_at_s = self._last_s = self._cpu_seconds()
