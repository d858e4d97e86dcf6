"""The relevance of candidates to a query: the words that they cover, and their cosine beside that of unrelated pairs.

Both are measured on the memories that the caller may read, in the projects of the request, and on nothing else
(``Counted``). Words are compared by the posting lists, so stems are those of the index. What unrelated pairs have is
measured once for each vector space and scope, and again whenever the number of vectors in it has doubled, on records
that are the same in every searcher.

Source: docs/quality.md "Relevance"; docs/decisions.md 49.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.config.schema import EMBEDDED_MODEL
from signet_actors.domain.query_words import derived_expression, phrase_expression, zone_expression
from signet_actors.domain.ranking import relevance
from signet_actors.domain.ranking.relevance import (
    ASKING_WORDS,
    GENERAL_WORDS,
    LIGHT_WORDS,
    WHICH_WORDS,
    Unrelated,
)
from signet_actors.domain.ranking.text_flags import SAYS_LITTLE
from signet_actors.searcher.columns import Mask, Seqs
from signet_actors.searcher.legs.keyword import NO_ROWS, UNCERTAIN, SearchedTerm
from signet_actors.searcher.legs.vector import VectorLeg
from signet_actors.searcher.postings import MATCH, Postings, Rows
from signet_actors.store.engine import Snapshot

SAMPLE: Final = 256
_LEAST_SAMPLE: Final = 4
COMPARED: Final = 64
"""So many rows are compared token by token."""
_MAX_SCOPES: Final = 64

Floats = npt.NDArray[np.float64]


class Counted(NamedTuple):
    """The rows on which a request's relevance is measured, as a mask of shape (size,), and the key of this scope."""

    scope: Hashable
    rows: Mask


