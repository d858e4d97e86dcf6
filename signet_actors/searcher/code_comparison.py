"""How the token codes of each encoder are compared: one class per form of code.

Source: docs/quality.md "Token similarity".
"""

from __future__ import annotations

import mmap
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from signet_actors.config.embedding_models import (
    EMBEDDED_FOLDER,
    EMBEDDED_TENSOR,
    EMBEDDED_WEIGHTS,
    MINILM_CODE_DIMENSIONS,
)
from signet_actors.config.schema import EMBEDDED_DIMENSIONS
from signet_actors.runtime.tensor_file import map_halves, widened

Floats = npt.NDArray[np.float32]
Pieces = npt.NDArray[np.uint16]

_PIECES: Final = 2**16
"""More than there are word pieces: whatever a damaged row holds has a place."""
_CACHED_VECTORS: Final = 8_192
"""Capacity of the cache of unit vectors, 1 KB each; it is cleared when it is full."""


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
        path = EMBEDDED_FOLDER / EMBEDDED_WEIGHTS
        self._mapping, self._table = map_halves(path, EMBEDDED_TENSOR, EMBEDDED_DIMENSIONS)
        self._occurs = np.zeros(_PIECES, np.bool_)  # by piece; all false between calls
        self._row_of_piece = np.zeros(_PIECES, np.intp)  # of the last call
        self._forget_vectors()

    def cosines(self, query: bytes, codes: bytes) -> Floats:
        stored = np.frombuffer(codes, np.uint16)
        by_piece = self._vectors_of(self._distinct(stored)) @ self._vectors_of(np.frombuffer(query, np.uint16)).T
        found: Floats = by_piece.take(self._row_of_piece[stored], axis=0)
        return found

    def _distinct(self, pieces: Pieces) -> Pieces:
        """Return each of ``pieces`` once, ascending, and note the place of each; faster than sorting them."""
        self._occurs[pieces] = True
        distinct = np.flatnonzero(self._occurs)
        self._occurs[distinct] = False
        self._row_of_piece[distinct] = np.arange(len(distinct))
        return distinct.astype(np.uint16)

    def release_memory(self) -> None:
        self._mapping.madvise(mmap.MADV_DONTNEED)
        self._forget_vectors()

    def _forget_vectors(self) -> None:
        # Memory that is not written yet costs nothing.
        self._unit_vectors: Floats = np.empty((_CACHED_VECTORS, EMBEDDED_DIMENSIONS), np.float32)
        self._place_of_piece = np.full(len(self._table), -1, np.int32)  # in the cache; -1: not there
        self._cached = 0

    def _vectors_of(self, pieces: Pieces) -> Floats:
        """Return the unit vectors of pieces, shape (n, dimensions)."""
        pieces = np.minimum(pieces, len(self._table) - 1)
        places = self._place_of_piece[pieces]
        if (places < 0).any():
            if self._cached + len(pieces) > _CACHED_VECTORS:
                self._forget_vectors()
            new = np.unique(pieces[self._place_of_piece[pieces] < 0])
            self._unit_vectors[self._cached : self._cached + len(new)] = _unit(widened(self._table[new]))
            self._place_of_piece[new] = np.arange(self._cached, self._cached + len(new))
            self._cached += len(new)
            places = self._place_of_piece[pieces]
        found: Floats = self._unit_vectors.take(places, axis=0)
        return found


class StateComparison:
    """States of tokens in context, 64 numbers each: float32 in a query, ``round(127 * x)`` as int8 where stored."""

    query_bytes: int = 4 * MINILM_CODE_DIMENSIONS
    code_bytes: int = MINILM_CODE_DIMENSIONS

    def cosines(self, query: bytes, codes: bytes) -> Floats:
        states = np.frombuffer(codes, np.int8).reshape(-1, MINILM_CODE_DIMENSIONS).astype(np.float32)
        found: Floats = states @ np.frombuffer(query, np.float32).reshape(-1, MINILM_CODE_DIMENSIONS).T
        found /= 127
        return found

    def release_memory(self) -> None:
        pass


def _unit(rows: Floats) -> Floats:
    unit: Floats = rows / np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None], 1e-9)
    return unit
