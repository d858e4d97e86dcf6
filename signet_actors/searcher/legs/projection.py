"""Projection: choose candidates for an exact comparison by the first principal components of the vectors.

A product with all vectors of 10,000 memories reads 10 to 15 MB, which does not stay in the processor's cache; their
first 64 principal components are 2.5 MB. Measurements: searcher/DESIGN.md "Candidates by principal components".

Source: docs/performance.md "Recall targets"; Pearson, "On Lines and Planes of Closest Fit to Systems of Points in
Space", 1901.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Seqs = npt.NDArray[np.int64]

_COMPONENTS = 64


class Projection:
    """The components of vectors by row number, 256 bytes each, also for rows without a vector.

    ``sample``, shape (n, dimensions), decides which components are kept: those in which its vectors differ most.
    """

    def __init__(self, sample: Floats) -> None:
        apart = sample - sample.mean(axis=0)
        _, directions = np.linalg.eigh(apart.T @ apart)  # in ascending order of variance
        self._basis: Floats = np.ascontiguousarray(directions[:, -_COMPONENTS:], np.float32)
        self._components: Floats = np.zeros((0, self._basis.shape[1]), np.float32)

    def put(self, rows: Seqs, vectors: Floats) -> None:
        """Store the components of ``vectors`` for ``rows``; if a row occurs twice, the last one counts."""
        size, known = int(rows.max(initial=-1)) + 1, len(self._components)
        if size > known:
            components = np.zeros((max(size, known * 3 // 2), self._components.shape[1]), np.float32)
            components[:known] = self._components
            self._components = components
        self._components[rows] = vectors @ self._basis

    def candidates(self, query: Floats, valid: npt.NDArray[np.bool_], n: int) -> Seqs:
        """Return at most ``n`` rows of ``valid`` that are probably nearest to ``query``, in no particular order.

        Rows beyond those given to ``put`` must not be valid.
        """
        rows = np.flatnonzero(valid)
        if len(rows) <= n:
            return rows
        # What the other components add is much the same for all rows, so it does not change the order.
        products = (self._components[: len(valid)] @ (query @ self._basis))[rows]
        nearest: Seqs = rows[np.argpartition(products, len(rows) - n)[-n:]]
        return nearest
