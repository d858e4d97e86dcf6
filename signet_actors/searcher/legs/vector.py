"""The vector leg: nearest neighbours among the admitted rows, exactly.

Behind one small interface stand the shared matrix (fast) and the ``vec0`` table (the stored form), which answers while
the matrix is being built.

Source: targets.md "Recall"; decisions.md 5.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.searcher.columns import Mask, MemoryColumns
from signet_actors.searcher.vector_matrix import VectorMatrix
from signet_actors.store.snapshot import Snapshot
from signet_actors.store.vectors import nearest, vec_table

FOLLOW_ROWS = 4000
"""Missing rows that a query adds to the matrix itself; a larger gap is closed between queries."""
_SCAN_K = 4096
_GATHER_BELOW = 0.25


class VectorHits(NamedTuple):
    """``seqs`` and ``cosines``, best first; same length."""

    seqs: npt.NDArray[np.int64]
    cosines: npt.NDArray[np.float64]


class VectorLeg:
    """The vectors of one model, as one searcher sees them."""

    def __init__(self, directory: Path, model: str, dimensions: int, database_id: str) -> None:
        self.matrix = VectorMatrix(directory, model, dimensions, database_id)
        self.complete = False
        self._position: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._placed = 0

    def follow(self, view: Snapshot, *, max_rows: int = FOLLOW_ROWS) -> None:
        """The matrix shows ``view``, or ``complete`` is False."""
        self.complete = self.matrix.follow(view, max_rows=max_rows)

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
            return VectorHits(np.zeros(0, np.int64), np.zeros(0, np.float64))
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
        for index, seq in enumerate(seqs):
            raw = view.value(
                "SELECT e.vector FROM memories m JOIN embeddings e ON e.seq = m.embedding_seq"
                " WHERE m.seq = ? AND e.model = ?",
                (int(seq), self.matrix.model),
            )
            if raw is not None:
                found[index] = float(np.frombuffer(raw, np.float32) @ query)
        return found

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
        if matrix.count < self._placed or len(self._position) < columns.size:
            wider = np.full(max(columns.size, 1024) * 3 // 2, -1, np.int64)
            if matrix.count >= self._placed:
                wider[: len(self._position)] = self._position
            else:
                self._placed = 0
            self._position = wider
        fresh = matrix.memory_seqs[self._placed : matrix.count]
        inside = fresh < len(self._position)
        self._position[fresh[inside]] = np.arange(self._placed, matrix.count)[inside]
        self._placed = matrix.count
        return self._position

    def _scan(
        self, view: Snapshot, columns: MemoryColumns, query: npt.NDArray[np.float32], allowed: Mask, pool: int
    ) -> VectorHits:
        table = vec_table(view.connection, self.matrix.model)
        if table is None or not len(allowed):
            return VectorHits(np.zeros(0, np.int64), np.zeros(0, np.float64))
        owners = np.argsort(columns.embedding_seq[: len(allowed)], kind="stable")
        keys = columns.embedding_seq[: len(allowed)][owners]
        seqs: list[int] = []
        cosines: list[float] = []
        for embedding_seq, cosine in nearest(view.connection, table, query.tobytes(), _SCAN_K):
            at = int(np.searchsorted(keys, embedding_seq))
            if at < len(keys) and keys[at] == embedding_seq and allowed[owners[at]]:
                seqs.append(int(owners[at]))
                cosines.append(cosine)
                if len(seqs) == pool:
                    break
        return VectorHits(np.array(seqs, np.int64), np.array(cosines, np.float64))
