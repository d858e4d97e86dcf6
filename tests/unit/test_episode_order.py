"""The learned order of an episode's rows. Source: docs/quality.md "Order within an episode"."""

from __future__ import annotations

import numpy as np
import pytest

from bench.boosted_trees import Ranked, trained
from signet_actors.domain.ranking import episode_order
from signet_actors.domain.ranking.context import InContext, Neighbours
from signet_actors.domain.ranking.episode_order import FEATURES, Scored, ordered, parsed, sums

ROWS = 90


def candidates(seed: int, *, conversations: bool = True) -> tuple[Scored, Neighbours]:
    """Random candidates: episodes of six rows, every third one outside conversations."""
    rng = np.random.default_rng(seed)

    def numbers() -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
        return rng.random(ROWS)

    episode = np.arange(ROWS) // 6
    scored = Scored(
        keyword=numbers(),
        coverage=numbers(),
        cosine=numbers(),
        tokens=numbers(),
        flags=rng.integers(0, 8, ROWS).astype(np.uint8),
        wanted=2,
        is_subject=rng.random(ROWS) < 0.5,
        date=np.zeros(ROWS),
        fused=numbers(),
        base=numbers(),
        context=InContext(numbers(), numbers(), numbers(), numbers()),
        scores=0.6 + 0.1 * numbers(),
    )
    left, right = np.arange(ROWS) - 1, np.arange(ROWS) + 1
    left[0] = ROWS
    return scored, Neighbours(left, right, episode, (episode % 3 != 0) & conversations)


@pytest.mark.parametrize("seed", range(20))
def test_only_rows_of_one_episode_of_a_conversation_exchange_their_scores(seed: int) -> None:
    scored, near = candidates(seed)
    found = ordered(scored, near)
    for episode in np.unique(near.episode):
        rows = near.episode == episode
        assert sorted(found[rows]) == sorted(scored.scores[rows])
        if not near.in_conversation[rows].any():
            assert (found[rows] == scored.scores[rows]).all()
    assert (found != scored.scores).any()


def test_rows_beyond_the_best_keep_their_scores() -> None:
    scored, near = candidates(1)
    beyond = np.argsort(-scored.scores)[episode_order.ROWS :]
    assert (ordered(scored, near)[beyond] == scored.scores[beyond]).all()


def test_without_conversations_nothing_changes() -> None:
    scored, near = candidates(2, conversations=False)
    assert (ordered(scored, near) == scored.scores).all()


def test_a_tree_sends_a_row_right_if_its_figure_exceeds_the_threshold() -> None:
    trees = parsed("\n0 1 1 2 2 2 2  0.5 0.5 0.5 0.5 0.5 0.5 inf\n1 2 3 4 5 6 7 8\n")
    rows = np.zeros((4, len(FEATURES)))
    rows[1, 2], rows[2, 0], rows[3, :3] = 1.0, 1.0, 1.0
    assert sums(rows, trees).tolist() == [1, 2, 5, 7]


def test_the_learned_trees_compare_figures_that_exist() -> None:
    compared, thresholds, leaves = parsed(episode_order.TREES)
    assert compared.shape == thresholds.shape == (len(leaves), 7)
    assert leaves.shape[1] == 8
    assert compared.min() >= 0
    assert compared.max() < len(FEATURES)


def test_training_finds_the_figure_that_tells_answers() -> None:
    rng = np.random.default_rng(3)
    questions = []
    for _ in range(60):
        figures = rng.random((30, 4))
        questions.append(Ranked(figures, rng.random(30), figures[:, 2] > 0.9))
    trees = trained(questions, 1.0)
    figures = rng.random((200, 4))
    found = sums(figures, tuple(trees))
    right = figures[:, 2] > 0.9
    assert found[right].min() > found[~right & (figures[:, 2] < 0.8)].max()
