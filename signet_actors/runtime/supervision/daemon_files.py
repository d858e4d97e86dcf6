"""The files by which other programs find a running daemon: its pid, its address, its lock file.

They are in ``.daemon``, which holds only what can be recreated. If they are removed while the daemon runs, they are
written again.

Source: docs/reliability.md R10 and R26; docs/operations.md "Files".
"""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from signet_actors.config.regular_file import open_regular, read_regular
from signet_actors.config.workspace import Workspace
from signet_actors.domain.timestamps import iso
from signet_actors.errors import ConfigError, WorkspaceLocked
from signet_actors.protocol.control import FileIdentity
from signet_actors.runtime.file_draft import replace_file
from signet_actors.runtime.file_identity import displaced, identify
from signet_actors.runtime.supervision.workspace_lock import WorkspaceLock

_MAX_PID_BYTES: Final = 32
_START_BYTES = 1 << 20
"""What a start on a full disk takes from the reserve: these files, the index of the log, and the first commit."""


class FormerRun(NamedTuple):
    """A run of the daemon that ended without a stop: its pid, when it started, and when it last wrote anything."""

    former_pid: int
    started_at: str
    last_write_at: str


class DaemonFiles:
    """The supervisor's files in ``.daemon``, from ``write`` to ``remove``; ``lock`` must be held meanwhile."""

    def __init__(self, workspace: Workspace, lock: WorkspaceLock) -> None:
        self.workspace = workspace
        self._lock = lock
        self._address: bytes | None = None
        self._files: list[FileIdentity] = []

    def write(self, host: str, port: int, *, socket: str, tls: bool) -> None:
        """Write the pid and the address; on a full disk, use a part of the disk reserve. Raises OSError.

        ``socket``: the path of the Unix socket on which it listens, too, without TLS.
        """
        note = {"host": host, "port": port, "pid": os.getpid(), "socket": socket, "tls": tls}
        self._address = msgspec.json.encode(note) + b"\n"
        notes = ((self.workspace.pid_file, f"{os.getpid()}\n".encode()), (self.workspace.address_file, self._address))
        for path, content in notes:
            try:
                _write_private(path, content)
            except OSError as error:
                if error.errno not in {errno.ENOSPC, errno.EDQUOT} or not self._shrink_reserve():
                    raise
                _write_private(path, content)
        paths = (self.workspace.pid_file, self.workspace.address_file, self.workspace.lock_file)
        self._files = [found for path in paths if (found := identify(path)) is not None]

    def former_run(self) -> FormerRun | None:
        """Return the run that was killed and left its pid file, if any. Called before this run writes anything."""
        try:
            pid = int(read_regular(self.workspace.pid_file, _MAX_PID_BYTES))
            started = self.workspace.pid_file.stat().st_mtime
        except (OSError, ConfigError, ValueError):
            return None
        written = [started]
        database = self.workspace.database
        for path in (
            *self.workspace.log_dir.glob("daemon-*.log"),
            database,
            database.with_name(f"{database.name}-wal"),
        ):
            with contextlib.suppress(OSError):
                written.append(path.stat().st_mtime)
        return FormerRun(pid, iso(int(started * 1000)), iso(int(max(written) * 1000)))

    def _shrink_reserve(self) -> bool:
        """Free a part of the disk reserve, so that the daemon can start; return whether there was any."""
        try:
            with os.fdopen(open_regular(self.workspace.disk_reserve_file, os.O_WRONLY), "wb") as reserve:
                size = os.fstat(reserve.fileno()).st_size
                reserve.truncate(max(0, size - _START_BYTES))
        except (OSError, ConfigError):
            return False
        return size > 0

    def locked_directory(self) -> list[FileIdentity]:
        """Return the identity of the directory that the workspace lock is on, as a list; empty where it is missing."""
        found = identify(self.workspace.memory_dir)
        return [] if found is None else [found]

    def lock_database(self) -> None:
        """Lock the database file, which the writer may just have created. Raises WorkspaceLocked, ConfigError."""
        self._lock.lock_database()

    def restore(self) -> str:
        """Write removed files again; return what failed as text, empty when every file is in place."""
        if displaced(self._files) is not None and self._address is not None:
            note = msgspec.json.decode(self._address)
            try:
                self.workspace.ensure()
                self._lock.renew_file()
                self.write(note["host"], note["port"], socket=note["socket"], tls=note["tls"])
            except (OSError, ConfigError, WorkspaceLocked) as error:
                return f"{self.workspace.daemon_dir} was changed and cannot be restored: {error}"
        return ""

    def remove(self) -> None:
        """Remove the pid and address files, unless they belong to another daemon."""
        for note in self._files:
            path = Path(note.path)
            if path != self.workspace.lock_file and displaced([note]) is None:
                with contextlib.suppress(OSError):
                    path.unlink()


def _write_private(path: Path, content: bytes) -> None:
    try:
        replace_file(path, content, durable=False)
    except IsADirectoryError:
        raise ConfigError(f"{path} is a directory but must be a regular file; remove it") from None
