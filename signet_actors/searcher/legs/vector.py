"""The vector leg: nearest neighbours among the admitted rows.

Behind one small interface stand the shared matrix (exact and fast) and the stored form, which answers while the matrix
is being built or cannot be: rows one by one where few are admitted, else the ``vec0`` table, whose nearest 4,096 of the
whole store are then filtered.

Source: targets.md "Recall"; decisions.md 5.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from signet_actors.searcher.columns import Mask, MemoryColumns
from signet_actors.searcher.vector_matrix import VectorMatrix
from signet_actors.store.snapshot import Snapshot
from signet_actors.store.vectors import nearest, vec_table

FOLLOW_ROWS = 4000
"""Missing rows that a query adds to the matrix itself; a larger gap is closed between queries."""
_SCAN_K = 4096
_READ_AT_MOST = 4096
"""So few admitted rows are compared one by one while the matrix is being built; more are scanned in ``vec0``."""
_GATHER_BELOW = 0.25


class VectorHits(NamedTuple):
    """``seqs`` and ``cosines``, best first; same length."""

    seqs: npt.NDArray[np.int64]
    cosines: npt.NDArray[np.float64]


NO_HITS = VectorHits(np.zeros(0, np.int64), np.zeros(0, np.float64))


class VectorLeg:
    """The vectors of one model, as one searcher sees them."""

    def __init__(self, directory: Path, model: str, dimensions: int, database_id: str) -> None:
        self.matrix = VectorMatrix(directory, model, dimensions, database_id)
        self.complete = False
        self.version: object = None
        self.trouble: str | None = None
        self._generation = -1
        self._position: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._placed = 0

    def follow(self, view: Snapshot, columns: MemoryColumns, *, max_rows: int = FOLLOW_ROWS) -> None:
        """The matrix shows ``view``, or ``complete`` is False and ``trouble`` says what is wrong with the file.

        The matrix is a cache: when its file cannot be written or read, the stored form answers.
        """
        if self.complete and self.version == columns.version:
            return
        self.complete, self.trouble = False, None
        try:
            if self.version != columns.version:
                self.matrix.compact(int((columns.embedding_seq[: columns.size] > 0).sum()))
            self.complete = self.matrix.follow(view, max_rows=max_rows)
        except OSError as error:
            self.trouble = str(error)
        self.version = columns.version

    def search(
        self, view: Snapshot, columns: MemoryColumns, query: npt.NDArray[np.float32], allowed: Mask, *, pool: int
    ) -> VectorHits:
        """The ``pool`` admitted rows nearest to ``query`` (unit length, shape (dimensions,))."""
        if not self.complete:
            return self._scan(view, columns, query, allowed, pool)
        matrix = self.matrix
        valid = self._valid(columns, allowed)
        positions = np.flatnonzero(valid)
        if len(positions) == 0:
            return NO_HITS
        if len(positions) < _GATHER_BELOW * matrix.count:
            cosines = matrix.vectors[positions] @ query
        else:
            cosines = (matrix.vectors @ query)[positions]
        if len(positions) > pool:
            best = np.argpartition(-cosines, pool)[:pool]
            positions, cosines = positions[best], cosines[best]
        order = np.argsort(-cosines, kind="stable")
        return VectorHits(matrix.memory_seqs[positions[order]], cosines[order].astype(np.float64))

    def cosines(
        self, view: Snapshot, columns: MemoryColumns, query: npt.NDArray[np.float32], seqs: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """The true cosine of each row, NaN where it has no vector. Shape (len(seqs),). Source: quality.md rule 2."""
        found = np.full(len(seqs), np.nan)
        if not len(seqs):
            return found
        if self.complete:
            position = self._positions(columns)
            at = position[np.minimum(seqs, len(position) - 1)] if len(position) else np.full(len(seqs), -1)
            present = (at >= 0) & (seqs < len(position))
            if present.any():
                current = self.matrix.embedding_seqs[at[present]] == columns.embedding_seq[seqs[present]]
                chosen = np.flatnonzero(present)[current]
                found[chosen] = self.matrix.vectors[at[chosen]] @ query
            return found
        return self._read(view, query, seqs)

    def _valid(self, columns: MemoryColumns, allowed: Mask) -> Mask:
        """Which records of the matrix are the current vector of an admitted row. Shape (count,)."""
        seqs = self.matrix.memory_seqs
        known = seqs < len(allowed)
        safe = np.where(known, seqs, 0)
        if not len(allowed):
            return np.zeros(len(seqs), np.bool_)
        valid: Mask = known & allowed[safe] & (columns.embedding_seq[safe] == self.matrix.embedding_seqs)
        return valid

    def _positions(self, columns: MemoryColumns) -> npt.NDArray[np.int64]:
        """Record of the newest vector by ``memories.seq``, -1 = none; extended as the matrix grows."""
        matrix = self.matrix
        if self._generation != matrix.generation:
            self._generation, self._placed = matrix.generation, 0
            self._position = np.full(0, -1, np.int64)
        fresh = matrix.memory_seqs[self._placed : matrix.count]
        size = max(columns.size, int(fresh.max(initial=-1)) + 1)
        if len(self._position) < size:
            wider = np.full(max(size, 1024) * 3 // 2, -1, np.int64)
            wider[: len(self._position)] = self._position
            self._position = wider
        self._position[fresh] = np.arange(self._placed, matrix.count)
        self._placed = matrix.count
        return self._position

    def _scan(
        self, view: Snapshot, columns: MemoryColumns, query: npt.NDArray[np.float32], allowed: Mask, pool: int
    ) -> VectorHits:
        rows = np.flatnonzero(allowed & (columns.embedding_seq[: len(allowed)] > 0))
        table = vec_table(view.connection, self.matrix.model, self.matrix.dimensions)
        if table is None or not len(rows):
            return NO_HITS
        if len(rows) <= _READ_AT_MOST:
            cosines = self._read(view, query, rows)
            present = np.flatnonzero(~np.isnan(cosines))
            order = present[np.argsort(-cosines[present], kind="stable")][:pool]
            return VectorHits(rows[order], cosines[order])
        owners = rows[np.argsort(columns.embedding_seq[rows], kind="stable")]
        keys = columns.embedding_seq[owners]
        found = nearest(view.connection, table, query.tobytes(), _SCAN_K)
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
        self, view: Snapshot, query: npt.NDArray[np.float32], seqs: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float64]:
        """The cosines of ``seqs`` from the stored rows themselves, NaN where there is no vector of this model."""
        found = np.full(len(seqs), np.nan)
        stored = dict(
            view.rows(
                "SELECT m.seq, e.vector FROM memories m JOIN embeddings e ON e.seq = m.embedding_seq"
                " WHERE m.seq IN (SELECT value FROM json_each(?)) AND e.model = ? AND e.dimensions = ?",
                (msgspec.json.encode(seqs.tolist()).decode(), self.matrix.model, self.matrix.dimensions),
            )
        )
        for index, seq in enumerate(seqs.tolist()):
            if seq in stored:
                found[index] = float(np.frombuffer(stored[seq], np.float32) @ query)
        return found
