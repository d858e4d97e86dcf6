"""Tie a child's lifetime to its supervisor, and protect it from signals meant for the supervisor.

Source: docs/reliability.md R10 (the death signal, *then* the comparison of getppid) and R19.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
GROUP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""Signals that reach a whole process group (Ctrl-C, a closed terminal); children drain by message instead."""


def tie_to_supervisor(supervisor_pid: int) -> bool:
    """Make this process end with ``supervisor_pid`` and ignore group signals; False if that has exited already.

    The supervisor spawns children with these signals blocked, so none can arrive before it is ignored here; pending
    ones are discarded.
    """
    for number in GROUP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, GROUP_SIGNALS | {signal.SIGCHLD})
    return die_with_supervisor(supervisor_pid)


def die_with_supervisor(supervisor_pid: int, number: int = signal.SIGKILL) -> bool:
    """Make this process end with ``supervisor_pid``; return False if that has exited already.

    On Linux the kernel sends the signal when the parent exits; comparing the parent's pid afterwards closes the race in
    which it exited first. Elsewhere the loops compare at each heartbeat.
    """
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), "prctl(PR_SET_PDEATHSIG)")
    return supervisor_is_alive(supervisor_pid)


def supervisor_is_alive(supervisor_pid: int) -> bool:
    return os.getppid() == supervisor_pid
