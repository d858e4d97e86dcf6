"""Disk space in reserve, to forget and purge while the disk is full. Source: docs/reliability.md R4."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

_MIN_FREE_FACTOR = 8
"""The reserve is allocated only if this many times its size is free: it must not fill a small disk itself."""


class DiskReserve:
    """A file of ``size`` bytes that is deleted when the disk is full, and created again when there is room."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        self.size = size

    def allocate(self) -> bool:
        """Create the reserve if there is ample room; return whether it exists. Never raises."""
        if not self.size:
            return False
        try:
            if self._is_allocated():
                return True
            if shutil.disk_usage(self.path.parent).free < _MIN_FREE_FACTOR * self.size:
                return False
            self.path.unlink(missing_ok=True)  # it may be a link, a FIFO or another name of another program's file
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            try:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(descriptor, 0, self.size)
                else:
                    os.write(descriptor, bytes(self.size))
            finally:
                os.close(descriptor)
        except OSError:
            self.release()
            return False
        return True

    def _is_allocated(self) -> bool:
        try:
            found = os.lstat(self.path)
        except FileNotFoundError:
            return False
        return stat.S_ISREG(found.st_mode) and found.st_nlink == 1 and found.st_size == self.size

    def release(self) -> None:
        """Delete the reserve. Never raises."""
        if not self.size:
            return
        try:
            self.path.unlink(missing_ok=True)
        except OSError:
            return


NO_RESERVE = DiskReserve(Path("no-reserve"), 0)
"""A reserve of size 0, which touches no file."""
