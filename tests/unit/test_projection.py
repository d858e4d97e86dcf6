from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from signet_actors.searcher.legs.projection import Projection
from tests.unit.test_binary_quantization import clustered, every, normalised

__all__ = ("clustered",)

Floats = npt.NDArray[np.float32]
POOL, LIKELY = 200, 1000


def projected(vectors: Floats) -> Projection:
    projection = Projection(vectors[:2048])
    projection.put(np.arange(len(vectors)), vectors)
    return projection


@pytest.mark.parametrize("admitted", [1.0, 0.45, 0.12])
def test_the_candidates_contain_almost_all_nearest_vectors(clustered: Floats, admitted: float) -> None:
    rng = np.random.default_rng(13)
    vectors = clustered[rng.permutation(len(clustered))[:10_000]]
    valid = rng.random(len(vectors)) < admitted
    projection = projected(vectors)
    of_pool, of_first = [], []
    for query in normalised(vectors[:40] + 0.02 * rng.normal(size=(40, vectors.shape[1]))):
        order = np.argsort(-np.where(valid, vectors @ query, -2.0))
        found = projection.candidates(query, valid, LIKELY)
        assert valid[found].all()
        assert len(found) == min(LIKELY, int(valid.sum()))
        of_pool.append(np.isin(order[:POOL], found).mean())
        of_first.append(np.isin(order[:10], found).mean())
    assert np.mean(of_pool) > 0.95
    assert np.mean(of_first) > 0.99


def test_all_valid_rows_are_candidates_if_they_are_few(clustered: Floats) -> None:
    valid = np.zeros(500, np.bool_)
    valid[[3, 77, 410]] = True
    assert projected(clustered[:500]).candidates(clustered[3], valid, 3).tolist() == [3, 77, 410]


def test_the_last_vector_of_a_row_counts(clustered: Floats) -> None:
    projection = projected(clustered[:3000])
    projection.put(np.array([5000, 7, 5000]), clustered[[10, 11, 12]])
    valid = every(5001)
    assert 5000 in projection.candidates(clustered[12], valid, 5)
    assert 7 in projection.candidates(clustered[11], valid, 5)


def test_vectors_that_are_all_alike_have_candidates() -> None:
    vectors = np.full((3000, 384), 384**-0.5, np.float32)
    assert len(projected(vectors).candidates(vectors[0], every(3000), 40)) == 40


def test_vectors_of_few_dimensions_keep_them_all() -> None:
    vectors = normalised(np.random.default_rng(5).normal(size=(3000, 8)))
    found = projected(vectors).candidates(vectors[9], every(3000), 50)
    assert set(np.argsort(-(vectors @ vectors[9]))[:50].tolist()) == set(found.tolist())
