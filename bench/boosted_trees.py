"""Gradient-boosted trees of equal depth that learn to rank, with numpy alone: small enough to read, minutes to train.

Source: Burges, "From RankNet to LambdaRank to LambdaMART" (2010); Chen and Guestrin, "XGBoost" (2016), section 2.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DEPTH: Final = 3
TREES: Final = 30
RATE: Final = 0.15
PENALTY: Final = 5.0
_LEAST_WEIGHT: Final = 0.5
_BINS: Final = 32
_RANKS: Final = 10


class Ranked(NamedTuple):
    """The rows of one question: figures of shape (n, columns), their score before, and whether each answers it."""

    figures: Floats
    scores: Floats
    answers: npt.NDArray[np.bool_]


class Trees(NamedTuple):
    """Shapes (trees, nodes), (trees, nodes) and (trees, leaves); nodes from the root, level by level."""

    compared: Ints
    thresholds: Floats
    leaves: Floats


def trained(questions: Sequence[Ranked], scale: float) -> Trees:
    """Return trees that, added to ``scale`` times the score, put answers first."""
    useful = [one for one in questions if 0 < one.answers.sum() < len(one.answers)]
    figures = np.concatenate([one.figures for one in useful])
    worth = scale * np.concatenate([one.scores for one in useful])
    bounds = [
        np.unique(np.quantile(column, np.linspace(0, 1, _BINS + 1)[1:-1])) for column in figures.astype(np.float32).T
    ]
    binned = np.stack([np.searchsorted(bound, column) for bound, column in zip(bounds, figures.T, strict=True)], axis=1)
    ends = np.cumsum([len(one.answers) for one in useful])
    compared, thresholds, leaves = [], [], []
    for _ in range(TREES):
        gradient, weight = np.zeros(len(worth)), np.zeros(len(worth))
        for one, end in zip(useful, ends, strict=True):
            part = slice(end - len(one.answers), end)
            gradient[part], weight[part] = _pushes(worth[part], one.answers)
        columns, limits, leaf_of_row = _splits(binned, gradient, weight)
        sums, weights = (np.bincount(leaf_of_row, of, 2**DEPTH) for of in (gradient, weight))
        leaves.append(RATE * sums / (weights + PENALTY))
        worth += leaves[-1][leaf_of_row]
        compared.append(columns)
        thresholds.append([_threshold(bounds[column], limit) for column, limit in zip(columns, limits, strict=True)])
    return Trees(np.array(compared), np.array(thresholds), np.array(leaves))


def _pushes(worth: Floats, answers: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Return gradient and curvature of each row: every pair weighs what exchanging it would change nDCG@10."""
    ranks = np.empty(len(worth))
    ranks[np.argsort(-worth, kind="stable")] = np.arange(len(worth))
    discounts = 1 / np.log2(ranks + 2)
    right, wrong = np.flatnonzero(answers), np.flatnonzero(~answers)
    ideal = (1 / np.log2(np.arange(min(_RANKS, len(right))) + 2)).sum()
    change = np.abs(discounts[right][:, None] - discounts[wrong]) / ideal
    doubt = 1 / (1 + np.exp(np.clip(worth[right][:, None] - worth[wrong], -30, 30)))
    gradient, weight = np.zeros(len(worth)), np.zeros(len(worth))
    gradient[right], gradient[wrong] = (change * doubt).sum(axis=1), -(change * doubt).sum(axis=0)
    curvature = change * doubt * (1 - doubt)
    weight[right], weight[wrong] = curvature.sum(axis=1), curvature.sum(axis=0)
    return gradient, weight


def _splits(binned: Ints, gradient: Floats, weight: Floats) -> tuple[list[int], list[int], Ints]:
    """Return the column and last lower bin of each node, and the leaf of each row. A node may send all rows left."""
    node = np.zeros(len(binned), np.int64)
    columns: list[int] = []
    limits: list[int] = []
    width = _BINS + 1
    for level in range(DEPTH):
        count = 2**level
        best, column, limit = np.zeros(count), np.zeros(count, np.int64), np.full(count, width)
        whole, heavy = np.bincount(node, gradient, count), np.bincount(node, weight, count)
        for number in range(binned.shape[1]):
            cell = node * width + binned[:, number]
            left, light = (
                np.bincount(cell, of, count * width).reshape(count, width).cumsum(axis=1) for of in (gradient, weight)
            )
            right, rest = whole[:, None] - left, heavy[:, None] - light
            gain = left**2 / (light + PENALTY) + right**2 / (rest + PENALTY) - (whole**2 / (heavy + PENALTY))[:, None]
            gain[(light < _LEAST_WEIGHT) | (rest < _LEAST_WEIGHT)] = -1.0
            place = gain.argmax(axis=1)
            found = gain[np.arange(count), place]
            better = found > best
            best[better], column[better], limit[better] = found[better], number, place[better]
        columns += column.tolist()
        limits += limit.tolist()
        node = 2 * node + (binned[np.arange(len(binned)), column[node]] > limit[node])
    return columns, limits, node


def _threshold(bounds: Floats, limit: int) -> float:
    return float(bounds[limit]) if limit < len(bounds) else float("inf")
