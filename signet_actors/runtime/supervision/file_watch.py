"""The files that a running daemon cannot do without, watched by its supervisor.

The database's files are reported by the process that opened them. A missing one ends the daemon: what its processes
would still store or read is in a file that no later process finds. What lies below ``.daemon`` is put back.

Source: docs/reliability.md R26.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signet_actors.protocol.control import FileIdentity, FilesOpened
from signet_actors.runtime.file_identity import displaced
from signet_actors.runtime.supervision.children import Child, Children
from signet_actors.runtime.supervision.daemon_files import DaemonFiles

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

CHECK_INTERVAL_MS = 1000
_REMEDY = "put it back and start the daemon again, or `signet restore latest`"


class FileWatch:
    """What the processes of ``children`` have opened; ``daemon_files`` is None for a tree without a workspace."""

    def __init__(self, children: Children, daemon_files: DaemonFiles | None, log: FilteringBoundLogger) -> None:
        self._children = children
        self._daemon_files = daemon_files
        self._log = log
        self._lasting = {} if daemon_files is None else {file.path: file for file in daemon_files.locked_directory()}
        self._next_check_ns = 0

    @property
    def lasting(self) -> tuple[FileIdentity, ...]:
        """The files that must stay for as long as the daemon runs."""
        return tuple(self._lasting.values())

    def record_opened(self, child: Child, files: FilesOpened) -> None:
        """``child`` has opened these. The first file of a path is the one that stays."""
        for file in files.lasting:
            self._lasting.setdefault(file.path, file)
        child.files = files.temporary

    def missing(self, *, exited: Child | None = None) -> str | None:
        """Return in words which file of the database is no longer at its path; None while all are.

        The temporary ones count while a process has them open, be it a reader, and for a child that has just
        ``exited``: a new process would make new ones, and readers would go on with those that were removed.
        """
        in_use = any(child.process.exists and (child.files or child.spec.reads) for child in self._children)
        temporary = [file for child in self._children if in_use or child is exited for file in child.files]
        found = displaced([*self._lasting.values(), *temporary])
        return None if found is None else f"{found} while the daemon ran; {_REMEDY}"

    def check(self, now_ns: int) -> tuple[str | None, bool]:
        """Check all files once per ``CHECK_INTERVAL_MS``; return ``missing()`` and whether the warning changed."""
        if now_ns < self._next_check_ns:
            return None, False
        self._next_check_ns = now_ns + CHECK_INTERVAL_MS * 1_000_000
        missing = self.missing()
        if missing is not None or self._daemon_files is None:
            return missing, False
        warning = self._daemon_files.restore()
        changed = warning != self._children.warning
        self._children.warning = warning
        if changed and warning:
            self._log.error("daemon_files_removed", detail=warning)
        return None, changed
