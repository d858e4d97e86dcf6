"""The shared vector file of one model: its path, its format, and its check.

Layout: a page of header, then records of ``embeddings.seq`` (int64), ``memories.seq`` (int64) and the vector (float32),
in order of ``embeddings.seq``. The header has a checksum of itself and a running checksum of the records.

Source: searcher/DESIGN.md "The vector file"; docs/reliability.md R18.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
import time
import zlib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from signet_actors.config.regular_file import open_regular
from signet_actors.errors import ConfigError
from signet_actors.store.engine import Reads
from signet_actors.store.errors import StoreError
from signet_actors.store.findings import INDEX, MOST_FINDINGS, Finding
from signet_actors.store.reads import vectors
from signet_actors.store.vector_epochs import VectorEpochs, read_stored

HEADER_BYTES: Final = 4096
RECORD_NUMBERS: Final = struct.Struct("<qq")
_MAGIC: Final = b"SGNTVEC2"
_FORMAT: Final = struct.Struct("<8s36s36sIQqI")
"""Magic, database id, epoch of the last number, dimensions, records, last embeddings.seq, checksum of the records."""
_CHECKSUM: Final = struct.Struct("<I")
_HEADER_READS: Final = 5
_HEADER_WAIT_S: Final = 0.05
_ROWS_AT_ONCE: Final = 2000
"""Rows in one read transaction, which the write-ahead log cannot be reset past."""


class VectorFileHeader(NamedTuple):
    """``epoch`` is the one that gave out ``last_seq`` (see ``vector_epochs``); ``checksum`` covers the records."""

    database_id: str
    dimensions: int
    epoch: str = ""
    records: int = 0
    last_seq: int = 0
    checksum: int = 0

    def encode(self) -> bytes:
        """Return the header as the first bytes of the file."""
        body = _FORMAT.pack(
            _MAGIC,
            self.database_id.encode(),
            self.epoch.encode(),
            self.dimensions,
            self.records,
            self.last_seq,
            self.checksum,
        )
        return body + _CHECKSUM.pack(zlib.crc32(body))


def vector_file(directory: Path, model: str, dimensions: int) -> Path:
    """Return the path of a model's vector file."""
    slug = re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")[:60]
    return directory / f"{slug}-{zlib.crc32(model.encode()):08x}-{dimensions}.vectors"


def record_bytes(dimensions: int) -> int:
    """Return the length of one record. Records are aligned to eight bytes."""
    return RECORD_NUMBERS.size + 4 * (dimensions + dimensions % 2)


def read_header(descriptor: int, database_id: str, dimensions: int) -> VectorFileHeader | None:
    """Return the header; None if it is damaged or belongs to another database or other dimensions."""
    raw = os.pread(descriptor, _FORMAT.size + _CHECKSUM.size, 0)
    if len(raw) < _FORMAT.size + _CHECKSUM.size:
        return None
    body = raw[: _FORMAT.size]
    if _CHECKSUM.unpack_from(raw, _FORMAT.size)[0] != zlib.crc32(body):
        return None
    magic, database, epoch, width, records, last_seq, checksum = _FORMAT.unpack(body)
    header = VectorFileHeader(_text(database), width, _text(epoch), records, last_seq, checksum)
    if magic != _MAGIC or header.database_id != database_id or width != dimensions:
        return None
    if os.fstat(descriptor).st_size < HEADER_BYTES + records * record_bytes(dimensions):
        return None
    return header


def vector_file_findings(view: Reads, directory: Path, *, in_use: bool = False) -> list[Finding]:
    """Return where the searchers' shared vector files differ from the stored vectors; ``in_use``: a daemon runs."""
    differing = differing_vectors(view, directory, in_use=in_use)
    try:
        return [Finding(INDEX, text) for text in islice(differing, MOST_FINDINGS)]
    except (StoreError, OSError, ConfigError) as error:
        return [Finding(INDEX, f"the vector files cannot be compared: {error}")]


def differing_vectors(
    view: Reads,
    directory: Path,
    *,
    in_use: bool = False,
) -> Iterator[str]:
    """Yield a description of each record that differs from the stored vectors.

    A file that does not belong to the database as it is, or whose checksum is wrong, is skipped: a searcher that starts
    rebuilds it. With ``in_use`` it is described instead, because a running searcher may answer from it; the database
    may change meanwhile, and is read in short snapshots. Raises ``StoreError``, OSError, ConfigError.
    """
    database_id = vectors.database_id(view) or ""
    for model, dimensions in vectors.models(view):
        path = vector_file(directory, model, dimensions)
        try:
            descriptor = open_regular(path, os.O_RDONLY)
        except FileNotFoundError:
            continue
        try:
            # Read before the rows: rows that are deleted or added after that are no difference.
            header = _stable_header(descriptor, database_id, dimensions)
            found: Iterable[str]
            if header is None:
                empty = os.fstat(descriptor).st_size == 0
                found = () if empty else ("it belongs to another database, or its header is damaged",)
            elif header.epoch != VectorEpochs(read_stored(view)).of(header.last_seq):
                found = ("it belongs to another state of the database",)
            else:
                with mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as mapped:
                    if _checksum(header, mapped) == header.checksum:
                        for text in _differences(view, model, header, mapped):
                            yield f"{path.name}: {text}"
                        continue
                found = ("its checksum is wrong",)
            if in_use:
                yield from (f"{path.name}: {text}" for text in found)
        finally:
            os.close(descriptor)


def _stable_header(descriptor: int, database_id: str, dimensions: int) -> VectorFileHeader | None:
    """Return the header like ``read_header``; read again if a searcher may be writing it."""
    for _ in range(_HEADER_READS - 1):
        if (header := read_header(descriptor, database_id, dimensions)) is not None:
            return header
        time.sleep(_HEADER_WAIT_S)
    return read_header(descriptor, database_id, dimensions)


def _checksum(header: VectorFileHeader, mapped: mmap.mmap) -> int:
    end = HEADER_BYTES + header.records * record_bytes(header.dimensions)
    with memoryview(mapped) as whole, whole[HEADER_BYTES:end] as records:
        return zlib.crc32(records)


def _differences(view: Reads, model: str, header: VectorFileHeader, mapped: mmap.mmap) -> Iterator[str]:
    length = record_bytes(header.dimensions)
    end = HEADER_BYTES + header.records * length
    if header.last_seq > (last := view.last_number("embeddings")):
        yield f"it contains vectors up to {header.last_seq}, but the last vector number of the database is {last}"
        return
    offset, after = HEADER_BYTES, 0
    while rows := vectors.after(view, model, header.dimensions, after, _ROWS_AT_ONCE):
        after = rows[-1][0]
        for seq, memory, vector in rows:
            if seq > header.last_seq:
                return
            while offset < end and RECORD_NUMBERS.unpack_from(mapped, offset)[0] < seq:
                offset += length  # skip the record of a replaced or removed vector
            if offset >= end or RECORD_NUMBERS.unpack_from(mapped, offset)[0] != seq:
                yield f"vector {seq} is missing"
            elif RECORD_NUMBERS.unpack_from(mapped, offset)[1] != memory:
                yield f"vector {seq} belongs to another memory"
            elif mapped[offset + RECORD_NUMBERS.size : offset + RECORD_NUMBERS.size + len(vector)] != vector:
                yield f"vector {seq} differs from the stored one"


def _text(raw: bytes) -> str:
    return raw.rstrip(b"\0").decode("ascii", "replace")
