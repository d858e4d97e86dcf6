"""The keyword leg: BM25 over the readable rows that contain a term of the query.

FTS5 ranks slowly: it looks up the length and term positions of each row, knows no filter and has no top-k pruning. So
FTS5 only supplies the rows that contain a phrase, and array operations score them. Terms are added rarest first until
the rows to score exceed a share of the store; the frequent rest adds little (docs/quality.md rule 5).

Source: docs/decisions.md 6, 8; docs/quality.md rules 4, 5 and 7.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.domain.query_words import MatchTerms, match_terms, pair_expression, phrase_expression
from signet_actors.domain.ranking import bm25
from signet_actors.searcher.columns import Mask, MemoryColumns, Seqs
from signet_actors.searcher.legs.alternatives import MAX_TERMS, alternatives
from signet_actors.searcher.postings import MATCH, Postings, Rows
from signet_actors.store.engine import Snapshot

_MAX_TERMS = 20_000
_GROWTH_FACTOR = 1.05


class TermFrequencies:
    """Document frequencies by stemmed token. The cache is cleared when the store has grown by a twentieth."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._rows = 0

    def resize(self, rows: int) -> None:
        """Note that the store now holds ``rows`` rows; clear the cache if it is outdated or full."""
        if rows > self._rows * _GROWTH_FACTOR or len(self._known) > _MAX_TERMS:
            self._known.clear()
            self._rows = rows

    def prune(self, snapshot: Snapshot, phrases: Sequence[str], budget: int) -> tuple[str, ...]:
        """Return the rarest phrases whose rows together do not exceed ``budget``, in their original order.

        The rarest phrase is always kept. The frequency of a phrase of several tokens is that of its rarest token.
        """
        if self._rows <= budget:
            return tuple(phrases)
        counted = sorted((self._rows_of(snapshot, phrase), at) for at, phrase in enumerate(phrases))
        kept: list[int] = []
        scanned = 0
        for rows, at in counted:
            scanned += rows
            if kept and scanned > budget:
                break
            kept.append(at)
        return tuple(phrases[at] for at in sorted(kept))

    def _rows_of(self, snapshot: Snapshot, phrase: str) -> int:
        terms = snapshot.stem(phrase)
        return min((self._document_frequency(snapshot, term) for term in terms), default=0)

    def _document_frequency(self, snapshot: Snapshot, token: str) -> int:
        known = self._known.get(token)
        if known is None:
            known = snapshot.document_frequency(token)
            self._known[token] = known
        return known


UNCERTAIN = 0.6
"""The share that a term has which is searched instead of one that no memory holds."""
SCAN_SHARE = 0.03
SCAN_AT_LEAST = 20_000
"""At least this many rows are scored per query; in a smaller store no term is pruned."""


NO_ROWS: Seqs = np.zeros(0, np.int64)


class KeywordHits(NamedTuple):
    """``seqs`` and ``strengths`` (BM25, > 0), best first, of the same length.

    ``identifiers`` are those of the query. ``identifier_hits`` are hits that may be exact matches of one, because they
    contain its parts next to each other. ``hints`` are the rows that were found through a hint, best first,
    ``hint_only`` those found through a hint alone. ``rarity`` is the inverse document frequency of each phrase that was
    searched, ``full`` the strength of a row of mean length with every term.
    """

    seqs: Seqs
    strengths: npt.NDArray[np.float64]
    identifier_hits: Seqs
    identifiers: tuple[str, ...]
    hint_only: Seqs = NO_ROWS
    rarity: Mapping[str, float] = {}
    hints: Seqs = NO_ROWS
    full: float = 0.0


class SearchedTerm(NamedTuple):
    """A term of a query, and the expression that finds the rows with it.

    ``spellings`` find rows that have it in another spelling. ``alternatives`` were searched as well, because no memory
    has the term.
    """

    text: str
    expression: str
    alternatives: tuple[str, ...] = ()
    spellings: tuple[str, ...] = ()

    def rows(self, snapshot: Snapshot, postings: Postings) -> Rows:
        """Return the rows that have the term, ascending."""
        rows = postings.lookup(snapshot, MATCH, self.expression)
        for expression in self.spellings:
            others = postings.lookup(snapshot, MATCH, expression)
            if len(others):
                rows = np.union1d(rows, others)
        return rows


