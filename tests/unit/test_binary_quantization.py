from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from signet_actors.searcher.legs.binary_quantization import BinaryCodes

COUNT, DIMENSIONS, POOL, LIKELY = 20_000, 256, 200, 3_200

Floats = npt.NDArray[np.float32]


def normalised(vectors: npt.NDArray[np.floating]) -> Floats:
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def coded(vectors: Floats, centre: Floats | None = None) -> BinaryCodes:
    codes = BinaryCodes(np.zeros(vectors.shape[1], np.float32) if centre is None else centre)
    codes.put(np.arange(len(vectors)), vectors)
    return codes


def every(count: int) -> npt.NDArray[np.bool_]:
    return np.ones(count, np.bool_)


@pytest.fixture(scope="module")
def clustered() -> Floats:
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


def shares(
    vectors: Floats, codes: BinaryCodes, valid: npt.NDArray[np.bool_], likely: int = LIKELY
) -> tuple[float, float]:
    """How much of the exact 200 and 10 nearest valid rows are among the likely ones, on average."""
    rng = np.random.default_rng(12)
    asked = vectors[rng.integers(len(vectors), size=40)] + 0.02 * rng.normal(size=(40, vectors.shape[1]))
    of_pool, of_first = [], []
    for query in normalised(asked):
        order = np.argsort(-np.where(valid, vectors @ query, -2.0))
        found = codes.candidates(query, valid, likely, coarse=4 * likely)
        assert valid[found].all()
        of_pool.append(np.isin(order[:POOL], found).mean())
        of_first.append(np.isin(order[:10], found).mean())
    return float(np.mean(of_pool)), float(np.mean(of_first))


@pytest.mark.parametrize("admitted", [1.0, 0.7, 0.45, 0.22])
def test_the_candidates_contain_almost_all_nearest_vectors(clustered: Floats, admitted: float) -> None:
    valid = np.random.default_rng(13).random(COUNT) < admitted
    of_pool, of_first = shares(clustered, coded(clustered, clustered.mean(axis=0)), valid)
    assert of_pool >= 0.99
    assert of_first >= 0.999


def test_half_as_many_candidates_contain_the_nearest_ten_and_most_others(clustered: Floats) -> None:
    of_pool, of_first = shares(clustered, coded(clustered, clustered.mean(axis=0)), every(COUNT), 1_600)
    assert of_pool >= 0.97
    assert of_first >= 0.999


def test_a_common_direction_does_not_hide_the_nearest_vectors(clustered: Floats) -> None:
    rng = np.random.default_rng(14)
    leaning = normalised(clustered + normalised(rng.normal(size=(1, DIMENSIONS))))
    with_centre, first = shares(leaning, coded(leaning, leaning.mean(axis=0)), every(COUNT), 1_600)
    without, _ = shares(leaning, coded(leaning), every(COUNT), 1_600)
    assert with_centre > without + 0.02
    assert first >= 0.98


@pytest.mark.parametrize("dimensions", [1, 8, 63, 64, 65, 256, 384, 1024, 4096])
def test_every_width_is_compared_completely(dimensions: int) -> None:
    rng = np.random.default_rng(dimensions)
    query = rng.choice([-1.0, 1.0], size=dimensions).astype(np.float32)
    one_off = query.copy()
    one_off[-1] *= -1
    codes = coded(np.stack((-query, query, one_off)))
    for coarse in (1, 2, 3):
        assert codes.candidates(query, every(3), 1, coarse=coarse).tolist() == [1]
    if dimensions > 1:
        for coarse in (2, 3):
            assert set(codes.candidates(query, every(3), 2, coarse=coarse).tolist()) == {1, 2}


def test_a_large_component_counts_more_than_a_small_one() -> None:
    query = np.array([0.9, 0.3, 0.3, 0.05], np.float32)
    codes = coded(query * np.array([[-1, 1, 1, 1], [1, -1, 1, 1], [1, 1, 1, -1]], np.float32))
    assert codes.candidates(query, every(3), 1, coarse=3).tolist() == [2]
    assert set(codes.candidates(query, every(3), 2, coarse=3).tolist()) == {1, 2}


def test_the_scale_distinguishes_vectors_with_the_same_direction() -> None:
    centre = np.full(64, 0.1, np.float32)
    toward = np.random.default_rng(5).choice([-1.0, 1.0], size=64).astype(np.float32)
    codes = coded(np.stack((centre + 0.05 * toward, centre + 0.2 * toward, centre + 0.1 * toward)), centre)
    assert codes.candidates(toward, every(3), 1, coarse=3).tolist() == [1]


def test_a_zero_query_is_equally_near_to_all_vectors() -> None:
    codes = coded(np.array([[1.0, -1.0], [-1.0, 1.0], [0.0, 0.0]], np.float32))
    assert len(codes.candidates(np.zeros(2, np.float32), every(3), 2, coarse=2)) == 2


@pytest.mark.parametrize("coarse", [40, 100, 1000])
@pytest.mark.parametrize("admitted", [0, 1, 39, 40, 41, 99, 101, 300, 699, 700])
def test_invalid_rows_are_never_candidates(admitted: int, coarse: int) -> None:
    rng = np.random.default_rng(admitted)
    query = rng.normal(size=16).astype(np.float32)
    vectors = np.tile(query, (700, 1))
    valid = np.zeros(700, np.bool_)
    valid[rng.permutation(700)[:admitted]] = True
    vectors[valid] *= -1.0  # as far as can be
    likely = coded(vectors).candidates(query, valid, 40, coarse=coarse)
    assert valid[likely].all()
    assert len(likely) == len(set(likely.tolist())) == min(admitted, 40)


def test_of_thousands_of_equally_near_rows_the_newest_are_candidates() -> None:
    query = np.array([1.0, 1.0, -1.0], np.float32)
    vectors = np.tile(query, (5000, 1))
    vectors[::2] *= -1.0
    likely = coded(vectors).candidates(query, every(5000), 20, coarse=20)
    assert sorted(likely.tolist()) == list(range(4961, 5000, 2))


def test_rows_are_found_by_their_latest_vector() -> None:
    codes = BinaryCodes(np.zeros(3, np.float32))
    near, far = np.array([1.0, 1.0, 1.0], np.float32), np.array([-1.0, -1.0, -1.0], np.float32)
    codes.put(np.array([7, 2, 7]), np.stack((near, far, far)))
    codes.put(np.array([9, 4]), np.stack((near, far)))
    codes.put(np.array([2]), near[np.newaxis])
    valid = np.zeros(5000, np.bool_)
    valid[[2, 4, 7, 9]] = True
    assert set(codes.candidates(near, valid, 2, coarse=3).tolist()) == {2, 9}


def test_codes_span_blocks_evenly() -> None:
    rng = np.random.default_rng(3)
    vectors, query = rng.normal(size=(70_001, 16)).astype(np.float32), rng.normal(size=16).astype(np.float32)
    near = np.array([0, 32_767, 32_768, 65_535, 65_536, 70_000])
    vectors[near] = 5.0 * query
    assert set(near.tolist()) <= set(coded(vectors).candidates(query, every(70_001), 50, coarse=2_000).tolist())
