"""Find a database or a log that another program truncated in place: the file is the same, its content is lost.

The sizes come from the check before each commit, which costs no further system call. Only a size that looks too small
is compared with the index of the log (``-shm``), because another program may have checkpointed or vacuumed.

Source: docs/reliability.md R26; https://sqlite.org/walformat.html, "The WAL-Index Header".
"""

from __future__ import annotations

import contextlib
import os
import struct
from pathlib import Path
from typing import Final, NamedTuple

from signet_actors.store.sqlite.checkpoint import PAGE_BYTES
from signet_actors.store.sqlite.database_files import sibling

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
