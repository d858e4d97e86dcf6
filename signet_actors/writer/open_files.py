"""Compare the database files as the writer opened them with what is at their paths, before each commit.

The database and its directory, on which the workspace lock is, must stay the same for as long as the daemon runs. The
log and its index must stay for as long as this process runs; the next one may find them checkpointed and removed. A
file that another program truncated in place is the same file without its content; its size shows that.

Source: docs/reliability.md R26; https://sqlite.org/walformat.html, "The WAL-Index Header".
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from signet_actors.config.workspace import Workspace
from signet_actors.domain.backups import newest_first
from signet_actors.errors import ActorExit, ExitCode
from signet_actors.protocol.control import FileIdentity, FilesOpened
from signet_actors.runtime.file_identity import displaced, identify
from signet_actors.store.engine import WriterEngine
from signet_actors.store.sqlite.checkpoint import PAGE_BYTES
from signet_actors.store.sqlite.database_files import nonempty_logs, refuse_unsafe_files, sibling

_LOG_HEADER_BYTES: Final = 32
_FRAME_HEADER_BYTES: Final = 24
_INDEX_HEADER: Final = struct.Struct("=14xHII")


class _LogIndex(NamedTuple):
    """The page size, the pages in the log, and the pages of the database, all as of the last commit."""

    page_bytes: int
    frames: int
    pages: int


class FileSizes:
    """The smallest sizes that the database and its log can have.

    The sizes come from the check before each commit, which costs no further system call. Only a size that looks too
    small is compared with the index of the log (``-shm``), because another program may have checkpointed or vacuumed.

    ``log_frames``: the pages in the log after the last commit of this process. ``truncated``: which file was truncated,
    in words; it stays set.
    """

    def __init__(self, database: Path) -> None:
        self.log_frames = 0
        self.truncated: str | None = None
        self._database = str(database)
        self._log = str(sibling(database, "-wal"))
        self._index_path = sibling(database, "-shm")
        self._index: int | None = None
        self._database_bytes = 0

    def check(self, path: str, size: int) -> str | None:
        """Return, in words, that the file at ``path`` was truncated to ``size``; None if it was not."""
        if path == self._database:
            if size >= self._database_bytes:
                self._database_bytes = size
            elif self._is_too_small(size, log=False):
                self.truncated = f"{path} was truncated to {size} bytes"
            else:
                self._database_bytes = size
        elif (
            path == self._log and size < _log_bytes(self.log_frames, PAGE_BYTES) and self._is_too_small(size, log=True)
        ):
            self.truncated = f"{path} was truncated to {size} bytes"
        return self.truncated

    def note_checkpoint(self, *, log_in_use: bool) -> None:
        """Record a checkpoint of this process, which may shrink the database; without readers the log starts again."""
        self._database_bytes = 1
        if not log_in_use:
            self.log_frames = 0

    def _is_too_small(self, size: int, *, log: bool) -> bool:
        index = self._read_index()
        if index is None:
            return size == 0
        # The index is younger than ``size``: another program may have written since, and writes the file first.
        with contextlib.suppress(OSError):
            size = os.stat(self._log if log else self._database).st_size
        if not log and size == 0:
            return True
        return size < (_log_bytes(index.frames, index.page_bytes) if log else index.pages * index.page_bytes)

    def _read_index(self) -> _LogIndex | None:
        """Return what SQLite's processes share about the log; None if it cannot be read.

        The descriptor stays open: closing it would release the locks that SQLite holds on the file.
        """
        try:
            if self._index is None:
                self._index = os.open(self._index_path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            page_bytes, frames, pages = _INDEX_HEADER.unpack(os.pread(self._index, _INDEX_HEADER.size, 0))
        except (OSError, struct.error):
            return None
        return _LogIndex((page_bytes & 0xFE00) | (page_bytes & 1) << 16, frames, pages)


def _log_bytes(frames: int, page_bytes: int) -> int:
    """Return the size of a log of ``frames`` pages; 0 for none, because the header is written with the first page."""
    return _LOG_HEADER_BYTES + frames * (_FRAME_HEADER_BYTES + page_bytes) if frames else 0


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
        with contextlib.suppress(OSError):
            if newest_first(os.listdir(self._workspace.backup_dir)):
                yield self._workspace.backup_dir
        yield from sorted(self._workspace.memory_dir.glob("aside-*"))

    def record_opened(self, engine: WriterEngine | None) -> FilesOpened:
        """Remember the open files, and return them for the supervisor; later starts then expect a database.

        Raises ActorExit if the database was replaced while it was being opened.
        """
        database = self._workspace.database
        for path in (self._workspace.memory_dir, database):
            found = identify(path)
            if found is None or found != self._known.setdefault(str(path), found):
                raise ActorExit(ExitCode.IO_ERROR, f"{path} was replaced while it was being opened")
        if engine is not None:
            if engine.has_moved():
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
