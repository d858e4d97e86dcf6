"""Token similarity (MaxSim): how well a memory answers each single word of the query, by static vectors of word pieces.

A vector of a whole text blurs its words. Here each token of the query is compared with every token of a memory, and
the best cosine counts, weighted by the rarity of the word. Token codes are stored beside the vectors.

Source: docs/quality.md "Token similarity"; Khattab and Zaharia, "ColBERT" (2020), section 3.3 "Late Interaction".
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from signet_actors.config.embedding_models import EMBEDDED_TENSOR, EMBEDDED_WEIGHTS, embedded_model_folder
from signet_actors.config.schema import EMBEDDED_DIMENSIONS, EMBEDDED_MODEL
from signet_actors.domain.query_words import search_words
from signet_actors.errors import ConfigError
from signet_actors.runtime.tensor_file import Halves, map_halves, widened
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import vectors

ROWS: Final = 64
"""So many of the best candidates are compared; between 50 and 200 quality is the same."""
_CACHED_VECTORS: Final = 8_192
"""Capacity of the cache of unit vectors, 1 KB each; it is cleared when it is full."""

Floats = npt.NDArray[np.float32]
Pieces = npt.NDArray[np.uint16]


class TokenSimilarity:
    """The static vectors of the embedded model, mapped at first use, and those of the pieces used last."""

    def __init__(self) -> None:
        self._mapping: mmap.mmap | None = None
        self._table: Halves | None = None
        self._unit_vectors = np.zeros((0, EMBEDDED_DIMENSIONS), np.float32)
        self._place_of_piece = np.zeros(0, np.int32)  # in the cache; -1: not there
        self._cached = 0

    def supports(self, model: str | None) -> bool:
        """Return whether codes of ``model`` can be compared in this process."""
        if model != EMBEDDED_MODEL:
            return False
        if self._table is None:
            try:
                path = embedded_model_folder() / EMBEDDED_WEIGHTS
                self._mapping, self._table = map_halves(path, EMBEDDED_TENSOR, EMBEDDED_DIMENSIONS)
            except ConfigError:  # the gateway, which embeds with the same file, reports it
                return False
            self._forget_vectors()
        return True

    def likeness(
        self,
        snapshot: Snapshot,
        words: Sequence[tuple[str, bytes]],
        rarity: Mapping[str, float],
        embedding_seqs: npt.NDArray[np.int64],
    ) -> npt.NDArray[np.float64]:
        """Return by vector the mean over the query's tokens of the best cosine, weighted by ``rarity``; NaN = no codes.

        ``words``: the query's words with their codes. ``embedding_seqs``: shape (n,), one vector for each memory.
        """
        found = np.full(len(embedding_seqs), np.nan)
        stored = vectors.token_codes(snapshot, EMBEDDED_MODEL, embedding_seqs.tolist())
        codes = [stored.get(seq, b"") for seq in embedding_seqs.tolist()]
        lengths = np.array([len(code) // 2 for code in codes], np.int64)
        present = np.flatnonzero(lengths)
        if not len(present) or not words:
            return found
        query = np.frombuffer(b"".join(code for _, code in words), np.uint16)
        weights = np.repeat([_rarity(word, rarity) for word, _ in words], [len(code) // 2 for _, code in words])
        if not weights.any():
            weights = np.ones(len(query))
        pieces, places = np.unique(np.frombuffer(b"".join(codes), np.uint16), return_inverse=True)
        cosines = self._vectors_of(query) @ self._vectors_of(pieces).T
        starts = np.cumsum(lengths[present]) - lengths[present]
        best = np.maximum.reduceat(cosines[:, places], starts, axis=1)
        found[present] = weights @ best / weights.sum()
        return found

    def release_memory(self) -> None:
        """Release the mapped pages while the process is idle."""
        if self._mapping is not None and self._table is not None:
            self._mapping.madvise(mmap.MADV_DONTNEED)
            self._forget_vectors()

    def _forget_vectors(self) -> None:
        assert self._table is not None
        # Memory that is not written yet costs nothing.
        self._unit_vectors = np.empty((_CACHED_VECTORS, EMBEDDED_DIMENSIONS), np.float32)
        self._place_of_piece = np.full(len(self._table), -1, np.int32)
        self._cached = 0

    def _vectors_of(self, pieces: Pieces) -> Floats:
        """Return the unit vectors of pieces, shape (n, dimensions)."""
        assert self._table is not None
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


def _unit(rows: Floats) -> Floats:
    unit: Floats = rows / np.maximum(np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None], 1e-9)
    return unit


def _rarity(word: str, rarity: Mapping[str, float]) -> float:
    """Return the greatest rarity of the terms in ``word``, 0 for a stop word and for one that was not searched."""
    return max((rarity.get(term, 0.0) for term in search_words(word)), default=0.0)
