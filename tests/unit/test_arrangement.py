"""Where the entities of a map lie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.features.knowledge.arrangement import EXTENT, Positions, arranged


def apart(places: Positions) -> Positions:
    """Return the distance of each entity to each other one."""
    distances: Positions = np.linalg.norm(places[:, None] - places, axis=2)
    return distances


@pytest.mark.parametrize("count", [0, 1, 2, 500])
def test_each_entity_has_a_place_within_the_map(count: int) -> None:
    places = arranged(count, tuple((at, (at * 7 + 1) % count) for at in range(count)))
    assert places.shape == (count, 2)
    assert np.isfinite(places).all()
    assert (np.abs(places) <= EXTENT).all()


def test_those_that_depend_on_each_other_are_nearer_than_others() -> None:
    groups = [range(10), range(10, 20)]
    links = [(one, other) for group in groups for one in group for other in group if one < other]
    distances = apart(arranged(20, tuple(links)))
    within = distances[:10, :10].sum() / 90
    between = distances[:10, 10:].mean()
    assert between > 2 * within


def test_none_lies_on_another_one() -> None:
    distances = apart(arranged(200, tuple((0, at) for at in range(1, 200))))
    assert (distances[~np.eye(200, dtype=bool)] > 0.1).all()


@given(
    st.integers(1, 30).flatmap(
        lambda count: st.tuples(st.just(count), st.lists(st.tuples(*[st.integers(0, count - 1)] * 2), max_size=60))
    )
)
def test_any_graph_has_finite_places_and_the_same_ones_each_time(graph: tuple[int, list[tuple[int, int]]]) -> None:
    count, links = graph
    places = arranged(count, tuple(links))
    assert np.isfinite(places).all()
    assert (places == arranged(count, tuple(links))).all()
