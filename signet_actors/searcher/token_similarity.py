"""Token similarity (MaxSim): how well a memory answers each single word of the query.

A vector of a whole text blurs its words. Here each token of the query is compared with every token of a memory, and
the best cosine counts, weighted by the rarity of the word. Token codes are stored beside the vectors.

Source: docs/quality.md "Token similarity"; Khattab and Zaharia, "ColBERT" (2020), section 3.3 "Late Interaction".
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType
from typing import Final

import numpy as np
import numpy.typing as npt

from signet_actors.config.embedding_models import MAX_TOKEN_CODES
from signet_actors.config.schema import EMBEDDED_MODEL, MINILM_MODEL
from signet_actors.domain.query_words import search_words
from signet_actors.errors import ConfigError
from signet_actors.searcher.code_comparison import CodeComparison, PieceComparison, StateComparison
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import vectors

ROWS: Final = 64
"""So many of the best candidates are compared; between 50 and 200 quality is the same."""
_CACHED_BYTES: Final = 4 << 20
"""Capacity of the cache of stored codes of each model; it is cleared when it is full."""
_COMPARISONS: Final[Mapping[str, Callable[[], CodeComparison]]] = {
    EMBEDDED_MODEL: PieceComparison,
    MINILM_MODEL: StateComparison,
}


@dataclass(slots=True)
class _StoredCodes:
    """Codes of one model by ``embeddings.seq``, which never gets other codes, and their size in bytes."""

    by_seq: dict[int, bytes]
    size: int = 0


class TokenSimilarity:
    """Compares queries with the stored codes of every model that makes codes."""

    def __init__(self) -> None:
        self._comparisons: dict[str, CodeComparison] = {}
        self._stored: dict[str, _StoredCodes] = {}

    def supports(self, model: str) -> bool:
        """Return whether codes of ``model`` can be compared in this process."""
        if model not in _COMPARISONS:
            return False
        if model not in self._comparisons:
            try:
                self._comparisons[model] = _COMPARISONS[model]()
            except ConfigError:  # the gateway, which embeds with the same file, reports it
                return False
        return True

    def likeness(
        self,
        snapshot: Snapshot,
        model: str,
        words: Sequence[tuple[str, bytes]],
        rarity: Mapping[str, float],
        embedding_seqs: npt.NDArray[np.int64],
        spelled: Mapping[str, npt.NDArray[np.bool_]] = MappingProxyType({}),
    ) -> npt.NDArray[np.float64]:
        """Return by vector the mean over the query's tokens of the best cosine, weighted by ``rarity``; NaN = no codes.

        ``model`` is supported. ``words``: the query's words with their codes. ``embedding_seqs``: shape (n,), one
        vector for each memory. ``spelled``: which memories have a term of the query in a form that the encoder does not
        know; its tokens are as near to them as can be. Shape (n,).
        """
        found = np.full(len(embedding_seqs), np.nan)
        comparison = self._comparisons[model]
        codes = self._codes(snapshot, model, embedding_seqs.tolist())
        lengths = np.fromiter(map(len, codes), np.int64, len(codes)) // comparison.code_bytes
        present = np.flatnonzero(lengths)
        words = [(word, code) for word, code in words if len(code) % comparison.query_bytes == 0]
        if not len(present) or not words:
            return found
        counts = [len(code) // comparison.query_bytes for _, code in words]
        weights = np.repeat([_rarity(word, rarity) for word, _ in words], counts)
        cosines = comparison.cosines(b"".join(code for _, code in words), b"".join(codes))
        starts = np.cumsum(lengths[present]) - lengths[present]
        best = np.maximum.reduceat(cosines, starts, axis=0)
        left = {term: has[present] for term, has in spelled.items() if term in rarity}
        for (word, _), count, end in zip(words, counts, accumulate(counts), strict=True):
            for term in set(search_words(word)).intersection(spelled):
                best[spelled[term][present], end - count : end] = 1.0
                left.pop(term, None)
        best = np.column_stack((best, *left.values()))  # words that have no tokens at all
        weights = np.append(weights, [rarity[term] for term in left])
        if not weights.any():
            weights = np.ones(len(weights))
        found[present] = best @ weights / weights.sum()
        return found

    def _codes(self, snapshot: Snapshot, model: str, embedding_seqs: Sequence[int]) -> list[bytes]:
        """Return the stored codes of each vector, empty if it has none that can be used."""
        known = self._stored.setdefault(model, _StoredCodes({}))
        missing = [seq for seq in embedding_seqs if seq not in known.by_seq]
        if missing and known.size > _CACHED_BYTES:
            known.by_seq.clear()
            known.size, missing = 0, list(embedding_seqs)
        if missing:
            found = vectors.token_codes(snapshot, model, missing)
            for seq in missing:
                known.by_seq[seq] = _usable(found.get(seq), self._comparisons[model].code_bytes)
                known.size += sys.getsizeof(known.by_seq[seq])
        return [known.by_seq[seq] for seq in embedding_seqs]

    def release_memory(self) -> None:
        """Free what is quickly read again, while the process is idle."""
        self._stored.clear()
        for comparison in self._comparisons.values():
            comparison.release_memory()


def _usable(codes: object, code_bytes: int) -> bytes:
    """Return ``codes`` as stored, or nothing for a value that no encoder made: a damaged row must fail no recall."""
    is_whole = isinstance(codes, bytes) and len(codes) % code_bytes == 0 and len(codes) <= MAX_TOKEN_CODES * code_bytes
    return codes if isinstance(codes, bytes) and is_whole else b""


def _rarity(word: str, rarity: Mapping[str, float]) -> float:
    """Return the greatest rarity of the terms in ``word``, 0 for a stop word and for one that was not searched."""
    return max((rarity.get(term, 0.0) for term in search_words(word)), default=0.0)
