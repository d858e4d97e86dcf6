"""One daemon per database: advisory locks that the kernel releases when the holding process exits.

The decisive lock is on the database's own directory: it moves with the database and cannot be removed without it. The
lock on the database file itself covers a bind mount of that file into another directory. The lock file in ``.daemon``
names the holder (the pid, and the kind of a holder that is no daemon), and locks the workspace while the directory is
missing.

Source: docs/reliability.md R10.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

from signet_actors.config.regular_file import open_regular, read_regular
from signet_actors.config.workspace import Workspace
from signet_actors.config.workspace_holder import MAX_HOLDER_BYTES
from signet_actors.errors import ConfigError, WorkspaceLocked

_KERNEL_LOCKS = Path("/proc/locks")
_ATTEMPTS = 5
_RETRY_S = 0.01


class LockingTool(NamedTuple):
    """A process that holds a workspace without being its daemon: a restore, a check or a repair."""

    pid: int
    tool: str

    def __str__(self) -> str:
        return f"a {self.tool} (pid {self.pid})"

    def refusal(self, workspace: Path) -> str:
        """Return why nothing else can use the workspace now, as a message for the user."""
        return f"{self} is running on {workspace}; wait until it has ended"


class FileLock:
    """An exclusive lock on a file, from ``acquire`` to ``release`` or the end of this process."""

    def __init__(self, path: Path, *, tool: str = "") -> None:
        self.path = path
        self._tool = tool
        self._descriptor = -1

    def acquire(self) -> None:
        """Lock the file, and write pid and ``tool`` into it. Raises WorkspaceLocked, which names them, ConfigError."""
        descriptor = open_regular(self.path, os.O_RDWR | os.O_CREAT)
        _lock(descriptor, self.path.parent.parent)
        os.ftruncate(descriptor, 0)
        with contextlib.suppress(OSError):  # on a full disk; the kernel's list of locks names the holder, too
            os.pwrite(descriptor, f"{os.getpid()} {self._tool}".strip().encode() + b"\n", 0)
        self._descriptor = descriptor

    def holds_path(self) -> bool:
        """Return True if the locked file is the one at the path."""
        try:
            return self._descriptor >= 0 and os.path.samestat(os.fstat(self._descriptor), self.path.stat())
        except OSError:
            return False

    def release(self) -> None:
        """Release the lock. The file stays: if it were removed, two processes could lock two files of the same name."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class WorkspaceLock:
    """The lock on the workspace and its database, from ``acquire`` to ``release`` or the end of this process.

    Child processes do not inherit it. Both directories must exist; the database need not. ``tool`` says what the holder
    is, such as ``restore``; it is empty for a daemon.
    """

    def __init__(self, workspace: Workspace, *, tool: str = "") -> None:
        self._workspace = workspace
        self._file = FileLock(workspace.lock_file, tool=tool)
        self._directory = -1
        self._database = -1

    def acquire(self) -> None:
        """Take all locks. Raises WorkspaceLocked that names the holder, or ConfigError without lock support."""
        directory = self._workspace.memory_dir
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        _lock(descriptor, self._workspace.root)
        try:
            self._file.acquire()
        except BaseException:
            os.close(descriptor)
            raise
        self._directory = descriptor
        try:
            self.lock_database()
        except BaseException:
            self.release()
            raise

    def lock_database(self) -> None:
        """Lock the current database file, if it exists; release the lock on an earlier file.

        No database connection may be open in this process meanwhile: closing any descriptor of a file releases the
        POSIX locks that SQLite holds on it. Only on Linux, where such a lock and SQLite's locks do not conflict.

        Raises WorkspaceLocked and ConfigError like ``acquire``.
        """
        if sys.platform != "linux":
            return
        try:
            descriptor = open_regular(self._workspace.database, os.O_RDONLY)
        except (OSError, ConfigError):  # it does not exist yet, or is not a regular file, which the writer refuses
            return
        found = os.fstat(descriptor)
        held = self._database >= 0 and os.path.samestat(found, os.fstat(self._database))
        if held or found.st_nlink > 1:  # the writer refuses a file with a second name
            os.close(descriptor)
            return
        _lock(descriptor, self._workspace.root)
        if self._database >= 0:
            os.close(self._database)
        self._database = descriptor

    def renew_file(self) -> None:
        """Lock a new lock file if the old one was removed; the lock on the directory is held throughout."""
        if self._file.holds_path():
            return
        renewed = FileLock(self._workspace.lock_file)
        renewed.acquire()
        self._file.release()
        self._file = renewed

    def release(self) -> None:
        """Release all locks; no connection to the database may be open."""
        self._file.release()
        for descriptor in (self._directory, self._database):
            if descriptor >= 0:
                os.close(descriptor)
        self._directory = self._database = -1


def _lock(descriptor: int, workspace: Path) -> None:
    """Lock the open file, retrying while it is only looked at; or close it and raise WorkspaceLocked, ConfigError."""
    for attempt in range(_ATTEMPTS):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if attempt + 1 < _ATTEMPTS:
                time.sleep(_RETRY_S)
                continue
            pid = holder(descriptor)
            os.close(descriptor)
            if (tool := named_tool(Workspace(workspace))) is not None and tool.pid == pid:
                raise WorkspaceLocked(tool.refusal(workspace)) from error
            raise WorkspaceLocked(
                f"another daemon (pid {pid or 'unknown'}) runs on the workspace {workspace} or its database; "
                "stop it with `signet stop`, or choose another workspace with SIGNET_WORKSPACE"
            ) from error
        except OSError as error:
            os.close(descriptor)
            raise ConfigError(
                f"{workspace} cannot be locked ({error.strerror}); a workspace must be on a local file system"
            ) from error
        return


def holder(descriptor: int) -> int | None:
    """Return the pid of the process that locks an open file, from the kernel's list or else from the file's content."""
    if (pid := kernel_holder(descriptor)) is not None:
        return pid
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(os.pread(descriptor, MAX_HOLDER_BYTES, 0).split()[0])
    return None


def kernel_holder(descriptor: int) -> int | None:
    """Return the pid of the process that locks an open file; None if it is in another container, or on macOS."""
    inode = os.fstat(descriptor).st_ino
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in _KERNEL_LOCKS.read_text().splitlines():
            fields = line.split()
            if fields[1] == "FLOCK" and fields[3] == "WRITE" and fields[5].rpartition(":")[2] == str(inode):
                return int(fields[4])
    return None


def named_tool(workspace: Workspace) -> LockingTool | None:
    """Return the tool that the lock file names; None if it names a daemon. The lock itself is not checked."""
    with contextlib.suppress(OSError, ConfigError, ValueError):
        pid, tool = read_regular(workspace.lock_file, MAX_HOLDER_BYTES).decode().split()
        return LockingTool(int(pid), tool)
    return None