class UnrelatedCosines:
    """The cosines of unrelated memories by vector space and scope, each measured on at most ``SAMPLE`` vectors."""

    def __init__(self) -> None:
        self._measured: OrderedDict[tuple[VectorLeg, Hashable], tuple[tuple[int, int], Unrelated]] = OrderedDict()

    def get(self, leg: VectorLeg, counted: Counted) -> Unrelated:
        """Return what unrelated pairs of the counted rows have in the space of ``leg``."""
        prior = relevance.EMBEDDED_PRIOR if leg.matrix.model == EMBEDDED_MODEL else relevance.OTHER_PRIOR
        span = 1 << max(leg.count(counted.rows), 1).bit_length() - 1
        at, key = (leg, counted.scope), (leg.matrix.generation, span)
        known = self._measured.get(at)
        if span < _LEAST_SAMPLE or (known is None and not leg.complete):
            return prior
        if known is None or (known[0] != key and leg.complete):
            # Evenly spaced among the first records: every searcher has these at the same places.
            sample = leg.first_vectors(counted.rows, span)[:: max(1, span // SAMPLE)]
            found = relevance.unrelated_cosines(sample, prior)
            if leg.matrix.model == EMBEDDED_MODEL:
                found = found._replace(mean=min(found.mean, relevance.EMBEDDED_MOST))
            known = self._measured[at] = key, found
            while len(self._measured) > _MAX_SCOPES:
                self._measured.popitem(last=False)
        self._measured.move_to_end(at)
        return known[1]


class _WeighedTerm(NamedTuple):
    """``rows`` have the term, ``likely_rows`` one that it may have been meant as."""

    text: str
    expression: str
    weight: float
    rows: Rows
    likely_rows: list[Rows]


class Measure:
    """Measures candidates of one query.

    If none of ``terms`` is informative, all count. ``legs`` are those that were searched. ``named`` rows have an exact
    name of the text around the query. ``of_long_text`` and ``is_part``: as of ``Recall``. ``hinted`` returns
    the weight of the terms that the best hint of each row has. ``flags``: of each row (``text_flags``); the meaning of
    one that says little counts little. ``tokens`` returns how near the tokens of the query are to those of each row.
    ``extent`` tells how much the query says.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        postings: Postings,
        terms: Sequence[SearchedTerm],
        counted: Counted,
        unrelated: UnrelatedCosines,
        legs: Sequence[VectorLeg],
        *,
        named: Seqs = NO_ROWS,
        of_long_text: bool = False,
        is_part: bool = False,
        hinted: Callable[[Sequence[tuple[str, float]], Seqs], Floats] | None = None,
        flags: npt.NDArray[np.uint32] | None = None,
        likeness: Callable[[AbstractSet[str], Seqs], Floats] | None = None,
        tokens: Callable[[Seqs], Floats] | None = None,
    ) -> None:
        self._unrelated, self._legs, self._counted, self._named = unrelated, legs, counted, named
        self._hinted, self._flags, self._likeness = hinted, flags, likeness
        self._tokens = None if of_long_text else tokens  # some of many tokens are near to those of any text
        self._most_standing = relevance.MOST_STANDING if of_long_text else np.inf
        self._terms = []
        self._rows_with = partial(postings.lookup, snapshot, MATCH)
        count = int(np.count_nonzero(counted.rows))
        answerable = 0.0
        for term in [term for term in terms if term.text not in ASKING_WORDS] or terms:
            rows = term.rows(snapshot, postings)
            others = () if any(map(str.isdigit, term.text)) else term.alternatives  # ORA-942 is not ORA-60
            likely = [postings.lookup(snapshot, MATCH, phrase_expression(other)) for other in others]
            holding = int(np.count_nonzero(counted.rows[rows]))
            expression = " OR ".join((term.expression, *term.spellings))
            self._terms.append(_WeighedTerm(term.text, expression, relevance.word_weight(count, holding), rows, likely))
            answerable += self._terms[-1].weight if holding or likely else 0.0
        texts = {term.text for term in self._terms}
        self._which = frozenset() if is_part or texts <= WHICH_WORDS else texts & WHICH_WORDS
        self.extent = relevance.extent((term.weight for term in self._terms), count)
        self._whole = sum(term.weight for term in self._terms)
        if is_part:
            self._whole = max(answerable, relevance.LEAST_ANSWERABLE * relevance.word_weight(count, 0))

    @property
    def weights(self) -> list[tuple[str, float]]:
        """The expression of each term that counts, and its weight."""
        return [(term.expression, term.weight) for term in self._terms]

    def relevance(self, seqs: Seqs, cosines: Floats) -> Floats:
        """Return the relevance of rows; ``cosines`` are NaN for no vector. All arrays have shape (n,)."""
        standing, coverage = self.standing(seqs, cosines), self.coverage(seqs)
        tokens = self._likeness_of_tokens(seqs, coverage, standing)
        found = relevance.relevance(coverage, standing, self.extent, tokens)
        found = np.where(self._lacks_point(seqs), np.minimum(found, relevance.BY_GENERAL_WORDS), found)
        if self._hinted is not None:
            # The words of a hint are a signal of their own: the content may be far from the question.
            by_hint = self._hinted(self.weights, seqs) / max(self._whole, 1e-12)
            found = np.maximum(found, relevance.relevance(by_hint, np.maximum(standing, 0.0), self.extent))
        return np.where(np.isin(seqs, self._named), np.maximum(found, relevance.OF_NAMED), found)

    def _likeness_of_tokens(self, seqs: Seqs, coverage: Floats, standing: Floats) -> Floats | None:
        """Return ``tokens`` of the rows that stand best by the other signals, NaN for others; None if not known."""
        if self._tokens is None:
            return None
        found = np.full(len(seqs), np.nan)
        best = np.argsort(-np.nan_to_num(relevance.relevance(coverage, standing, self.extent)), kind="stable")[
            :COMPARED
        ]
        found[best] = self._tokens(seqs[best])
        return found

    def _lacks_point(self, seqs: Seqs) -> Mask:
        """Return which rows have only general words of the query, and nothing near the words that tell which thing.

        "Which port has the frontend?" is not answered by the port of the staging API, "when does the train to Berlin
        leave?" not by a job that runs at 02:30 Europe/Berlin.
        """
        lacks = np.zeros(len(seqs), np.bool_)
        terms = [term for term in self._terms if term.text not in self._which]
        general = [term for term in terms if term.text in GENERAL_WORDS]
        telling = [term for term in terms if term.text.isalpha() and term.text not in GENERAL_WORDS | LIGHT_WORDS]
        if not telling or self._likeness is None or len(general) + len(telling) != len(terms):
            return lacks
        in_zone = {term.text: self._in_zone(term.text, seqs) for term in telling}
        near_to = {text for text, zones in in_zone.items() if not zones.any()}
        if not near_to:
            return lacks
        for term in general:
            lacks |= rows_hold(term.rows, seqs)
        for zones in in_zone.values():
            lacks |= zones
        for term in telling:
            for rows in (term.rows, *term.likely_rows):
                lacks &= ~rows_hold(rows, seqs) | in_zone[term.text]
        if lacks.any():
            near = self._likeness(near_to, seqs[lacks])
            lacks[lacks] = near < relevance.NEAR
        return lacks

    def _in_zone(self, place: str, seqs: Seqs) -> Mask:
        """Return which rows have ``place`` in the name of a time zone (Europe/Berlin, America/New_York)."""
        named = rows_hold(self._rows_with(zone_expression()), seqs)
        return rows_hold(self._rows_with(zone_expression(place)), seqs) if named.any() else named

    def coverage(self, seqs: Seqs) -> Floats:
        """Return the share of the terms' weight that each row has, in [0, 1]; 0 without terms. Shape (len(seqs),)."""
        covered, whole = np.zeros(len(seqs)), np.full(len(seqs), self._whole)
        for term in self._terms:
            has = rows_hold(term.rows, seqs).astype(np.float64)
            for rows in term.likely_rows:
                has = np.maximum(has, UNCERTAIN * rows_hold(rows, seqs))
            covered += term.weight * has
            if term.text in self._which:
                whole -= term.weight * (1.0 - has)
        share: Floats = covered / np.maximum(whole, 1e-12)
        return share

    def covered_words(self, seqs: Seqs) -> npt.NDArray[np.uint64]:
        """Return a number for each row that is equal for rows with the same words of the query. Shape (len(seqs),)."""
        codes = np.zeros(len(seqs), np.uint64)
        for at, term in enumerate(self._terms):
            for rows in (term.rows, *term.likely_rows):
                codes |= rows_hold(rows, seqs).astype(np.uint64) << np.uint64(at % 64)
        return codes

    def standing(self, seqs: Seqs, cosines: Floats) -> Floats:
        """Return each cosine in spreads above the mean of unrelated pairs of its space. Shape (len(seqs),)."""
        found = np.full(len(seqs), np.nan)
        for leg in self._legs:
            mean, spread = self._unrelated.get(leg, self._counted)
            of_leg = np.isnan(found) & leg.holds(seqs)
            found[of_leg] = (cosines[of_leg] - mean) / spread
        most: Floats | float = self._most_standing
        if self._flags is not None:
            most = np.where(self._flags[seqs] & SAYS_LITTLE, min(relevance.MOST_STANDING, most), most)
        standing: Floats = np.minimum(found, most)
        return standing


def rows_hold(rows: Rows, seqs: Seqs) -> Mask:
    """Return which of ``seqs`` are among the ascending ``rows``. Shape (len(seqs),)."""
    if not len(rows):
        return np.zeros(len(seqs), np.bool_)
    narrow = seqs.astype(np.int32)  # the type of the lists: another one would copy them
    at = np.minimum(np.searchsorted(rows, narrow), len(rows) - 1)
    held: Mask = rows[at] == narrow
    return held


def spelled_otherwise(
    snapshot: Snapshot, postings: Postings, terms: Sequence[SearchedTerm], seqs: Seqs
) -> dict[str, Mask]:
    """Return the terms that rows have by the index, but not as they stand in the query (an emoji), and these rows."""
    found: dict[str, Mask] = {}
    for term in terms:
        for expression in (derived_expression(term.text), *term.spellings):
            has = rows_hold(postings.lookup(snapshot, MATCH, expression), seqs)
            if has.any():
                found[term.text] = has | found.get(term.text, has)
    return found
