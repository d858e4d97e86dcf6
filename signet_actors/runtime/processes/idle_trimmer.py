"""Return freed memory to the operating system while a process is idle."""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from collections.abc import Callable
from typing import Final

QUIET_NS: Final = 2_000_000_000
"""A process that has used next to no CPU for this long is idle."""
_IDLE_CPU_SHARE: Final = 0.02
"""Of one core; a heartbeat takes a tenth of that."""
_MIN_CPU_S: Final = 0.25
"""CPU time since the last trim that makes another one worthwhile; a trim takes some ten milliseconds."""


def trim_heap() -> None:
    """Return free heap pages to the system where glibc can, which returns only its end by itself; takes 2 ms."""
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # absent from musl, which keeps little
        if trim is not None:
            trim(0)


def free_memory() -> None:
    """Collect garbage and trim the heap."""
    gc.collect()
    trim_heap()


class IdleTrimmer:
    """Frees memory once after each period of load, when the process has become idle.

    The work loop calls ``check`` with each heartbeat. ``before_trim`` drops caches that the process can cheaply
    rebuild.
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
        """Free memory if the process has worked since the last time and is idle now."""
        spent_s = self._cpu_seconds()
        if not self._last_ns:
            self._quiet_since_ns = now_ns  # starting has priority over trimming
        if (spent_s - self._last_s) * 1e9 > (now_ns - self._last_ns) * _IDLE_CPU_SHARE:
            self._quiet_since_ns = now_ns
        self._last_s, self._last_ns = spent_s, now_ns
        if now_ns - self._quiet_since_ns >= QUIET_NS and spent_s - self._trimmed_at_s >= _MIN_CPU_S:
            self.before_trim()
            self._free_memory()
            self._trimmed_at_s = self._last_s = self._cpu_seconds()
