"""All vectors of a model in one memory-mapped file that the searchers share; a cache that is updated after commits.

A searcher that finds committed vectors missing appends them under a file lock, first the records, then the header. A
crash in between leaves only bytes behind the counted end. A file that is damaged, or that belongs to a database with
another history (``store.vector_epochs``), is renamed and rebuilt; meanwhile queries use the ``vec0`` table. The file
format is described in ``store.vector_file``.

Source: docs/decisions.md 5; docs/performance.md "Recall targets"; docs/reliability.md R18.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt

from signet_actors.config.regular_file import open_regular
from signet_actors.errors import ConfigError
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import vectors
from signet_actors.store.vector_epochs import VectorEpochs, read_stored
from signet_actors.store.vector_file import (
    HEADER_BYTES,
    RECORD_NUMBERS,
    VectorFileHeader,
    read_header,
    record_bytes,
    vector_file,
)

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Records = npt.NDArray[np.int32]

_GROW_BYTES = 4 << 20
_READ_ROWS = 2000
_VECTOR_AT = 4
"""A vector begins after so many float32 places of its record, which hold its numbers."""
DEAD_PER_LIVE = 2
DEAD_ALLOWED = 4096


class VectorMatrix:
    """The vectors of one model. Call ``sync`` inside a snapshot, then read ``vectors`` and ``row_numbers``.

    ``newest`` is the last ``embeddings.seq`` of that snapshot; records above it were committed later.
    """

    def __init__(self, directory: Path, model: str, dimensions: int, database_id: str) -> None:
        self.model = model
        self.dimensions = dimensions
        self._database_id = database_id
        self._record_bytes = record_bytes(dimensions)
        self.path = vector_file(directory, model, dimensions)
        self._epochs = VectorEpochs()
        self._matched = False
        self._ahead = False
        self._map: mmap.mmap | None = None
        self._inode = 0
        self._verified = False
        self.count = 0
        self.last_seq = 0
        self.newest = 0
        self.generation = 0  # rises when the positions of records may have changed
        self._records: Floats = np.zeros((0, self._record_bytes // 4), np.float32)

    def sync(self, snapshot: Snapshot, *, max_rows: int) -> bool:
        """Add vectors committed in ``snapshot``, at most ``max_rows``; return False if some are still missing.

        Records of replaced or removed vectors stay until the next rebuild. Readers recognise them by ``row_numbers``.
        Raises ``OSError`` if the file cannot be written or is not usable.
        """
        newest = vectors.newest_seq(snapshot, self.model, self.dimensions)
        self.newest = newest or 0
        if newest is None:
            return True
        stored = read_stored(snapshot)
        if stored != self._epochs.stored:
            self._epochs, self._matched = VectorEpochs(stored), False
        if not self._refresh():
            self._rebuild()
        if not self._matched and self._is_ahead(snapshot):
            return False
        if self.last_seq >= newest:
            return True
        with self._locked() as descriptor:
            if not self._refresh():
                self._write_header(descriptor, VectorFileHeader(self._database_id, self.dimensions))
                self._refresh()
            appended = 0
            while appended < max_rows:
                limit = min(_READ_ROWS, max_rows - appended)
                rows = vectors.after(snapshot, self.model, self.dimensions, self.last_seq, limit)
                if not rows:
                    self._advance_last_seq(descriptor, newest)
                    return True
                self._append(descriptor, rows)
                appended += len(rows)
            return bool(self.last_seq >= newest)

    @property
    def vectors(self) -> Floats:
        """The vectors of all records, shape (count, dimensions); rows are not adjacent in memory."""
        return self._records[:, _VECTOR_AT : _VECTOR_AT + self.dimensions]

    def vectors_of(self, records: Ints | Records) -> Floats:
        """Return the vectors of ``records``, shape (len(records), dimensions).

        Whole records are adjacent, so ``take`` copies them twice as fast as an index into ``vectors`` does.
        """
        return self._records.take(records, axis=0)[:, _VECTOR_AT : _VECTOR_AT + self.dimensions]

    def row_numbers(self, start: int, stop: int) -> tuple[Ints, Ints]:
        """Return ``embeddings.seq`` and ``memories.seq`` of the records from ``start`` up to before ``stop``."""
        assert self._map is not None
        words = self._record_bytes // 8
        longs = np.frombuffer(self._map, np.int64, (stop - start) * words, HEADER_BYTES + start * self._record_bytes)
        narrow = longs.reshape(stop - start, words)[:, :2].copy()
        return narrow[:, 0], narrow[:, 1]

    def compact(self, live: int) -> bool:
        """Delete a file of mostly dead records, to be rebuilt; return True if it was deleted.

        ``live`` is the number of records that rows still refer to. Other searchers use the file that they have mapped
        until their next ``sync``.
        """
        if self.count <= DEAD_PER_LIVE * live + DEAD_ALLOWED:
            return False
        with self._locked():
            if not self._refresh() or self.count <= DEAD_PER_LIVE * live + DEAD_ALLOWED:
                return False  # another searcher was faster
            self.path.unlink(missing_ok=True)
        self._unmap()
        return True

    def close(self) -> None:
        self._unmap()

    def _is_ahead(self, snapshot: Snapshot) -> bool:
        """Return True if the file has numbers that the database had not given out in this snapshot.

        Another searcher may have added them after the snapshot began; then the next snapshot has them. Raises
        ``OSError`` if the next one has not.
        """
        if self.last_seq <= snapshot.last_number("embeddings"):
            self._matched, self._ahead = True, False
            return False
        self._unmap()
        if self._ahead:
            raise OSError(errno.ESTALE, "the vector file is ahead of the database", str(self.path))
        self._ahead = True
        return True

    def _append(self, descriptor: int, rows: list[tuple[int, int, bytes]]) -> None:
        padding = bytes(4 * (self.dimensions % 2))
        block = b"".join(RECORD_NUMBERS.pack(embedding, memory) + raw + padding for embedding, memory, raw in rows)
        header = self._read_header(descriptor)
        assert header is not None
        offset = HEADER_BYTES + header.records * self._record_bytes
        needed = offset + len(block)
        if os.fstat(descriptor).st_size < needed:
            os.ftruncate(descriptor, (needed // _GROW_BYTES + 1) * _GROW_BYTES)
        if os.pwrite(descriptor, block, offset) != len(block):
            raise OSError(errno.ENOSPC, "the vector file could not be extended", str(self.path))
        self._write_header(
            descriptor,
            header._replace(
                records=header.records + len(rows),
                last_seq=rows[-1][0],
                epoch=self._epochs.of(rows[-1][0]),
                checksum=zlib.crc32(block, header.checksum),
            ),
        )
        self._refresh()

    def _advance_last_seq(self, descriptor: int, seq: int) -> None:
        """Mark embeddings up to ``seq`` as seen; those without a record have no memory any more."""
        header = self._read_header(descriptor)
        if header is not None and header.last_seq < seq:
            self._write_header(descriptor, header._replace(last_seq=seq, epoch=self._epochs.of(seq)))
            self._refresh()

    def _refresh(self) -> bool:
        """Map all records that the header counts; return False if there is no valid file."""
        try:
            descriptor = open_regular(self.path, os.O_RDONLY)
        except (OSError, ConfigError):
            self._unmap()
            return False
        try:
            header = self._read_header(descriptor)
            if header is None:
                self._unmap()
                return False
            inode = os.fstat(descriptor).st_ino
            if inode != self._inode:
                self._unmap()
                self._inode, self._verified, self._matched = inode, False, False
            if not self._matched and header.epoch != self._epochs.of(header.last_seq):
                self._unmap()
                return False
            if header.records == self.count and self._map is not None:
                self.last_seq = header.last_seq
                return True
            needed = HEADER_BYTES + header.records * self._record_bytes
            if header.records < self.count:
                self._unmap()
            if self._map is None or len(self._map) < needed:
                self._map = mmap.mmap(descriptor, os.fstat(descriptor).st_size, prot=mmap.PROT_READ)
            if not self._verified:
                if zlib.crc32(memoryview(self._map)[HEADER_BYTES:needed]) != header.checksum:
                    self._unmap()
                    return False
                self._verified = True
            self._map_records(header)
            return True
        finally:
            os.close(descriptor)

    def _map_records(self, header: VectorFileHeader) -> None:
        assert self._map is not None
        n, words = header.records, self._record_bytes // 4
        self._records = np.frombuffer(self._map, np.float32, n * words, HEADER_BYTES).reshape(n, words)
        self.count, self.last_seq = n, header.last_seq

    def _unmap(self) -> None:
        self._records = np.zeros((0, self._record_bytes // 4), np.float32)
        self.count = self.last_seq = 0
        self.generation += 1
        self._map = None  # the memory is unmapped when the last array over it is garbage collected

    def _rebuild(self) -> None:
        """Rename a damaged file to ``….damaged`` and create an empty one, which ``sync`` fills."""
        with self._locked() as descriptor:
            if self._refresh():
                return
            if os.fstat(descriptor).st_size > 0:
                self.path.replace(self.path.with_suffix(".damaged"))
        with self._locked() as descriptor:
            if os.fstat(descriptor).st_size == 0:
                os.ftruncate(descriptor, _GROW_BYTES)
                self._write_header(descriptor, VectorFileHeader(self._database_id, self.dimensions))
        self._refresh()

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Open and lock the file for writing, and make sure that it is still the one at the path.

        Only its own directory is created: a workspace that was moved away must not come into being again.
        """
        self.path.parent.mkdir(mode=0o700, exist_ok=True)
        while True:
            try:
                descriptor = open_regular(self.path, os.O_RDWR | os.O_CREAT)
            except ConfigError:
                self.path.unlink(missing_ok=True)  # a link or FIFO; a directory stays, and the stored vectors answer
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                try:
                    same = os.fstat(descriptor).st_ino == self.path.stat().st_ino
                except FileNotFoundError:
                    same = False
                if same:
                    yield descriptor
                    return
            finally:
                os.close(descriptor)

    def _read_header(self, descriptor: int) -> VectorFileHeader | None:
        return read_header(descriptor, self._database_id, self.dimensions)

    def _write_header(self, descriptor: int, header: VectorFileHeader) -> None:
        if os.fstat(descriptor).st_size < HEADER_BYTES:
            os.ftruncate(descriptor, _GROW_BYTES)
        os.pwrite(descriptor, header.encode(), 0)
