"""Watch the files that a running daemon depends on.

Each process reports the database files that it opened. If one of them is missing or replaced, the daemon stops: it
would write to a file that no later process finds. Missing files in ``.daemon`` are restored.

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
    """The files that the ``children`` have opened; ``daemon_files`` is None for a tree without a workspace."""

    def __init__(self, children: Children, daemon_files: DaemonFiles | None, log: FilteringBoundLogger) -> None:
        self._children = children
        self._daemon_files = daemon_files
        self._log = log
        self._lasting = {} if daemon_files is None else {file.path: file for file in daemon_files.locked_directory()}
        self._next_check_ns = 0

    @property
    def lasting(self) -> tuple[FileIdentity, ...]:
        """The files that must stay in place for as long as the daemon runs."""
        return tuple(self._lasting.values())

    def record_opened(self, child: Child, files: FilesOpened) -> None:
        """Record the opened files, the first of a path; lock the database. Raises WorkspaceLocked, ConfigError."""
        for file in files.lasting:
            self._lasting.setdefault(file.path, file)
        child.files = files.temporary
        if self._daemon_files is not None and files.lasting:
            self._daemon_files.lock_database()

    def missing(self, *, exited: Child | None = None) -> str | None:
        """Return a description of a database file that is no longer at its path; None while all are.

        Temporary files (the WAL and its index) count while any process, a reader included, has the database open. They
        also count for a child that has just ``exited``: a new process would create new ones, while readers kept the
        removed ones. A truncated file is found by the writer, which knows the sizes and reports it with its heartbeat.
        """
        in_use = any(child.process.exists and (child.files or child.spec.reads) for child in self._children)
        temporary = [file for child in self._children if in_use or child is exited for file in child.files]
        found = displaced([*self._lasting.values(), *temporary])
        if found is None and any(child.counters.get("truncated") for child in self._children):
            found = "memories.db or its log was truncated"
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
