"""The limits of open files and connections of a process, and of the processes of a user.

The supervisor raises its soft limits to the hard ones, which its children inherit, and refuses to start below what the
processes need. The gateway limits its connections by what is left.
"""

from __future__ import annotations

import contextlib
import os
import resource

from signet_actors.errors import ConfigError

REQUIRED = 256
"""Needed by the process with the most descriptors, some tens of connections included."""
RESERVED = 64
"""Kept free beside connections: for files, model servers, and bus sockets that reconnect."""
REQUIRED_PROCESSES = 64
"""Processes and threads of the daemon; idle ones are half as many."""
_COUNTED_BELOW = 4096
_MOST = 1 << 20
_MACOS_MOST = 10_240


def raise_limit() -> int:
    """Raise the soft limit to the hard one and return it. Raises ``ConfigError`` below ``REQUIRED``."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for wanted in (_MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST), _MACOS_MOST):
        if wanted <= limit():
            break
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            break
    allowed = limit()
    if allowed < REQUIRED:
        raise ConfigError(
            f"a process may open only {allowed} files, but the daemon needs {REQUIRED}: raise the limit with"
            " `ulimit -n 4096`, or LimitNOFILE=4096 in a systemd unit"
        )
    return allowed


def raise_process_limit() -> None:
    """Raise the limit of processes and threads. Raises ``ConfigError`` if too few are left. Source: setrlimit(2)."""
    _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NPROC, (hard, hard))
    allowed, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    if os.geteuid() == 0 or allowed == resource.RLIM_INFINITY or allowed >= _COUNTED_BELOW:
        return
    running = _running_threads()
    if allowed - running < REQUIRED_PROCESSES:
        raise ConfigError(
            f"this user may run only {allowed} processes and threads, of which {running} run already, but the daemon"
            f" needs {REQUIRED_PROCESSES}: raise the limit with `ulimit -u 4096`, or LimitNPROC=4096 in a systemd unit"
        )


def _running_threads() -> int:
    """Return how many threads run for this user; 0 where the system does not list them."""
    running = 0
    for process in os.listdir("/proc") if os.path.isdir("/proc/self/task") else ():
        with contextlib.suppress(OSError):
            if process.isdecimal() and os.stat(f"/proc/{process}").st_uid == os.geteuid():
                running += len(os.listdir(f"/proc/{process}/task"))
    return running


def limit() -> int:
    """Return how many descriptors this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else soft


def available() -> int:
    """Return how many more descriptors this process may open, without the reserved ones."""
    return limit() - len(os.listdir("/dev/fd")) - RESERVED
