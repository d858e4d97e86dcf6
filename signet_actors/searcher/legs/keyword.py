"""The keyword leg: BM25 over the rows that FTS5 finds for each term, admitted rows only, at most a pool of candidates.

FTS5 ranks slowly (it looks up each row's length and term positions, and knows no filter) and has no top-k pruning, so
it is only asked which rows hold a phrase; weighing them is a few array operations. Terms are added rarest first until
the rows to weigh exceed a share of the store; what the frequent rest adds is small (docs/quality.md rule 5).

Source: docs/decisions.md 6, 8; docs/quality.md rules 4, 5 and 7.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.domain.query_words import match_terms, pair_expression, phrase_expression
from signet_actors.domain.ranking import bm25
from signet_actors.searcher.columns import Mask, MemoryColumns, Seqs
from signet_actors.searcher.postings import MATCH, Postings
from signet_actors.searcher.term_frequency import TermFrequencies
from signet_actors.store.snapshot import Snapshot

SCAN_SHARE = 0.03
SCAN_AT_LEAST = 20_000
"""Rows that may always be weighed: below this store size nothing is ever pruned."""


NO_ROWS: Seqs = np.zeros(0, np.int64)


class KeywordHits(NamedTuple):
    """``seqs`` and ``strengths`` (BM25, > 0), best first; same length. ``identifier_hits``: hits with an identifier of
    the query to the letter, because they hold its parts side by side. ``hint_only``: hits that only a hint found.
    """

    seqs: Seqs
    strengths: npt.NDArray[np.float64]
    identifier_hits: Seqs
    identifiers: tuple[str, ...]
    hint_only: Seqs = NO_ROWS


class KeywordLeg:
    """The index of words, as one searcher asks it."""

    def __init__(self, columns: MemoryColumns, postings: Postings) -> None:
        self._columns = columns
        self._postings = postings
        self.frequencies = TermFrequencies()
        self._strength = np.zeros(0, np.float64)  # by seq; all zero between queries

    def search(self, snapshot: Snapshot, query: str, allowed: Mask, *, pool: int) -> KeywordHits:
        """The best ``pool`` rows of ``allowed`` that match any term of ``query``. The columns show ``snapshot``."""
        columns, terms = self._columns, match_terms(query)
        self.frequencies.resize(columns.size)
        budget = max(SCAN_AT_LEAST, int(SCAN_SHARE * columns.size))
        phrases = self.frequencies.prune(snapshot, terms.phrases, budget)
        expressions = [*map(phrase_expression, phrases), *map(pair_expression, terms.pairs)]
        if len(self._strength) < columns.size:
            self._strength = np.zeros(len(columns.live), np.float64)
        strength, touched, identifier_hits = self._strength, [NO_ROWS], [NO_ROWS]
        mean_length = columns.indexed_tokens / max(columns.indexed_rows, 1)
        try:
            for at, expression in enumerate(expressions):
                snapshot.check_preempted()
                holding = self._postings.lookup(snapshot, MATCH, expression)
                idf = bm25.inverse_document_frequency(columns.indexed_rows, len(holding))
                rows: Seqs = holding[allowed[holding]].astype(np.int64)
                touched.append(rows[strength[rows] == 0.0])
                strength[rows] += idf * bm25.weights(columns.tokens[rows], mean_length)
                if at < len(phrases) and phrases[at] in terms.identifiers:
                    identifier_hits.append(rows)
            seqs = np.concatenate(touched)
            strengths = strength[seqs]
        finally:
            for fresh in touched:
                strength[fresh] = 0.0
        if len(seqs) > pool:
            best = np.argpartition(-strengths, pool)[:pool]
            seqs, strengths = seqs[best], strengths[best]
        order = np.argsort(-strengths, kind="stable")
        pruned = any(identifier not in phrases for identifier in terms.identifiers)
        seqs = seqs[order]
        return KeywordHits(
            seqs, strengths[order], seqs if pruned else np.concatenate(identifier_hits), terms.identifiers
        )
