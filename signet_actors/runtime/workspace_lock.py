"""One daemon per workspace: an advisory lock that the kernel releases when its holder dies, however it dies.

Source: reliability.md section 0 point 5, section 2 rule 15, R10.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from signet_actors.config.regular_file import open_regular
from signet_actors.errors import WorkspaceLocked


class WorkspaceLock:
    """Held from ``acquire`` to ``release`` or to the death of this process; children do not inherit it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1

    def acquire(self) -> None:
        """The lock is held and its file names this process.

        Raises WorkspaceLocked naming the holder, ConfigError where the path is no regular file.
        """
        descriptor = open_regular(self.path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(descriptor, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(descriptor)
            raise WorkspaceLocked(
                f"another daemon (pid {holder}) runs on the workspace {self.path.parent.parent}; "
                "stop it with `signet stop`, or choose another workspace with SIGNET_WORKSPACE"
            ) from error
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """The lock is free. The file stays: removing it would let two processes lock two files of one name."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
