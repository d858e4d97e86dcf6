from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.ranking.fusion import convex, keyword_score, rrf, scaled

NAN = float("nan")
strengths = st.lists(st.floats(0, 50, allow_subnormal=False), min_size=1, max_size=30)


def array(*values: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array(values, dtype=np.float64)


def test_both_legs_are_scaled_by_their_maximum_and_blended() -> None:
    assert convex(array(4, 2, 0), array(0.3, 0.6, 0.6), alpha=0.5) == pytest.approx([0.75, 0.75, 0.5])


def test_a_candidate_without_a_word_match_gets_zero_for_that_leg() -> None:
    assert convex(array(4, 0), array(0.3, 0.6), alpha=0.25) == pytest.approx([0.875, 0.25])


def test_a_candidate_whose_vector_is_still_to_come_is_rated_by_its_words_alone() -> None:
    assert convex(array(4, 2, 0, 0), array(NAN, NAN, NAN, 0.6), alpha=0.25) == pytest.approx([1, 0.5, 0, 0.25])


def test_without_any_matching_word_the_score_is_the_cosine_itself() -> None:
    assert convex(array(0, 0), array(0.2, -0.5), alpha=0.5) == pytest.approx([0.2, 0.0])


def test_without_a_positive_cosine_the_keywords_decide() -> None:
    assert convex(array(4, 1), array(NAN, -0.1), alpha=0.9) == pytest.approx([1.0, 0.25])


def test_the_best_keyword_match_scores_one() -> None:
    assert scaled(array(1e-6, 5e-7)) == pytest.approx([1.0, 0.5])


@given(strengths, st.floats(0, 1), st.randoms(use_true_random=False))
def test_a_score_is_between_zero_and_one_and_monotonic_in_each_leg(values, alpha, rng) -> None:  # type: ignore[no-untyped-def]
    bm25 = array(*values)
    cosine = array(*(rng.uniform(-1, 1) for _ in values))
    for scores in (convex(bm25, cosine, alpha=alpha), rrf(bm25, cosine), keyword_score(bm25), scaled(bm25)):
        assert ((scores >= 0) & (scores <= 1 + 1e-9)).all()
    best = int(np.argmax(bm25))
    if bm25[best] > 0:
        stretched = cosine.copy()
        stretched[best] = 1.0
        scores = convex(bm25, stretched, alpha=alpha)
        assert scores[best] == scores.max()


@given(strengths)
def test_the_keyword_score_keeps_the_order_of_strength(values: list[float]) -> None:
    scores = keyword_score(array(*values))
    order = np.argsort(array(*values), kind="stable")
    assert (np.diff(scores[order]) >= 0).all()


def test_ranks_alone_decide_reciprocal_rank_fusion() -> None:
    assert rrf(array(9, 1), array(0.9, 0.1)) == pytest.approx(rrf(array(90, 10), array(0.5, 0.4)))
    assert rrf(array(1.0), array(1.0)) == pytest.approx([1.0])


def test_the_smallest_positive_cosine_does_not_raise_a_score_above_one() -> None:
    assert convex(array(0, 1), array(NAN, 5e-324), alpha=0.75).max() <= 1.0