def searched_terms(terms: MatchTerms) -> list[SearchedTerm]:
    """Return the phrases and the pairs of a query as they are searched for."""
    found: list[SearchedTerm] = []
    for phrase in terms.phrases:
        expression, *spellings = terms.expressions(phrase)
        found.append(SearchedTerm(phrase, expression, spellings=tuple(spellings)))
    return found + [SearchedTerm(pair, pair_expression(pair)) for pair in terms.pairs]


class KeywordLeg:
    """The index of words as one searcher sees it. ``terms`` are those of the last query, without pruned ones."""

    def __init__(self, columns: MemoryColumns, postings: Postings) -> None:
        self._columns = columns
        self._postings = postings
        self.frequencies = TermFrequencies()
        self.terms: list[SearchedTerm] = []
        self._strength = np.zeros(0, np.float64)  # by seq; of the last query
        self._touched: list[Seqs] = []  # the rows that it matched

    def search(self, snapshot: Snapshot, query: str, allowed: Mask, *, pool: int) -> KeywordHits:
        """Return the best ``pool`` rows of ``allowed`` that match any term. The columns must be at ``snapshot``."""
        columns, terms = self._columns, match_terms(query)
        self.frequencies.resize(columns.size)
        budget = max(SCAN_AT_LEAST, int(SCAN_SHARE * columns.size))
        phrases = self.frequencies.prune(snapshot, terms.phrases, budget)
        self.terms = searched_terms(terms._replace(phrases=phrases))
        for earlier in self._touched:
            self._strength[earlier] = 0.0
        if len(self._strength) < columns.size:
            self._strength = np.zeros(len(columns.live), np.float64)
        self._touched, identifier_hits = [NO_ROWS], [NO_ROWS]
        rarity: dict[str, float] = {}
        full = 0.0
        missing: list[str] = []
        for at, term in enumerate(self.terms):
            snapshot.check_preempted()
            holding = term.rows(snapshot, self._postings)
            if not len(holding) and term.text in terms.emoji:
                continue
            idf = bm25.inverse_document_frequency(columns.indexed_rows, len(holding))
            full += idf
            rows = self._strengthen(holding, allowed, idf)
            if at < len(phrases):
                rarity[phrases[at]] = idf
                if not len(holding):
                    missing.append(phrases[at])
                if phrases[at] in terms.identifiers:
                    identifier_hits.append(rows)
        for phrase in missing[:MAX_TERMS]:
            snapshot.check_preempted()
            others = tuple(alternatives(snapshot, phrase, terms.parts))
            self.terms[phrases.index(phrase)] = self.terms[phrases.index(phrase)]._replace(alternatives=others)
            for other in others:
                holding = self._postings.lookup(snapshot, MATCH, phrase_expression(other))
                idf = bm25.inverse_document_frequency(columns.indexed_rows, len(holding))
                self._strengthen(holding, allowed, UNCERTAIN * idf)
        self.terms = [term for term in self.terms if term.text not in terms.emoji or term.text in rarity]
        seqs = np.concatenate(self._touched)
        strengths = self._strength[seqs]
        if len(seqs) > pool:
            best = np.argpartition(-strengths, pool)[:pool]
            seqs, strengths = seqs[best], strengths[best]
        order = np.argsort(-strengths, kind="stable")
        pruned = any(identifier not in phrases for identifier in terms.identifiers)
        seqs = seqs[order]
        identifier_rows = seqs if pruned else np.concatenate(identifier_hits)
        return KeywordHits(seqs, strengths[order], identifier_rows, terms.identifiers, rarity=rarity, full=full)

    def _strengthen(self, holding: Rows, allowed: Mask, idf: float) -> Seqs:
        """Add a term's weight to the allowed rows of ``holding``; return them."""
        columns, strength = self._columns, self._strength
        rows: Seqs = holding[allowed[holding]].astype(np.int64)
        self._touched.append(rows[strength[rows] == 0.0])
        mean_length = columns.indexed_tokens / max(columns.indexed_rows, 1)
        strength[rows] += idf * bm25.weights(columns.tokens[rows], mean_length)
        return rows

    def strengths(self, seqs: Seqs) -> npt.NDArray[np.float64]:
        """Return the strength (BM25, 0 = no match) of allowed rows for the query that was searched last."""
        return self._strength[seqs]
