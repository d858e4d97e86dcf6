from __future__ import annotations

import numpy as np
import pytest

from signet_actors.searcher.legs.sign_codes import sign_codes, sign_distances

COUNT, DIMENSIONS, POOL, LIKELY = 20_000, 256, 200, 3_200


def normalised(vectors: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def clustered() -> np.ndarray:  # type: ignore[type-arg]
    """Half of it scattered, half in heaps; like embeddings of texts with a common direction, and half of the variance
    in an eighth of the directions.
    """
    rng = np.random.default_rng(11)
    spread = 1.0 / np.sqrt(1.0 + np.arange(DIMENSIONS) / 6.0)
    turned = np.linalg.qr(rng.normal(size=(DIMENSIONS, DIMENSIONS)))[0]
    scattered = rng.normal(size=(COUNT // 2, DIMENSIONS))
    centres = rng.normal(size=(100, DIMENSIONS))
    heaps = centres[rng.integers(100, size=COUNT // 2)] + 0.7 * rng.normal(size=(COUNT // 2, DIMENSIONS))
    return normalised((np.concatenate((scattered, heaps)) + 0.5 * rng.normal(size=DIMENSIONS)) * spread @ turned)


def test_the_likely_hold_nearly_all_of_the_nearest(clustered: np.ndarray) -> None:  # type: ignore[type-arg]
    rng = np.random.default_rng(12)
    codes = np.ascontiguousarray(sign_codes(clustered))
    asked = clustered[rng.integers(COUNT, size=40)] + 0.02 * rng.normal(size=(40, DIMENSIONS))
    shares, first = [], []
    for query in normalised(asked):
        order = np.argsort(-(clustered @ query))
        likely = np.argsort(sign_distances(codes, query), kind="stable")[:LIKELY]
        shares.append(np.isin(order[:POOL], likely).mean())
        first.append(np.isin(order[:10], likely).mean())
    assert np.mean(shares) >= 0.99
    assert np.mean(first) >= 0.999


@pytest.mark.parametrize("dimensions", [1, 8, 63, 64, 65, 256, 384, 1024, 3072])
def test_every_width_is_compared_whole(dimensions: int) -> None:
    rng = np.random.default_rng(dimensions)
    query = rng.choice([-1.0, 1.0], size=dimensions).astype(np.float32)
    one_off = query.copy()
    one_off[-1] *= -1
    same, near, opposite = sign_distances(np.ascontiguousarray(sign_codes(np.stack((query, one_off, -query)))), query)
    assert same == 0
    assert 0 < near <= opposite
    assert opposite == near * dimensions


def test_a_large_component_counts_more_than_a_small_one() -> None:
    query = np.array([0.9, 0.3, 0.3, 0.05], np.float32)
    codes = np.ascontiguousarray(
        sign_codes(query * np.array([[-1, 1, 1, 1], [1, -1, 1, 1], [1, 1, 1, -1]], np.float32))
    )
    large, middle, small = sign_distances(codes, query).tolist()
    assert large > middle > small == 0


def test_a_query_of_zeros_is_no_nearer_to_anything() -> None:
    codes = np.ascontiguousarray(sign_codes(np.array([[1.0, -1.0], [-1.0, 1.0]], np.float32)))
    assert sign_distances(codes, np.zeros(2, np.float32)).tolist() == [0, 0]


def test_codes_span_blocks_evenly() -> None:
    rng = np.random.default_rng(3)
    vectors, query = rng.normal(size=(20_001, 16)).astype(np.float32), rng.normal(size=16).astype(np.float32)
    codes = np.ascontiguousarray(sign_codes(vectors))
    together = sign_distances(codes, query)
    picked = rng.permutation(20_001)[:500]
    assert (together[picked] == sign_distances(codes[:, picked], query)).all()
