"""The hints leg: the same words sought in the questions that a memory may answer.

A hint is a short text of its own, weighed as the content of a memory is; a memory is worth its best hint. What is found
is merged with what the content says by the greater of the two, so that a memory is never paid twice for one query.

The index holds the hints of the snapshot and no others: hints go with what they were made of, in the same transaction.
Only what never changes about a hint is kept here: whose it is and how long it is. Which hints a caller may profit from
is the mask of admitted memories, the same as for the content.

Source: memory-pipeline.txt "Prospective Indexing (Hints)"; docs/decisions.md 9, 35.
Departs: a term that more than a share of all hints hold is left out (the content is still searched for it), because
questions are made of the same few words.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from signet_actors.domain.query_words import match_terms, pair_expression, phrase_expression
from signet_actors.domain.ranking import bm25, fusion
from signet_actors.searcher.columns import Mask, MemoryColumns, Seqs
from signet_actors.searcher.legs.keyword import KeywordHits
from signet_actors.store.fts_tokens import token_count
from signet_actors.store.snapshot import Snapshot

TERM_SHARE = 0.03
TERM_AT_LEAST = 20_000
"""Hints that may hold a term: below this number of hints none is left out."""

_BATCH = 20_000
_GROWTH_FACTOR = 1.05
_NEWEST = "SELECT seq FROM sqlite_sequence WHERE name = 'memory_hints'"
_ROWS = (
    "SELECT h.seq, h.memory_seq, d.sz FROM memory_hints h LEFT JOIN memory_hints_fts_docsize d ON d.id = h.seq"
    f" WHERE h.seq > ? ORDER BY h.seq LIMIT {_BATCH}"
)
_MATCH = "SELECT group_concat(rowid) FROM (SELECT rowid FROM memory_hints_fts WHERE memory_hints_fts MATCH ? LIMIT ?)"


class HintsLeg:
    """The index of hints, as one searcher asks it. A store without hints costs one look at a number per commit."""

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
        """What is known of hints covers ``snapshot``, which the columns must show; False when there never was any."""
        columns = self._columns
        if self._generation != columns.generation:
            self._clear()
        if self._version != columns.version:
            newest = snapshot.value(_NEWEST) or 0
            while self._newest < newest:
                rows = snapshot.rows(_ROWS, (self._newest,))
                if not rows:
                    break
                self._append(rows)
            self._newest = newest
            self._version = columns.version
        return self._rows > 0

    def merge_into(
        self, snapshot: Snapshot, query: str, allowed: Mask, content: KeywordHits, *, pool: int
    ) -> KeywordHits:
        """``content`` and what the hints of ``allowed`` rows say of ``query``, each row by its better word."""
        seqs, strengths = self.search(snapshot, query, allowed, pool=pool)
        if not len(seqs):
            return content
        merged, strength, only_hint = fusion.merge_by_max(content.seqs, content.strengths, seqs, strengths)
        return content._replace(seqs=merged, strengths=strength, hint_only=merged[only_hint])

    def search(
        self, snapshot: Snapshot, query: str, allowed: Mask, *, pool: int
    ) -> tuple[Seqs, npt.NDArray[np.float64]]:
        """The best ``pool`` rows of ``allowed`` with a hint that matches any term of ``query``, and the strength of
        that hint (BM25, > 0); best first.
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

    def _matching_hints(self, snapshot: Snapshot, expression: str) -> Seqs:
        """The hints that match; none where they are too many, which is remembered until the hints have grown."""
        if self._rows > _GROWTH_FACTOR * self._frequent_of:
            self._too_frequent.clear()
            self._frequent_of = self._rows
        most = max(TERM_AT_LEAST, int(TERM_SHARE * self._rows))
        if expression in self._too_frequent:
            return _NO_HINTS
        listed: str | None = snapshot.value(_MATCH, (expression, most + 1))
        if listed is None:
            return _NO_HINTS
        hints = np.fromstring(listed, np.int64, sep=",")
        if len(hints) > most:
            self._too_frequent.add(expression)
            return _NO_HINTS
        return hints

    def _append(self, rows: list[tuple[int, int, bytes | None]]) -> None:
        size = rows[-1][0] + 1
        if size > len(self._memory):
            capacity = max(size, 1024, len(self._memory) * 3 // 2)
            memory, tokens = np.zeros(capacity, np.int32), np.zeros(capacity, np.int32)
            memory[: len(self._memory)], tokens[: len(self._tokens)] = self._memory, self._tokens
            self._memory, self._tokens = memory, tokens
        at = np.array([row[0] for row in rows], np.int64)
        self._memory[at] = [row[1] for row in rows]
        self._tokens[at] = counted = [token_count(row[2]) for row in rows]
        self._rows += len(rows)
        self._all_tokens += sum(counted)
        self._newest = int(at[-1])


_NO_HINTS: Seqs = np.zeros(0, np.int64)
