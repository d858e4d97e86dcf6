from __future__ import annotations

import numpy as np
import pytest

from signet_actors.domain.ranking.bm25 import inverse_document_frequency, weights


def test_a_rare_word_has_a_higher_weight_than_a_frequent_one() -> None:
    found = [inverse_document_frequency(1000, holding) for holding in (1, 10, 400, 900, 1000)]
    assert found == sorted(found, reverse=True)
    assert found[0] > found[1] > found[2] > 0
    assert found[-1] > 0


@pytest.mark.parametrize(("rows", "holding"), [(0, 0), (1, 1), (5, 9)])
def test_inconsistent_counts_raise_no_error(rows: int, holding: int) -> None:
    assert inverse_document_frequency(rows, holding) > 0


def test_a_row_of_mean_length_has_weight_one_and_a_longer_one_less() -> None:
    short, mean, long = weights(np.array([5, 20, 80], np.int32), 20.0)
    assert mean == pytest.approx(1.0)
    assert short > mean > long > 0.0
