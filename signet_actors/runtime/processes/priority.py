"""Lower the scheduling priority of background processes.

The extractor serves callers, too (summary cards, the vector of a remember), but a model server takes far longer anyway.

Source: docs/performance.md "Isolation targets"; docs/reliability.md R11.
"""

from __future__ import annotations

import os
import sys
import threading

_NICENESS = 5
"""A third of the others' CPU weight: enough to send heartbeats in time on a busy machine."""


_LEAST = 19
_THREAD_NICENESS = 15
"""A tenth of that: what such a thread computes can wait, but it must give the interpreter back in time."""


def lower_thread_priority() -> None:
    """Lower the priority of the calling thread further, for long computations; only Linux can."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _THREAD_NICENESS)


def run_when_idle() -> None:
    """Let this process compute only when no other one of the machine wants the core, for work that no one waits for."""
    if sys.platform == "linux":
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    else:
        os.nice(_LEAST)


def lower_priority() -> None:
    """Lower the priority of this process and its threads, for work that may be delayed."""
    os.nice(_NICENESS)
