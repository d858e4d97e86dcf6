"""Where the points of a map lie, and which are joined."""

from __future__ import annotations

import numpy as np
import pytest

from signet_actors.features.projection.rules import (
    EDGES_PER_POINT,
    EXACT_BELOW,
    coordinates,
    edges,
    neighbour_count,
    principal_components,
)


@pytest.mark.parametrize(("points", "count"), [(1, 2), (2, 2), (3, 2), (4, 3), (16, 15), (10_000, 15)])
def test_the_number_of_neighbours_follows_the_number_of_points(points: int, count: int) -> None:
    assert neighbour_count(points) == count


def test_each_axis_reaches_from_one_end_to_the_other() -> None:
    placed = coordinates(np.array([[0.0, 5.0, 1.0], [1.0, 5.0, 3.0], [4.0, 5.0, 2.0]]))
    assert placed[:, 0].tolist() == [-210.0, -105.0, 210.0]
    assert placed[:, 1].tolist() == [0.0, 0.0, 0.0], "an axis without extent"
    assert placed[:, 2].tolist() == [-210.0, 210.0, 0.0]
    assert coordinates(np.zeros((0, 2))).shape == (0, 2)


def test_the_first_components_have_the_greatest_variance_and_are_the_same_each_time() -> None:
    rng = np.random.default_rng(1)
    vectors = (rng.normal(size=(200, 3)) * [1.0, 10.0, 3.0]).astype(np.float32)
    found = principal_components(vectors, 2)
    assert found.std(axis=0) == pytest.approx([vectors[:, 1].std(), vectors[:, 2].std()], rel=0.05)
    assert (principal_components(vectors, 2) == found).all()
    assert principal_components(vectors[:1], 3).tolist() == [[0.0, 0.0, 0.0]]
    assert principal_components(np.ones((4, 1), np.float32), 3).shape == (4, 3)


def brute_force(positions: np.ndarray) -> set[tuple[int, int]]:
    found = set()
    for one, at in enumerate(positions):
        away = ((positions - at) ** 2).sum(axis=1)
        near = [other for other in np.argsort(away, kind="stable").tolist() if other != one][:EDGES_PER_POINT]
        found |= {(min(one, other), max(one, other)) for other in near}
    return found


@pytest.mark.parametrize("count", [0, 1, 2, 5, 100])
def test_few_points_are_joined_with_their_nearest_ones(count: int) -> None:
    positions = np.random.default_rng(count).normal(size=(count, 2))
    assert set(edges(positions)) == brute_force(positions)


def test_of_many_points_most_are_joined_with_their_nearest_ones() -> None:
    rng = np.random.default_rng(2)
    centres = rng.normal(size=(30, 2)) * 50
    positions = centres[rng.integers(0, 30, 3 * EXACT_BELOW)] + rng.normal(size=(3 * EXACT_BELOW, 2))
    found, exact = set(edges(positions)), brute_force(positions)
    assert len(found & exact) > 0.6 * len(exact)
    assert all(one < other for one, other in found)
    lengths = [float(np.linalg.norm(positions[one] - positions[other])) for one, other in found]
    assert np.median(lengths) < 0.5, "a window beyond the cluster joins nothing far away"
