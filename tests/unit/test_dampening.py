"""Dampening: the worked examples of the specification and of the reference.

Source: memory-pipeline.txt "Post-Fusion Dampening".
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.ranking.dampening import hub_degree, resolution, with_gravity, with_hubs

YES, NO = np.array([True]), np.array([False])
LONG = "The release of the payment service was moved by the team to "


def lowered(score: float, *, semantic: bool = True, shares: bool = False) -> float:
    found = with_gravity(np.array([score]), YES if semantic else NO, YES if shares else NO, 0.5)
    return float(found[0])


class TestGravity:
    @pytest.mark.parametrize(
        ("score", "expected"), [(0.9, 0.45), (0.8, 0.4), (0.5, 0.3), (0.36, 0.3), (0.3, 0.3), (0.27, 0.27)]
    )
    def test_the_score_is_halved_but_not_below_the_bound(self, score: float, expected: float) -> None:
        assert lowered(score) == pytest.approx(expected)

    def test_what_shares_a_word_or_was_found_by_words_keeps_its_score(self) -> None:
        assert (lowered(0.6, shares=True), lowered(0.6, semantic=False)) == (0.6, 0.6)

    def test_a_result_above_the_bound_stays_before_one_below_it(self) -> None:
        spotify, guppies = lowered(0.36), lowered(0.27)
        assert (spotify, guppies) == (pytest.approx(0.3), pytest.approx(0.27))

    @given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
    def test_equal_evidence_keeps_its_order(self, scores: list[float]) -> None:
        given_ = np.sort(np.array(scores))
        found = with_gravity(given_, np.ones(len(given_), np.bool_), np.zeros(len(given_), np.bool_), 0.5)
        assert (np.diff(found) >= 0).all()
        assert (found <= given_).all()


class TestHubs:
    @pytest.mark.parametrize(("memories", "expected"), [(20, 0.28), (200, 0.4)])
    def test_an_entity_of_a_quarter_of_the_memories_is_a_hub(self, memories: int, expected: float) -> None:
        degrees = {"concerts": 6, "aquarium": 2}
        bound = hub_degree(list(degrees.values()), memories, 0.9)
        only_hubs = np.array([degrees["concerts"] >= bound])
        assert with_hubs(np.array([0.4]), only_hubs, 0.7)[0] == pytest.approx(expected)

    def test_the_percentile_is_taken_of_the_sorted_degrees(self) -> None:
        assert hub_degree(list(range(1, 11)), 4, 0.9) == 10
        assert hub_degree(list(range(1, 11)), 4, 0.5) == 6
        assert hub_degree([7], 4, 1.0) == 7
        assert hub_degree([], 4, 0.9) == math.inf


class TestResolution:
    @pytest.mark.parametrize(
        ("memory_type", "content", "factor"),
        [
            ("decision", "short", 1.2),
            ("constraint", LONG, 1.2),
            ("fact", LONG + "2026-03-01", 1.1),
            ("fact", LONG + "March", 1.1),
            ("fact", "due 2026-03-01", 1.0),
            ("fact", LONG + "Monday", 1.0),
            ("fact", LONG + "12026-03-015", 1.0),
        ],
    )
    def test_decisions_and_dates_are_raised(self, memory_type: str, content: str, factor: float) -> None:
        assert resolution(memory_type, content, 1.2) == pytest.approx(factor)
