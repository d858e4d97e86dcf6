"""Compare the database files as the writer opened them with what is at their paths, before each commit.

The database and its directory, on which the workspace lock is, must stay the same for as long as the daemon runs. The
log and its index must stay for as long as this process runs; the next one may find them checkpointed and removed.

Source: docs/reliability.md R26.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from signet_actors.config.workspace import Workspace
from signet_actors.domain.backups import newest_first
from signet_actors.errors import ActorExit, ExitCode
from signet_actors.protocol.control import FileIdentity, FilesOpened
from signet_actors.runtime.file_identity import displaced, identify
from signet_actors.store.errors import Connection
from signet_actors.store.sqlite.connect import has_moved
from signet_actors.store.sqlite.database_files import nonempty_logs, refuse_unsafe_files
from signet_actors.writer.file_sizes import FileSizes


class OpenFiles:
    """``known``: the files that earlier writers of this daemon opened; a different file at these paths is refused.

    ``linked`` is called once for each file that is found to have more than one name while the daemon runs.
    """

    def __init__(
        self, workspace: Workspace, known: Sequence[FileIdentity], *, linked: Callable[[str], None] | None = None
    ) -> None:
        self._workspace = workspace
        self._linked = linked
        self._known_links: set[str] = set()
        self._known = {file.path: file for file in known}
        self._temporary: list[FileIdentity] = []
        self._compared: tuple[FileIdentity, ...] = tuple(known)
        self.sizes = FileSizes(workspace.database)

    @property
    def may_create(self) -> bool:
        """Return whether a missing database means a first start: False if any trace of an earlier one exists."""
        return str(self._workspace.database) not in self._known and next(self._traces(), None) is None

    def refuse_unsafe(self) -> None:
        """Raise ConfigError if a file is not safe to open.

        A second name (hard link) is tolerated for a database that this daemon had open already, because a snapshot
        program may have added it.
        """
        refuse_unsafe_files(self._workspace.database, links_allowed=str(self._workspace.database) in self._known)

    def missing_message(self, found: str) -> str:
        """Return what to tell the user about a database that is missing or empty and must not be created."""
        database = self._workspace.database
        present = [*([database] if database.exists() else []), *self._traces()]
        return (
            f"{found}, but this workspace has had a database: put the file back or run `signet restore latest`; "
            f"to start with an empty database, move away or remove {' and '.join(map(str, present))}"
        )

    def _traces(self) -> Iterator[Path]:
        """Yield what shows that this workspace has had a database: a note, a log with content, backups, copies."""
        if self._workspace.database_marker_file.exists():
            yield self._workspace.database_marker_file
        yield from nonempty_logs(self._workspace.database)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            if newest_first(os.listdir(self._workspace.backup_dir)):
                yield self._workspace.backup_dir
        yield from sorted(self._workspace.memory_dir.glob("aside-*"))

    def record_opened(self, connection: Connection | None) -> FilesOpened:
        """Remember the open files, and return them for the supervisor; later starts then expect a database.

        Raises ActorExit if the database was replaced while it was being opened.
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
            self.sizes.note_checkpoint(log_in_use=True)  # a restore or migration may have changed the size
        with contextlib.suppress(OSError):
            self._workspace.database_marker_file.touch(mode=0o600)
        return self._opened()

    def record_closed(self) -> FilesOpened:
        """Forget the log, which is closed now; return the files that are still open."""
        self._temporary = []
        return self._opened()

    def displaced(self) -> str | None:
        """Return, in words, which file is no longer at its path or was truncated; None while all are in order."""
        return self.sizes.truncated or displaced(self._compared, inspect=self._inspect)

    def truncated(self) -> str | None:
        """Return, in words, which file was truncated in place; None if none was."""
        self.displaced()
        return self.sizes.truncated

    def log_is_ours(self) -> bool:
        """Return False if another log is at the path of ours: another program may be writing the same file."""
        return all(identify(Path(file.path)) in (None, file) for file in self._temporary)

    def _inspect(self, path: str, found: os.stat_result) -> str | None:
        if found.st_nlink > 1 and stat.S_ISREG(found.st_mode) and path not in self._known_links:
            self._known_links.add(path)
            if self._linked is not None:
                self._linked(path)
        return self.sizes.check(path, found.st_size)

    def _opened(self) -> FilesOpened:
        self._compared = (*self._known.values(), *self._temporary)
        return FilesOpened(list(self._known.values()), self._temporary)
