"""The formula of relevance. Source: docs/quality.md "Relevance"."""

from __future__ import annotations

import numpy as np
import pytest

from signet_actors.domain.ranking.relevance import Unrelated, extent, relevance, unrelated_cosines, word_weight

PRIOR = Unrelated(0.1, 0.1)


def sample(rows: int, seed: int = 1) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    vectors = np.random.default_rng(seed).normal(size=(rows, 64)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_relevance_rises_with_coverage_and_with_standing_and_stays_in_its_range() -> None:
    steps = np.linspace(0, 1, 11)
    for values in (
        relevance(steps, np.full(11, 1.0), 2.0),
        relevance(np.full(11, 0.5), 20 * steps - 5, 2.0),
        relevance(steps, np.full(11, np.nan), 2.0),
    ):
        assert (np.diff(values) >= 0).all()
        assert values[-1] > values[0]
        assert values.min() >= 0
        assert values.max() <= 1


def test_relevance_rises_with_the_likeness_of_tokens_where_it_is_known() -> None:
    steps = np.linspace(0, 1, 21)
    rated = relevance(np.full(21, 0.3), np.full(21, 3.0), 2.0, steps)
    assert (np.diff(rated) >= 0).all()
    assert rated[0] < 0.5 < rated[-1]
    unknown = relevance(steps, np.full(21, 3.0), 2.0, np.full(21, np.nan))
    assert (unknown == relevance(steps, np.full(21, 3.0), 2.0)).all()
    assert not np.isnan(relevance(steps, np.full(21, np.nan), 2.0, steps)).any(), "codes without a vector"


@pytest.mark.parametrize("standing", [-1e6, 1e6])
def test_an_extreme_standing_does_not_overflow(standing: float) -> None:
    with np.errstate(all="raise"):
        assert relevance(np.zeros(1), np.array([standing]), 1.0)[0] in {0.0, 1.0}


def test_without_a_vector_a_query_that_says_more_needs_a_smaller_share_of_its_words_but_never_a_third() -> None:
    without_vector = np.full(101, np.nan)
    rare = word_weight(500, 0)

    def least_share(words: int) -> float:
        says = extent([rare] * words, 500)
        shares = np.linspace(0, 1, 101)
        return float(shares[relevance(shares, without_vector, says) >= 0.5].min())

    shares = [least_share(words) for words in (1, 2, 3, 300)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[2]
    assert shares[-1] > 1 / 3  # a long prompt shares some words with many a memory


def test_a_row_with_a_vector_is_rated_whatever_the_extent_of_the_query() -> None:
    rated = [relevance(np.array([0.4]), np.array([2.0]), says)[0] for says in (0.2, 3.0)]
    assert rated[0] == rated[1]


def test_a_word_weighs_less_the_more_memories_have_it_and_always_something() -> None:
    weights = [word_weight(500, holding) for holding in (0, 1, 10, 100, 500)]
    assert weights == sorted(weights, reverse=True)
    assert weights[-1] > 0
    assert word_weight(1, 1) > word_weight(1, 0) / 2  # a store of one memory


def test_unrelated_pairs_are_measured_although_some_pairs_are_related() -> None:
    vectors = sample(256)
    plain = unrelated_cosines(vectors, PRIOR)
    assert plain.mean == pytest.approx(0.0, abs=0.02)
    assert plain.spread == pytest.approx(0.125, abs=0.02)
    related = vectors.copy()
    related[:64] = vectors[0]  # a sixteenth of all pairs
    assert unrelated_cosines(related, PRIOR).mean == pytest.approx(plain.mean, abs=0.02)
    assert unrelated_cosines(related, PRIOR).spread == pytest.approx(plain.spread, abs=0.02)


def test_a_series_of_alike_texts_counts_once() -> None:
    vectors = sample(256)
    series = vectors[:1] + 0.4 * sample(256, seed=2)  # what two of them have is about 0.86
    series /= np.linalg.norm(series, axis=1, keepdims=True)
    many = np.concatenate((vectors[:64], series[:192]))
    assert unrelated_cosines(many, PRIOR).mean == pytest.approx(unrelated_cosines(vectors[:64], PRIOR).mean, abs=0.02)


@pytest.mark.parametrize("lean", [0.19, 0.25, 0.4])
def test_a_model_whose_unrelated_texts_are_close_is_measured_as_it_is(lean: float) -> None:
    vectors = sample(256) + lean
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (vectors @ vectors.T)[np.triu_indices(256, 1)]
    assert np.median(cosines) > 0.65
    assert unrelated_cosines(vectors, PRIOR).mean == pytest.approx(np.median(cosines), abs=0.02)


def test_few_different_vectors_count_little_beside_the_expectation() -> None:
    assert unrelated_cosines(sample(2), PRIOR) == PRIOR
    leaning = sample(256) + 1.0
    leaning /= np.linalg.norm(leaning, axis=1, keepdims=True)
    few, many = (unrelated_cosines(leaning[:rows], PRIOR).mean for rows in (4, 256))
    assert PRIOR.mean < few < 0.5 < many
    repeated = np.repeat(leaning[:4], 64, axis=0)
    assert unrelated_cosines(repeated, PRIOR).mean == pytest.approx(few)
