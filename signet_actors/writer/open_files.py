"""The database's files as the writer opened them, compared with what stands at their paths before each commit.

The database and its directory, which the workspace lock is on, must stay for as long as the daemon runs; the log and
its index for as long as this process does, because the next one may find them folded back and removed.

Source: docs/reliability.md R26.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from signet_actors.config.workspace import Workspace
from signet_actors.errors import ActorExit, ExitCode
from signet_actors.protocol.control import FileIdentity, FilesOpened
from signet_actors.runtime.file_identity import displaced, identify
from signet_actors.store.connect import has_moved
from signet_actors.store.failures import Connection


class OpenFiles:
    """``known`` are the files that earlier writers of this daemon have opened: no other may take their place."""

    def __init__(self, workspace: Workspace, known: Sequence[FileIdentity]) -> None:
        self._workspace = workspace
        self._known = {file.path: file for file in known}
        self._temporary: list[FileIdentity] = []
        self._compared: tuple[FileIdentity, ...] = tuple(known)

    @property
    def may_create(self) -> bool:
        """Return whether a missing database is a first start: never while this workspace is known to have had one."""
        database = self._workspace.database
        return str(database) not in self._known and not self._workspace.database_note.exists()

    def missing(self, found: str) -> str:
        """Return what to tell the user about a database that is missing or empty and may not be created."""
        present = [path for path in (self._workspace.database, self._workspace.database_note) if path.exists()]
        return (
            f"{found}, and this workspace has had a database: put the file back, or `signet restore latest`; "
            f"to begin with an empty one, remove {' and '.join(map(str, present))}"
        )

    def note(self, connection: Connection | None) -> FilesOpened:
        """Remember the open files, and return them for the supervisor; later starts expect a database.

        Raises ActorExit when the database was replaced while it was being opened.
        """
        database = self._workspace.database
        for path in (self._workspace.memory_dir, database):
            found = identify(path)
            if found is None or found != self._known.setdefault(str(path), found):
                raise ActorExit(ExitCode.IO_ERROR, f"{path} was replaced while it was being opened")
        if connection is not None:
            if has_moved(connection):
                raise ActorExit(ExitCode.IO_ERROR, f"{database} was replaced while it was being opened")
            logs = (identify(database.with_name(database.name + suffix)) for suffix in ("-wal", "-shm"))
            self._temporary = [file for file in logs if file is not None]
        with contextlib.suppress(OSError):
            self._workspace.database_note.touch(mode=0o600)
        return self._opened()

    def closed(self) -> FilesOpened:
        """The log is not open any more; return what still is."""
        self._temporary = []
        return self._opened()

    def displaced(self) -> str | None:
        """Return in words which file is no longer at its path; None while all are."""
        return displaced(self._compared)

    def log_is_ours(self) -> bool:
        """Return False where another log stands at the path of ours: another program may be writing the same file."""
        return all(identify(Path(file.path)) in (None, file) for file in self._temporary)

    def _opened(self) -> FilesOpened:
        self._compared = (*self._known.values(), *self._temporary)
        return FilesOpened(list(self._known.values()), self._temporary)
