"""What this process costs, for its heartbeat: cheap enough for once a second."""

from __future__ import annotations

import contextlib
import os
import resource
import sys
import time
from pathlib import Path
from typing import Final

_STATM: Final = Path("/proc/self/statm")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_MAXRSS_BYTES: Final = 1 if sys.platform == "darwin" else 1024


def process_figures() -> dict[str, float]:
    """CPU seconds since birth, peak resident bytes, and resident bytes now where the kernel tells them (Linux)."""
    figures = {
        "cpu_seconds": time.process_time(),
        "rss_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _MAXRSS_BYTES,
    }
    with contextlib.suppress(OSError):
        figures["rss_bytes"] = int(_STATM.read_bytes().split()[1]) * _PAGE_BYTES
    return figures
