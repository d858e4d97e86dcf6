"""The hints leg: keyword search in the questions that a memory may answer.

A hint is scored by BM25 like the content of a memory; a memory gets the greater of the score of its content and that of
its best hint, never the sum. The transaction that changes a memory deletes its hints, so the index always matches the
snapshot; only the memory and the length of a hint, which never change, are cached. A hint counts only if the caller may
read its memory.

Source: memory-pipeline.txt "Prospective Indexing (Hints)"; docs/decisions.md 9, 35.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from signet_actors.domain.query_words import match_terms, pair_expression, phrase_expression
from signet_actors.domain.ranking import bm25, fusion
from signet_actors.searcher.columns import Mask, MemoryColumns, Seqs
from signet_actors.searcher.legs.keyword import KeywordHits
from signet_actors.store.engine import Snapshot
from signet_actors.store.reads import hints as stored

TERM_SHARE = 0.03
TERM_AT_LEAST = 20_000
"""A term is never ignored while at most this many hints contain it."""

_GROWTH_FACTOR = 1.05


class HintsLeg:
    """The hint index as one searcher sees it. A store without hints costs one integer read per commit."""

    def __init__(self, columns: MemoryColumns) -> None:
        self._columns = columns
        self._clear()

    def _clear(self) -> None:
        self._generation = self._columns.generation
        self._version: int | None = None
        self._newest = 0
        self._rows = 0
        self._all_tokens = 0
        # By memory_hints.seq.
        self._memory: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._tokens: npt.NDArray[np.int32] = np.zeros(0, np.int32)
        self._too_frequent: set[str] = set()
        self._frequent_of = 0

    def sync(self, snapshot: Snapshot) -> bool:
        """Load new hints up to ``snapshot``, to which the columns must be synced; return False if there are none."""
        columns = self._columns
        if self._generation != columns.generation:
            self._clear()
        if self._version != columns.version:
            newest = stored.newest(snapshot)
            while self._newest < newest:
                rows = stored.after(snapshot, self._newest)
                if not rows.seqs:
                    break
                self._append(rows)
            self._newest = newest
            self._version = columns.version
        return self._rows > 0

    def merge_into(
        self, snapshot: Snapshot, query: str, allowed: Mask, content: KeywordHits, *, pool: int
    ) -> KeywordHits:
        """Return ``content`` merged with the hint hits of ``allowed`` rows; each row keeps its greater strength."""
        seqs, strengths = self.search(snapshot, query, allowed, pool=pool)
        if not len(seqs):
            return content
        merged, strength, only_hint = fusion.merge_by_max(content.seqs, content.strengths, seqs, strengths)
        return content._replace(seqs=merged, strengths=strength, hint_only=merged[only_hint], hints=seqs)

    def search(
        self, snapshot: Snapshot, query: str, allowed: Mask, *, pool: int
    ) -> tuple[Seqs, npt.NDArray[np.float64]]:
        """Return the best ``pool`` rows of ``allowed`` with a hint that matches any term, and their strengths.

        The strength of a row is that of its best hint (BM25, > 0). Best first.
        """
        terms = match_terms(query)
        found = [
            self._matching_hints(snapshot, expression)
            for expression in (*map(phrase_expression, terms.phrases), *map(pair_expression, terms.pairs))
        ]
        hints = np.unique(np.concatenate((np.zeros(0, np.int64), *found)))
        hints = hints[allowed[self._memory[hints]]]
        if not len(hints):
            return hints, np.zeros(0)
        strength = np.zeros(len(hints))
        worth = bm25.weights(self._tokens[hints], self._all_tokens / self._rows)
        for holding in found:
            holds = np.isin(hints, holding, assume_unique=True)
            strength[holds] += bm25.inverse_document_frequency(self._rows, len(holding)) * worth[holds]
        order = np.argsort(-strength, kind="stable")
        rows, best = np.unique(self._memory[hints[order]].astype(np.int64), return_index=True)
        strengths = strength[order[best]]
        order = np.argsort(-strengths, kind="stable")[:pool]
        return rows[order], strengths[order]

    def covered(self, snapshot: Snapshot, weights: Sequence[tuple[str, float]], seqs: Seqs) -> npt.NDArray[np.float64]:
        """Return how much weight the terms have together that the best hint of each row has. Shape (len(seqs),).

        ``weights``: the expression of each term, and its weight.
        """
        of_hint = np.zeros(self._newest + 1)
        for expression, weight in weights:
            of_hint[self._matching_hints(snapshot, expression)] += weight
        of_row = np.zeros(self._columns.size)
        hints = np.flatnonzero(of_hint)
        np.maximum.at(of_row, self._memory[hints], of_hint[hints])
        found: npt.NDArray[np.float64] = of_row[seqs]
        return found

    def _matching_hints(self, snapshot: Snapshot, expression: str) -> Seqs:
        """Return the hints that match; none if they are too many, which is cached until there are 5 % more hints.

        Departs: a term that occurs in more than ``TERM_SHARE`` of all hints is ignored here (the content is still
        searched for it), because questions consist of the same few words.
        """
        if self._rows > _GROWTH_FACTOR * self._frequent_of:
            self._too_frequent.clear()
            self._frequent_of = self._rows
        most = max(TERM_AT_LEAST, int(TERM_SHARE * self._rows))
        if expression in self._too_frequent:
            return _NO_HINTS
        listed = snapshot.hint_postings(expression, most + 1)
        if listed is None:
            return _NO_HINTS
        hints = np.fromstring(listed, np.int64, sep=",")
        if len(hints) > most:
            self._too_frequent.add(expression)
            return _NO_HINTS
        return hints

    def _append(self, rows: stored.HintRows) -> None:
        size = rows.seqs[-1] + 1
        if size > len(self._memory):
            capacity = max(size, 1024, len(self._memory) * 3 // 2)
            memory, tokens = np.zeros(capacity, np.int32), np.zeros(capacity, np.int32)
            memory[: len(self._memory)], tokens[: len(self._tokens)] = self._memory, self._tokens
            self._memory, self._tokens = memory, tokens
        at = np.array(rows.seqs, np.int64)
        self._memory[at] = rows.memory_seqs
        self._tokens[at] = rows.tokens
        self._rows += len(at)
        self._all_tokens += sum(rows.tokens)
        self._newest = int(at[-1])


_NO_HINTS: Seqs = np.zeros(0, np.int64)
