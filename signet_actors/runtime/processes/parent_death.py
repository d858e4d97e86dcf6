"""A child never outlives its supervisor, and never dies of a signal that was meant for the supervisor.

Source: docs/reliability.md R10 (the death signal, *then* the comparison of getppid) and R19.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
GROUP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""Signals that reach a whole process group (a Ctrl-C, a closed terminal): the supervisor drains by message."""


def tie_to_supervisor(supervisor_pid: int) -> bool:
    """This process dies with ``supervisor_pid`` and ignores group signals; False when that process is gone already.

    The supervisor spawns with these signals blocked and the block is inherited, so that none of them can arrive before
    they are ignored here; a pending one is discarded.
    """
    for number in GROUP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, GROUP_SIGNALS | {signal.SIGCHLD})
    return die_with_supervisor(supervisor_pid)


def die_with_supervisor(supervisor_pid: int) -> bool:
    """This process dies with ``supervisor_pid``; False when that process is gone already.

    On Linux the kernel sends SIGKILL when the parent dies; the comparison afterwards closes the race in which the
    parent died first. Elsewhere the loops compare at each tick.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), "prctl(PR_SET_PDEATHSIG)")
    return supervisor_is_alive(supervisor_pid)


def supervisor_is_alive(supervisor_pid: int) -> bool:
    """True while the supervisor is still this process's parent."""
    return os.getppid() == supervisor_pid
