"""How the token codes of each encoder are compared: one class per form of code.

Source: docs/quality.md "Token similarity".
"""

from __future__ import annotations

import mmap
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from signet_actors.config import embedding_models
from signet_actors.config.schema import EMBEDDED_DIMENSIONS
from signet_actors.runtime.tensor_file import map_halves, widened

Floats = npt.NDArray[np.float32]
Pieces = npt.NDArray[np.uint16]
Rows = npt.NDArray[np.intp]

_PIECE_DIMENSIONS: Final = 64
"""So many of the first dimensions of static vectors are compared. They were trained to be vectors of their own, and all
256 order no better: R@10 / R@50 / nDCG@10 of the development half are 84.9 / 93.4 / 66.1 with 64, 84.9 / 93.3 / 66.2
with 256."""


class CodeComparison(Protocol):
    """Compares the tokens of a query with stored ones. ``query_bytes`` and ``code_bytes`` are the size of one token."""

    query_bytes: int
    code_bytes: int

    def cosines(self, query: bytes, codes: bytes) -> Floats:
        """Return the cosine of each stored token with each one of the query, shape (stored tokens, query tokens)."""
        ...

    def release_memory(self) -> None:
        """Free what is quickly read again."""
        ...


class PieceComparison:
    """The numbers of word pieces, two bytes each, which stand for static vectors of the embedded model."""

    query_bytes: int = 2
    code_bytes: int = 2

    def __init__(self) -> None:
        """Map the weights. Raises ``ConfigError`` if they cannot be read."""
        path = embedding_models.EMBEDDED_FOLDER / embedding_models.EMBEDDED_WEIGHTS
        self._mapping, self._table = map_halves(path, embedding_models.EMBEDDED_TENSOR, EMBEDDED_DIMENSIONS)
        self._occurs = np.zeros(len(self._table), np.bool_)  # by piece; all false between calls
        self._row_of_piece = np.zeros(len(self._table), np.int32)  # of the last call
        self._forget_vectors()

    def cosines(self, query: bytes, codes: bytes) -> Floats:
        stored, asked = (self._known(np.frombuffer(pieces, np.uint16)) for pieces in (codes, query))
        by_piece = self._vectors_of(self._distinct(stored)) @ np.ascontiguousarray(self._vectors_of(asked).T)
        found: Floats = by_piece.take(self._row_of_piece.take(stored), axis=0)
        return found

    def release_memory(self) -> None:
        self._mapping.madvise(mmap.MADV_DONTNEED)
        self._forget_vectors()

    def _known(self, pieces: Pieces) -> Pieces:
        return np.minimum(pieces, len(self._table) - 1)  # whatever a damaged row holds has a vector

    def _distinct(self, pieces: Pieces) -> Rows:
        """Return each of ``pieces`` once, ascending, and note the place of each; faster than sorting them."""
        self._occurs[pieces] = True
        distinct = np.flatnonzero(self._occurs)
        self._occurs[distinct] = False
        self._row_of_piece[distinct] = np.arange(len(distinct))
        return distinct

    def _forget_vectors(self) -> None:
        # Memory that is not written yet costs nothing.
        self._unit_vectors: Floats = np.empty((len(self._table), _PIECE_DIMENSIONS), np.float32)
        self._has_vector = np.zeros(len(self._table), np.bool_)

    def _vectors_of(self, pieces: Pieces | Rows) -> Floats:
        """Return the unit vectors of pieces, shape (n, ``_PIECE_DIMENSIONS``)."""
        has_vector = self._has_vector.take(pieces)
        if not has_vector.all():
            new = np.unique(pieces[~has_vector])
            self._unit_vectors[new] = _unit(widened(self._table[new, :_PIECE_DIMENSIONS]))
            self._has_vector[new] = True
        found: Floats = self._unit_vectors.take(pieces, axis=0)
        return found


class StateComparison:
    """States of tokens in context, 64 numbers each: float32 in a query, ``round(127 * x)`` as int8 where stored."""

    query_bytes: int = 4 * embedding_models.MINILM_CODE_DIMENSIONS
    code_bytes: int = embedding_models.MINILM_CODE_DIMENSIONS

    def cosines(self, query: bytes, codes: bytes) -> Floats:
        states = np.frombuffer(codes, np.int8).reshape(-1, embedding_models.MINILM_CODE_DIMENSIONS).astype(np.float32)
        found: Floats = states @ np.frombuffer(query, np.float32).reshape(-1, embedding_models.MINILM_CODE_DIMENSIONS).T
        found /= 127
        return found

    def release_memory(self) -> None:
        pass


def _unit(rows: Floats) -> Floats:
    unit: Floats = rows / np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None], 1e-9)
    return unit
