"""The vector leg: nearest neighbours among the rows that the caller may read.

Normally the leg searches the shared vector file: exactly up to 2,048 records. Above that, principal components choose
candidates and only those are compared exactly; above 16,384 records the signs of the vectors do, which are smaller.
While vectors are missing in the file, as during a large import, a large store is searched as far as the file goes. A
small one, and one whose file is unusable, is searched by the stored vectors: row by row if few rows are allowed, else
in the ``vec0`` table, whose nearest 4,096 are filtered.

Source: docs/performance.md "Recall targets"; docs/decisions.md 5.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.errors import ErrorCode, SignetError
from signet_actors.searcher.columns import Mask, MemoryColumns, Seqs
from signet_actors.searcher.legs.binary_quantization import BinaryCodes
from signet_actors.searcher.legs.projection import Projection
from signet_actors.searcher.vector_matrix import VectorMatrix
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import vectors

STORED_BELOW = 20_000
"""A store with fewer vectors is searched by the stored ones while its file is incomplete; that takes 20 ms."""
_SCAN_K = 4096
_MAX_DIRECT_READS = 4096
"""Without a matrix, up to this many allowed rows are compared one by one; more are searched in ``vec0``."""
_MAX_MISSING_READS = 256
"""Up to this many allowed rows that the matrix does not have yet are read one by one; more are left out."""
_GATHER_BELOW = 0.25
"""If a smaller share of the rows is allowed, only their vectors are gathered from the matrix."""
_WHOLE_PRODUCT_BELOW = 2048
"""Up to this many records, multiplying all of them is as fast as choosing candidates."""
_PROJECTION_BELOW = 16_384
"""Up to this many records, principal components choose the candidates."""
_EXACT_BELOW = 1024
"""Up to this many allowed rows are compared exactly, without codes."""
_PROJECTED_PER_HIT = 5
_CANDIDATES_MIN = 200
_CANDIDATES_PER_HIT = 6
_ROWS_PER_CANDIDATE = 500  # one more candidate per 500 allowed rows: in a larger set more rows lie near the best ones
_COARSE_PER_CANDIDATE = 4
"""Number of candidates. See searcher/DESIGN.md for how many true neighbours they contain."""
_SAMPLE_RECORDS = 16_384
"""Codes are computed from a sample of at most this many records, and again whenever the file has grown fourfold."""
_CHUNK_RECORDS = 16_384
"""Records that are indexed by row at once."""


class IndexIncomplete(SignetError):
    """The vectors of a large import are still being indexed; retry shortly."""

    code = ErrorCode.UNAVAILABLE
    retry_after_ms = 5000


class VectorHits(NamedTuple):
    """``seqs`` and ``cosines``, best first, of the same length."""

    seqs: Seqs
    cosines: npt.NDArray[np.float64]


NO_HITS = VectorHits(np.zeros(0, np.int64), np.zeros(0, np.float64))


class _Encoded:
    """The codes of the first ``records`` records, computed from a sample of the first ``span``."""

    def __init__(self, span: int, sample: npt.NDArray[np.float32]) -> None:
        self.span = span
        self.codes = Projection(sample) if span < _PROJECTION_BELOW else BinaryCodes(sample.mean(axis=0))
        self.records = 0

    def candidates(self, query: npt.NDArray[np.float32], valid: Mask, count: int, pool: int) -> Seqs:
        """Return so many of the ``count`` rows of ``valid`` that the ``pool`` nearest to ``query`` are among them."""
        if isinstance(self.codes, Projection):
            return self.codes.candidates(query, valid, _PROJECTED_PER_HIT * pool)
        likely = _CANDIDATES_MIN + _CANDIDATES_PER_HIT * pool + count // _ROWS_PER_CANDIDATE
        return self.codes.candidates(query, valid, likely, coarse=_COARSE_PER_CANDIDATE * likely)


class VectorLeg:
    """The vectors of one model, as one searcher sees them. ``pending`` counts vectors that a search leaves out."""

    def __init__(self, directory: Path, model: str, dimensions: int, database_id: str) -> None:
        self.matrix = VectorMatrix(directory, model, dimensions, database_id)
        self.complete = False
        self.version: object = None
        self.error: str | None = None
        self._clear()

    def _clear(self) -> None:
        self._generation = self.matrix.generation
        self._indexed_records = 0
        # Indexed by memories.seq: the record of the newest vector, and its embeddings.seq (-1: none).
        self._record_of_row: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._embedding_of_row: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        # Only above _WHOLE_PRODUCT_BELOW records: the codes in use, and those of a better sample, until complete.
        self._encoded: _Encoded | None = None
        self._next_encoded: _Encoded | None = None
        # By row: whether its vector of this model is of its present words, and whether it is the newest of all models.
        self._current: Mask = np.zeros(0, np.bool_)
        self._newest: Mask = np.zeros(0, np.bool_)
        self.pending = 0

    @property
    def settled(self) -> bool:
        """True if all vectors are searched and no better codes are being computed."""
        return self.complete and self._next_encoded is None

    @property
    def in_use(self) -> bool:
        """True if the newest vector of some memory is of this model, or if that is not known yet."""
        return not self.complete or bool(self._newest.any())

    @property
    def is_second(self) -> bool:
        """True if memories have a vector of this model beside their first one."""
        return bool((self._current & ~self._newest).any())

    def with_vector(self, allowed: Mask) -> Mask:
        """Return which of the ``allowed`` rows have a vector of this model; none while that is not known."""
        return allowed & self._current if self.complete else np.zeros(len(allowed), np.bool_)

    def embedding_numbers(self, columns: MemoryColumns, seqs: Seqs) -> Seqs:
        """Return ``embeddings.seq`` of each row's vector, -1 or one of another model for a row that has none here."""
        if not self.complete:
            return columns.embedding_seq[seqs]
        numbers: Seqs = np.where(self._current[seqs], self._embedding_of_row[seqs], -1)
        return numbers

    def sync(self, snapshot: Snapshot, columns: MemoryColumns, *, max_rows: int, max_codes: int) -> None:
        """Bring the matrix nearer to ``snapshot`` by up to ``max_rows`` vectors, and their codes by ``max_codes``.

        ``complete`` is False while vectors are missing; ``error`` holds the reason if the file is not usable.
        """
        if self.settled and self.version == columns.version:
            return
        self.complete, self.error = False, None
        try:
            if self.version != columns.version:
                self.matrix.compact(int((columns.embedding_seq[: columns.size] > 0).sum()))
            has_all = self.matrix.sync(snapshot, max_rows=max_rows)
            self._index_records(columns)
            self._encode(max_codes)
            self.complete = has_all and self._has_codes
        except OSError as error:
            self.error = str(error)
            if self._generation != self.matrix.generation:
                self._clear()
        self.version = columns.version
        self.pending = 0 if self.complete or self._uses_stored(columns) else self._count_missing(columns)

    def _count_missing(self, columns: MemoryColumns) -> int:
        missing = len(self._missing(columns, columns.live[: columns.size]))
        return missing + (0 if self._encoded is None else self._indexed_records - self._encoded.records)

    def search(
        self, snapshot: Snapshot, columns: MemoryColumns, query: npt.NDArray[np.float32], allowed: Mask, *, pool: int
    ) -> VectorHits:
        """Return the ``pool`` allowed rows nearest to ``query`` (unit length, shape (dimensions,)), best first."""
        if self._uses_stored(columns):
            return self._search_stored(snapshot, columns, query, allowed, pool)
        valid = self._current & allowed
        count = int(np.count_nonzero(valid))
        if self._encoded is not None and count > _EXACT_BELOW:
            if not self._has_codes:
                valid &= self._record_of_row[: len(valid)] < self._encoded.records
            rows = self._encoded.candidates(query, valid, count, pool)
            cosines = self._products(rows, query)
        else:
            rows = np.flatnonzero(valid)
            whole = count > _GATHER_BELOW * self.matrix.count
            cosines = (self.matrix.vectors @ query)[self._record_of_row[rows]] if whole else self._products(rows, query)
        if not self.complete:
            rows, cosines = self._with_missing(snapshot, columns, query, allowed, rows, cosines)
        if len(rows) > pool:
            best = np.argpartition(-cosines, pool)[:pool]
            rows, cosines = rows[best], cosines[best]
        order = np.argsort(-cosines, kind="stable")
        return VectorHits(rows[order], cosines[order].astype(np.float64))

    def searches_all(self, columns: MemoryColumns, allowed: Mask) -> bool:
        """Return whether a search among ``allowed`` leaves out no vector of the last snapshot."""
        if self.complete or self._uses_stored(columns):
            return True
        if len(self._missing(columns, allowed)) > _MAX_MISSING_READS:
            return False
        return self._has_codes or int(np.count_nonzero(self._current & allowed)) <= _EXACT_BELOW

    @property
    def _has_codes(self) -> bool:
        """True if every record has the codes that a search in it needs."""
        return self._encoded is None or self._encoded.records == self._indexed_records

    def _missing(self, columns: MemoryColumns, allowed: Mask) -> Seqs:
        """Return the allowed rows whose vectors are not in the matrix yet."""
        numbers = columns.embedding_seq[: len(allowed)]
        return np.flatnonzero(allowed & (numbers > self.matrix.last_seq) & (numbers <= self.matrix.newest))

    def _uses_stored(self, columns: MemoryColumns) -> bool:
        """Return whether the stored vectors are searched: the file is unusable, or incomplete in a small store."""
        if self.complete:
            return False
        return self.error is not None or int(np.count_nonzero(columns.embedding_seq[: columns.size])) <= STORED_BELOW

    def _with_missing(
        self,
        snapshot: Snapshot,
        columns: MemoryColumns,
        query: npt.NDArray[np.float32],
        allowed: Mask,
        rows: Seqs,
        cosines: npt.NDArray[np.float32],
    ) -> tuple[Seqs, npt.NDArray[np.float32]]:
        """Add the allowed rows that are missing in the matrix, if they are few."""
        missing = self._missing(columns, allowed)
        if len(missing) > _MAX_MISSING_READS:
            return rows, cosines
        read = self._read(snapshot, query, missing)
        found = ~np.isnan(read)
        return np.concatenate((rows, missing[found])), np.concatenate((cosines, read[found].astype(np.float32)))

    def _products(self, rows: Seqs, query: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        products: npt.NDArray[np.float32] = self.matrix.vectors_of(self._record_of_row[rows]) @ query
        return products

    def cosines(
        self, snapshot: Snapshot, columns: MemoryColumns, query: npt.NDArray[np.float32], seqs: Seqs
    ) -> npt.NDArray[np.float64]:
        """Return the exact cosine of each row, NaN for one without a vector or left out. Shape (len(seqs),).

        Source: docs/quality.md rule 2.
        """
        found = np.full(len(seqs), np.nan)
        if not len(seqs):
            return found
        if self._uses_stored(columns):
            return self._read(snapshot, query, seqs)
        present = np.flatnonzero(self._current[seqs])
        found[present] = self._products(seqs[present], query)
        if not self.complete:
            numbers = columns.embedding_seq[seqs]
            missing = np.flatnonzero((numbers > self.matrix.last_seq) & (numbers <= self.matrix.newest))
            missing = missing[:_MAX_MISSING_READS]
            found[missing] = self._read(snapshot, query, seqs[missing])
        return found

    def vector_of(self, seq: int) -> npt.NDArray[np.float32] | None:
        """Return the newest vector of the row, None if it is not here."""
        if seq >= len(self._current) or not self._current[seq]:
            return None
        vector: npt.NDArray[np.float32] = self.matrix.vectors_of(self._record_of_row[[seq]])[0]
        return vector

    def holds(self, seqs: Seqs) -> Mask:
        """Return which rows have their newest vector here; all of them while that is not known. Shape (len(seqs),)."""
        return self._current[seqs] if self.complete else np.ones(len(seqs), np.bool_)

    @property
    def indexed_records(self) -> int:
        """The number of records of the matrix that are indexed by row."""
        return self._indexed_records

    def count(self, rows: Mask) -> int:
        """Return how many of ``rows`` have their newest vector here."""
        known = min(len(rows), len(self._current))
        return int(np.count_nonzero(self._current[:known] & rows[:known]))

    def first_vectors(self, rows: Mask, most: int) -> npt.NDArray[np.float32]:
        """Return the vectors of ``rows``, former ones too, in the order of the file. Shape (<= most, dimensions)."""
        _, memories = self.matrix.row_numbers(0, self._indexed_records)
        vectors: npt.NDArray[np.float32] = self.matrix.vectors[np.flatnonzero(rows[memories])[:most]]
        return vectors

    def records(self, live: Mask) -> npt.NDArray[np.int32]:
        """Return by row the record of its newest vector, -1 for a row that is not live or has a newer one elsewhere."""
        if self._generation != self.matrix.generation:
            return np.full(len(self._current), -1, np.int32)
        known = self._newest & live[: len(self._newest)]
        return np.where(known, self._record_of_row[: len(known)], np.int32(-1))

    def _index_records(self, columns: MemoryColumns) -> None:
        """Index every record of the snapshot by row, and set ``_current`` to the rows that have a vector."""
        matrix = self.matrix
        if self._generation != matrix.generation:
            self._clear()
        self._reserve(columns.size)
        while self._indexed_records < matrix.count:
            stop = min(matrix.count, self._indexed_records + _CHUNK_RECORDS)
            embeddings, memories = matrix.row_numbers(self._indexed_records, stop)
            # Skip records that were committed after this snapshot: they would hide vectors that are current in it.
            stop = self._indexed_records + int(np.searchsorted(embeddings, matrix.newest, side="right"))
            if stop == self._indexed_records:
                break
            embeddings, memories = embeddings[: stop - self._indexed_records], memories[: stop - self._indexed_records]
            self._reserve(int(memories.max()) + 1)
            self._record_of_row[memories] = np.arange(self._indexed_records, stop)
            self._embedding_of_row[memories] = embeddings
            self._indexed_records = stop
        numbers, own = self._embedding_of_row[: columns.size], columns.embedding_seq[: columns.size]
        # A second vector is made after the first one of the same words, and new words have a new first one.
        self._current, self._newest = (numbers >= own) & (own > 0), (numbers == own) & (own > 0)

    def _encode(self, most: int) -> None:
        """Compute the codes of at most ``most`` records that have none.

        When the file has grown fourfold, the codes of the new sample are computed beside those in use.
        """
        if self._indexed_records <= _WHOLE_PRODUCT_BELOW:
            return
        span = _WHOLE_PRODUCT_BELOW if self._indexed_records <= _PROJECTION_BELOW else _PROJECTION_BELOW
        while 4 * span <= self._indexed_records:
            span *= 4
        if self._encoded is None:
            self._encoded = self._new_codes(span)
        elif self._encoded.span != span and (self._next_encoded is None or self._next_encoded.span != span):
            self._next_encoded = self._new_codes(span)
        self._extend(self._encoded, most)
        if self._next_encoded is not None:
            self._extend(self._next_encoded, most)
            if self._next_encoded.records == self._indexed_records:
                self._encoded, self._next_encoded = self._next_encoded, None

    def _new_codes(self, span: int) -> _Encoded:
        # Evenly spaced among the first ``span`` records, so that all searchers compute the same codes.
        return _Encoded(span, self.matrix.vectors[: span : -(-span // _SAMPLE_RECORDS)])

    def _extend(self, encoded: _Encoded, most: int) -> None:
        stop = min(self._indexed_records, encoded.records + most)
        while encoded.records < stop:
            start, end = encoded.records, min(stop, encoded.records + _CHUNK_RECORDS)
            encoded.codes.put(self.matrix.row_numbers(start, end)[1], self.matrix.vectors[start:end])
            encoded.records = end

    def _reserve(self, size: int) -> None:
        known = len(self._record_of_row)
        if size <= known:
            return
        capacity = max(size, 1024, known * 3 // 2)
        position, recorded = np.zeros(capacity, np.int32), np.full(capacity, -1, np.int64)
        position[:known], recorded[:known] = self._record_of_row, self._embedding_of_row
        self._record_of_row, self._embedding_of_row = position, recorded

    def _search_stored(
        self, snapshot: Snapshot, columns: MemoryColumns, query: npt.NDArray[np.float32], allowed: Mask, pool: int
    ) -> VectorHits:
        rows = np.flatnonzero(allowed & (columns.embedding_seq[: len(allowed)] > 0))
        if not len(rows):
            return NO_HITS
        if len(rows) <= _MAX_DIRECT_READS:
            cosines = self._read(snapshot, query, rows)
            present = np.flatnonzero(~np.isnan(cosines))
            order = present[np.argsort(-cosines[present], kind="stable")][:pool]
            return VectorHits(rows[order], cosines[order])
        owners = rows[np.argsort(columns.embedding_seq[rows], kind="stable")]
        keys = columns.embedding_seq[owners]
        found = snapshot.nearest(self.matrix.model, self.matrix.dimensions, query.tobytes(), _SCAN_K)
        at = np.searchsorted(keys, [embedding_seq for embedding_seq, _ in found])
        hits = [
            (int(owners[index]), cosine)
            for index, (embedding_seq, cosine) in zip(at.tolist(), found, strict=True)
            if index < len(keys) and keys[index] == embedding_seq
        ][:pool]
        return VectorHits(
            np.array([seq for seq, _ in hits], np.int64), np.array([cosine for _, cosine in hits], np.float64)
        )

    def _read(
        self, snapshot: Snapshot, query: npt.NDArray[np.float32], seqs: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """Return the cosines of ``seqs`` from the stored vectors, NaN for a row without a vector of this model."""
        found = np.full(len(seqs), np.nan)
        stored = vectors.current_of_rows(snapshot, self.matrix.model, self.matrix.dimensions, seqs.tolist())
        for index, seq in enumerate(seqs.tolist()):
            if seq in stored:
                found[index] = float(np.frombuffer(stored[seq], np.float32) @ query)
        return found
