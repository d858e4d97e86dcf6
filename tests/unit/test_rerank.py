from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.ranking.fusion import merge_by_max
from signet_actors.domain.ranking.rerank import rerank_by_cosine

NAN = float("nan")
SCORE = st.floats(0, 1)
COSINE = st.one_of(st.just(NAN), st.floats(-1, 1))
STRENGTH = st.floats(0.001, 50)


def array(*values: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return np.array(values, dtype=np.float64)


def test_the_reranked_score_is_seven_tenths_score_and_three_tenths_cosine() -> None:
    assert rerank_by_cosine(array(1.0, 0.5), array(0.0, 1.0), top=20) == pytest.approx([0.7, 0.65])


def test_a_candidate_without_a_vector_keeps_its_score() -> None:
    assert rerank_by_cosine(array(0.8, 0.5), array(NAN, 0.1), top=20) == pytest.approx([0.8, 0.38])


def test_only_the_best_are_reranked_and_stay_before_the_rest() -> None:
    reranked = rerank_by_cosine(array(0.9, 0.8, 0.7, 0.6), array(0.0, 1.0, 1.0, 1.0), top=2)
    assert reranked[2:].tolist() == [0.7, 0.6]
    assert reranked[1] == pytest.approx(0.86)
    assert 0.7 < reranked[0] < 0.7000001, "0.63 would put it behind a candidate that was not looked at"


def test_an_empty_list_stays_empty() -> None:
    scores = array(0.9, 0.1)
    assert rerank_by_cosine(scores, array(0.0, 1.0), top=0) is scores
    assert rerank_by_cosine(array(), array(), top=5).tolist() == []


@given(st.lists(st.tuples(SCORE, COSINE), min_size=1, max_size=40), st.integers(0, 50))
def test_the_tail_is_unchanged_and_never_ranks_before_the_head(pairs: list[tuple[float, float]], top: int) -> None:
    scores, cosine = array(*(pair[0] for pair in pairs)), array(*(pair[1] for pair in pairs))
    given_scores = scores.copy()
    reranked = rerank_by_cosine(scores, cosine, top=top)
    assert (scores == given_scores).all(), "the caller's own array is its own"
    order = np.argsort(-scores, kind="stable")
    head, tail = order[:top], order[top:]
    assert (reranked[tail] == scores[tail]).all()
    if len(head) and len(tail):
        assert reranked[head].min() >= scores[tail].max()
    blind = head[np.isnan(cosine[head])]
    assert (reranked[blind] == scores[blind]).all()


@given(
    st.dictionaries(st.integers(1, 30), STRENGTH, max_size=20),
    st.dictionaries(st.integers(1, 30), STRENGTH, max_size=20),
)
def test_a_row_of_both_legs_has_the_greater_strength_and_not_the_sum(
    content: dict[int, float], hints: dict[int, float]
) -> None:
    seqs, strengths, only_second = merge_by_max(
        np.array(list(content), np.int64),
        array(*content.values()),
        np.array(list(hints), np.int64),
        array(*hints.values()),
    )
    expected = {seq: max(content.get(seq, 0.0), hints.get(seq, 0.0)) for seq in content | hints}
    assert dict(zip(seqs.tolist(), strengths.tolist(), strict=True)) == expected
    assert len(seqs) == len(expected)
    assert strengths.tolist() == sorted(strengths.tolist(), reverse=True)
    assert set(seqs[only_second].tolist()) == set(hints) - set(content)
