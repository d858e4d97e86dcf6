"""The limit of open files and connections of a process.

The supervisor raises its soft limit to the hard one, which its children inherit, and refuses to start below what the
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


def limit() -> int:
    """Return how many descriptors this process may have."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else soft


def available() -> int:
    """Return how many more descriptors this process may open, without the reserved ones."""
    return limit() - len(os.listdir("/dev/fd")) - RESERVED
