"""Relevance: how likely it is that a memory is about a query, in [0, 1]. A score orders; relevance can be compared.

It has two signals. *Coverage* is the share of the query's informative words that the memory has, weighted by how rare
they are. *Standing* is the cosine in spreads above what unrelated memories of the store have, so that its scale is the
same for every encoder. A logistic function of both, calibrated on questions with known answers, is the relevance. Where
there is no cosine, the *extent* of the query counts: of one that says much, a smaller share has to be covered.

Source: docs/quality.md "Relevance"; docs/decisions.md 49.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_ASKING: Final = """
    ask asked tell told show give gave know known knew remember recall remind find found please want wanted need needs
    needed like say said get gets got getting let lets much many long often ever also still already currently usually
    exactly anything something come comes came coming go goes going gone went happen happens happened happening
    must may might shall ought muss müssen darf dürfen soll sollen sollte doit doivent faut debe deben
    bekomme bekommen bekommt geht gehen ging gegangen gibt kam komme kommen kommt macht machen mehr passiert
    va vont vient viennent arrive va van viene vienen pasa
"""
ASKING_WORDS: Final = frozenset(_ASKING.split())
"""Words of questions that say nothing about the subject, apart from stop words."""
_GENERAL: Final = """
    address addresses api branch branches class classes command commands database databases directory endpoint endpoints
    field fields file files folder form forms function functions host hosts image images job jobs key keys library line
    lines link links list lists message messages method model models module modules name names number numbers package
    packages page pages password path port ports process queue queues repository request requests row rows script
    scripts server servers service services setting settings table tables task tasks test tests todo todos token tokens
    type types url urls user users version versions worker workers
    adresse aufgabe aufgaben befehl benutzer bibliothek datei dateien datenbank dienst feld liste nachricht offen offene
    ordner rechner schlüssel seite server tabelle warteschlange zeile
"""
GENERAL_WORDS: Final = frozenset(_GENERAL.split())
"""Words of things that every project has many of: alone they do not tell which one is asked for."""
_LIGHT: Final = """
    another available back current currently default different existing first last latest main many next new newest
    old only other possible right run running same second set single start use used uses using work works wrong
"""
_WHICH: Final = """
    current latest new newest next
    aktuell aktuelle aktuellen aktueller neue neuen neuer neues neueste neuesten nächste nächsten nächster nächstes
    actuel actuelle nouveau nouvelle prochain prochaine actual nueva nuevo próxima próximo
