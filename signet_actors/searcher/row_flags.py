"""The flags and subjects of all memories in one memory-mapped file that the searchers share.

The file is a cache: a record holds what ``text_flags`` says of a row's content, and a check number made from the
content's SHA-256. A record whose check number is wrong (new row, changed content, another database, a damaged file) is
computed again from the content, so the file needs no header, no lock and no history. Two searchers that write the same
record write the same bytes.

Source: docs/quality.md "Context and priors".
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from signet_actors.config.regular_file import open_regular
from signet_actors.domain.ranking.text_flags import MAX_CHARS, text_flags
from signet_actors.errors import ConfigError
from signet_actors.searcher.columns import MemoryColumns
from signet_actors.store.engine import Snapshot
from signet_actors.store.errors import DAMAGED
from signet_actors.store.reads.contents import beginnings

Rows = npt.NDArray[np.int64]

FILE_NAME: Final = "text-flags-4"
"""The number changes when ``text_flags`` returns something else for a text."""
RECORD: Final = np.dtype([("check", "<u4"), ("subject", "<u4"), ("flags", "<u4")])
_SCANNED_ROWS: Final = 65_536
"""One call checks at most this many new records, which takes about a millisecond."""
_GROWTH_ROWS: Final = 65_536


class RowFlags:
    """The records as one searcher sees them. Call ``sync`` after the columns are synced.

    ``records``: shape (>= columns.size,), dtype ``RECORD``, read-only. ``complete`` is False while records are missing;
    a missing record counts as a row without flags and subject.
    """

    def __init__(self, directory: Path, columns: MemoryColumns) -> None:
        self._columns = columns
        self._map: mmap.mmap | None = None
        self._descriptor = _open(directory / FILE_NAME)
        self._private = self._descriptor < 0  # the file cannot be used: the records are in this process's memory
        self.records = np.zeros(0, RECORD)
        self.complete = True
        self._clear()

    def _clear(self) -> None:
        self._generation = self._columns.generation
        self._checked = 1  # rows below are checked; numbers begin at 1
        self._seen = 0

    @property
    def pending(self) -> int:
        """The number of rows whose record is not checked yet."""
        return 0 if self.complete else self._columns.size - self._checked

    @property
    def changes_seen(self) -> int:
        """How many entries of ``columns.changed`` have their records."""
        return self._seen

    @property
    def checked(self) -> int:
        """All rows below this one have their records, apart from changes since the last call of ``sync``."""
        return self._checked

    def sync(self, snapshot: Snapshot, *, max_rows: int) -> None:
        """Check the records of new and changed rows, and compute up to ``max_rows`` missing ones."""
        columns = self._columns
        if self._generation != columns.generation:
            self._clear()
        if self._checked >= columns.size and self._seen == len(columns.changed):
            return
        if columns.size > len(self.records):
            self._extend(columns.size)
        changed = np.unique(np.array(columns.changed[self._seen :], np.int64))
        stop = min(columns.size, self._checked + _SCANNED_ROWS)
        rows = np.concatenate((changed[changed < self._checked], np.arange(self._checked, stop)))
        missing = rows[(self.records["check"][rows] != self._expected(rows)) & columns.live[rows]]
        now = missing[:max_rows]
        if len(now):
            self._write(now, self._computed(snapshot, now))
        left = missing[max_rows:]
        if not len(left):
            self._checked, self._seen = max(stop, self._checked), len(columns.changed)
        elif left[0] >= self._checked:
            self._checked, self._seen = int(left[0]), len(columns.changed)
        self.complete = not len(left) and self._checked >= columns.size

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _expected(self, rows: Rows) -> npt.NDArray[np.uint32]:
        records = self.records[rows]
        return _check(self._columns.content_code[rows], records["subject"], records["flags"])

    def _computed(self, snapshot: Snapshot, rows: Rows) -> npt.NDArray[np.void]:
        texts = _texts(snapshot, rows.tolist())
        records = np.zeros(len(rows), RECORD)
        for at, seq in enumerate(rows.tolist()):
            records["flags"][at], records["subject"][at] = text_flags(texts.get(seq, ""))
        records["check"] = _check(self._columns.content_code[rows], records["subject"], records["flags"])
        return records

    def _write(self, rows: Rows, records: npt.NDArray[np.void]) -> None:
        if not self._private:
            try:
                self._write_file(rows, records)
            except OSError:
                self._use_memory(len(self.records))
        if self._private:
            self.records[rows] = records

    def _write_file(self, rows: Rows, records: npt.NDArray[np.void]) -> None:
        breaks = np.flatnonzero(np.diff(rows) != 1) + 1
        for run, block in zip(np.split(rows, breaks), np.split(records, breaks), strict=True):
            os.pwrite(self._descriptor, block.tobytes(), int(run[0]) * RECORD.itemsize)

    def _extend(self, size: int) -> None:
        size = (size // _GROWTH_ROWS + 1) * _GROWTH_ROWS
        if not self._private:
            try:
                self._map_file(size * RECORD.itemsize)
            except OSError:
                self._private = True
        if self._private:
            self._use_memory(size)

    def _map_file(self, size: int) -> None:
        """Map the first ``size`` bytes of the file. A file that is removed stays in use by those that have it open."""
        if os.fstat(self._descriptor).st_size < size:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._descriptor, 0, size)
            else:
                os.pwrite(self._descriptor, b"\0", size - 1)  # macOS; the last byte of a record is 0 in any case
        self._map = mmap.mmap(self._descriptor, size, prot=mmap.PROT_READ)
        self.records = np.frombuffer(self._map, RECORD)

    def _use_memory(self, size: int) -> None:
        records = np.zeros(size, RECORD)
        records[: len(self.records)] = self.records
        self.records, self._map, self._private = records, None, True


def _texts(snapshot: Snapshot, rows: list[int]) -> dict[int, str]:
    """Return the beginnings of the texts; a damaged row is left out, so that it does not stop queries for others."""
    try:
        return beginnings(snapshot, rows, MAX_CHARS)
    except (UnicodeDecodeError, *DAMAGED):
        if len(rows) == 1:
            return {}
        middle = len(rows) // 2
        return _texts(snapshot, rows[:middle]) | _texts(snapshot, rows[middle:])


def _check(
    content: npt.NDArray[np.uint32], subject: npt.NDArray[np.uint32], flags: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]:
    """Return the check numbers of records."""
    mixed: npt.NDArray[np.uint32] = content ^ (subject * np.uint32(0x9E3779B1)) ^ (flags * np.uint32(0x85EBCA6B))
    return mixed ^ np.uint32(0x27D4EB2F)


def _open(path: Path) -> int:
    """Return a descriptor of the file, -1 if it cannot be opened for writing."""
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        return open_regular(path, os.O_RDWR | os.O_CREAT)
    except (OSError, ConfigError):
        return -1
