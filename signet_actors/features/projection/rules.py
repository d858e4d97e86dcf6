"""Coordinates and edges of a map, from positions. Numbers only.

Source: architecture.txt "UMAP Projection".
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.float64]

EXTENT: Final = 210.0
EXACT_BELOW: Final = 450
"""Up to so many points are compared with all others."""
WINDOW: Final = 12
"""Of more points, each is compared with so many before and after it on each axis."""
EDGES_PER_POINT: Final = 3


def neighbour_count(points: int) -> int:
    """Return how many neighbours UMAP looks at."""
    return min(15, max(2, points - 1))


def principal_components(vectors: npt.NDArray[np.float32], dimensions: int) -> Positions:
    """Return the vectors, shape (n, d), in the directions of their greatest variance. Shape (n, dimensions)."""
    centred = vectors.astype(np.float64) - vectors.mean(axis=0, dtype=np.float64)
    _, directions = np.linalg.eigh(centred.T @ centred)
    axes = directions[:, ::-1][:, :dimensions]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])] < 0, -1.0, 1.0)
    positions = np.zeros((len(vectors), dimensions))
    positions[:, : axes.shape[1]] = centred @ axes
    return positions


def coordinates(positions: Positions) -> Positions:
    """Return the positions stretched to the range from -210 to 210 on each axis; an axis without extent is 0."""
    if not len(positions):
        return positions
    low, high = positions.min(axis=0), positions.max(axis=0)
    extent = np.where(high > low, high - low, 1.0)
    stretched = (positions - low) / extent * (2 * EXTENT) - EXTENT
    placed: Positions = np.where(high > low, stretched, 0.0)
    return placed


def edges(positions: Positions) -> list[tuple[int, int]]:
    """Return the pairs of each point and its nearest ones, each pair once, in order."""
    left, right = _all_pairs(len(positions)) if len(positions) <= EXACT_BELOW else _pairs_in_windows(positions)
    distances = ((positions[left] - positions[right]) ** 2).sum(axis=1)
    ends = np.concatenate((left, right)), np.concatenate((right, left))
    order = np.lexsort((ends[1], np.concatenate((distances, distances)), ends[0]))
    point, other = ends[0][order], ends[1][order]
    first = np.searchsorted(point, point, side="left")
    near = np.arange(len(point)) - first < EDGES_PER_POINT
    pairs = {(min(a, b), max(a, b)) for a, b in zip(point[near].tolist(), other[near].tolist(), strict=True)}
    return sorted(pairs)


def _all_pairs(count: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    left, right = np.triu_indices(count, 1)
    return left, right


def _pairs_in_windows(positions: Positions) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    orders = [np.argsort(positions[:, axis], kind="stable") for axis in range(positions.shape[1])]
    pairs = [
        np.sort(np.stack((order[:-step], order[step:]), axis=1), axis=1)
        for order in orders
        for step in range(1, WINDOW + 1)
    ]
    found = np.unique(np.concatenate(pairs), axis=0)
    return found[:, 0], found[:, 1]