"""
WHICH_WORDS: Final = frozenset(_WHICH.split())
"""Words that ask for the one that holds now: a memory need not have them."""
LIGHT_WORDS: Final = frozenset(_LIGHT.split()) | WHICH_WORDS
"""Words that may be missing without changing what is asked for."""
BY_GENERAL_WORDS: Final = 0.4
"""The greatest relevance of a memory that has only general words of a query, and nothing near the other words."""
NEAR: Final = 0.45
"""The cosine of a word of the query and the nearest word of a memory from which on its meaning is there."""
_PRIOR_ROWS: Final = 200
"""A word is weighed as if the caller had so many further memories without it: in a store of one memory, a word that it
has must count as much as one that it has not."""
OF_NAMED: Final = 0.9
"""The least relevance of a memory with an exact name of the text."""
LEAST_ANSWERABLE: Final = 5.5
"""Of a part of a long text, words that no memory holds do not count if so many others are left, in words that none
holds; as many are expected of a part with fewer."""
MOST_STANDING: Final = 2.0
"""The cosine of a sentence of a long text that asks nothing tells no more: most of the text is about something else."""
SURE: Final = 0.95
DOUBTFUL: Final = 0.8
"""Beside a memory that surely answers a prompt, less relevant ones are left out."""
DECIMALS: Final = 4


class Unrelated(NamedTuple):
    """The mean cosine of unrelated pairs of memories and its standard deviation (``spread``)."""

    mean: float
    spread: float


EMBEDDED_PRIOR: Final = Unrelated(0.055, 0.08)
EMBEDDED_MOST: Final = 0.3
"""The embedded model gives unrelated texts no higher mean. Where more is measured, the memories are about one thing."""
OTHER_PRIOR: Final = Unrelated(0.1, 0.09)
"""What is expected where there are too few memories to measure: for the embedded model, and for transformers."""
ALIKE: Final = 0.8
"""The least cosine of two texts that say the same of another number, day or name."""
_FAR: Final = 0.5
"""A lower cosine between any two texts shows that the model tells texts apart."""
_EQUAL: Final = 1.0 - 1e-5
_PRIOR_PAIRS: Final = 100
"""The expectation counts as much as so many pairs, which 15 memories have."""
_LEAST_SPREAD: Final = 0.02

_WITH_VECTOR: Final = (-7.8, 11.0, 1.2)
_WITH_TOKENS: Final = (-7.8, 5.3, 0.96, 6.7)
_BY_WORDS: Final = (-11.8, 18.0, 1.7)
"""Constants of the logistic function: base, coverage, standing or extent, and likeness of tokens. Fitted on the
calibration half of the set."""
_MOST_EXTENT: Final = 3.0
"""A long prompt shares some words with many a memory, so that further words must not lower the share."""


def word_weight(rows: int, holding: int) -> float:
    """Return the weight of a word that ``holding`` of ``rows`` memories have; > 0, greatest if none has it."""
    return math.log((rows + _PRIOR_ROWS) / (holding + 1))


def unrelated_cosines(vectors: npt.NDArray[np.float32], prior: Unrelated) -> Unrelated:
    """Return the mean and spread of the cosines of all pairs of a sample. Shape (n, dimensions), of unit length.

    Some pairs are related: so the mean is estimated by the median, and the spread by the lower half. Equal vectors
    count once; where most texts are ``ALIKE``, such as a series of measurements, alike ones do, too. Not if all are
    nearly so: then the model gives unrelated texts such cosines, or the memories are about one thing. In a small
    sample ``prior`` counts as well.
    """
    every = vectors @ vectors.T
    kept, unlike = _distinct(every, _EQUAL), _distinct(every, ALIKE)
    if 2 * len(unlike) < len(kept) and every.min() < _FAR:
        kept = unlike
    n = len(kept)
    if n < 3:
        return prior
    cosines = every[np.ix_(kept, kept)][np.triu_indices(n, 1)]
    low, median = np.percentile(cosines, (15.87, 50.0))
    share = len(cosines) / (len(cosines) + _PRIOR_PAIRS)
    return Unrelated(
        share * float(median) + (1 - share) * prior.mean,
        max(_LEAST_SPREAD, share * float(median - low) + (1 - share) * prior.spread),
    )


def _distinct(every: npt.NDArray[np.float32], least: float) -> list[int]:
    """Return the vectors, by their cosines, without those that have ``least`` with an earlier one."""
    kept: list[int] = []
    for at in range(len(every)):
        if not (every[at, kept] >= least).any():
            kept.append(at)
    return kept


def extent(weights: Iterable[float], rows: int) -> float:
    """Return how much a query says: the ``weights`` of its words, in words that none of ``rows`` memories has; <= 3."""
    return min(_MOST_EXTENT, sum(weights) / word_weight(rows, 0))


def relevance(coverage: Floats, standing: Floats, extent: float, likeness: Floats | None = None) -> Floats:
    """Return the relevance of each candidate. ``standing`` is NaN for a row without a vector. Shape (n,).

    ``likeness``: how near the tokens of the query are to those of the row, as states in their context; NaN where that
    is not known.
    """
    base, by_coverage, by_standing = _WITH_VECTOR
    logit = base + by_coverage * coverage + by_standing * standing
    if likeness is not None:
        base, by_coverage, by_standing, by_likeness = _WITH_TOKENS
        by_tokens = base + by_coverage * coverage + by_standing * standing + by_likeness * likeness
        logit = np.where(np.isnan(by_tokens), logit, by_tokens)
    base, by_coverage, by_extent = _BY_WORDS
    logit = np.where(np.isnan(standing), base + by_coverage * coverage + by_extent * extent, logit)
    return np.round(1.0 / (1.0 + np.exp(-np.clip(logit, -30.0, 30.0))), DECIMALS)


def without_doubtful(found: Sequence[tuple[str, float, str | None]]) -> list[int]:
    """Return the places of the memories that are given: without doubtful ones if another one surely answers.

    ``found``: the id and the relevance of each, and the id of the one that corrects it, which stays beside it.
    """
    if max((relevance for _, relevance, _ in found), default=0.0) < SURE:
        return list(range(len(found)))
    newer = {newer_id for _, relevance, newer_id in found if relevance >= DOUBTFUL}
    return [at for at, (id_, relevance, _) in enumerate(found) if relevance >= DOUBTFUL or id_ in newer]
