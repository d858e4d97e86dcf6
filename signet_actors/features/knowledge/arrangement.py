"""Places for the entities of a map: those that depend on each other come together, all others apart.

Source: Fruchterman and Reingold 1991, "Graph Drawing by Force-directed Placement".
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

Positions = npt.NDArray[np.float64]

EXTENT: Final = 210.0
STEPS: Final = 60
NEAREST_SQUARE: Final = 0.01
"""Entities that are nearer do not push each other further."""
_GOLDEN: Final = np.pi * (3 - np.sqrt(5))


@lru_cache(maxsize=8)
def arranged(count: int, links: tuple[tuple[int, int], ...]) -> Positions:
    """Return the place of each of ``count`` entities, shape (count, 2), from -210 to 210 on each axis.

    ``links`` are pairs of their numbers. The same graph gets the same places. It takes about 0.1 s for 500 entities;
    the places of the last graphs are kept.
    """
    number = np.arange(1, count + 1)
    apart = EXTENT / np.sqrt(count + 1)
    turn = number * _GOLDEN
    places: Positions = apart * np.sqrt(number)[:, None] * np.stack((np.cos(turn), np.sin(turn)), axis=1)
    ends = np.array(links, dtype=np.intp).reshape(-1, 2)
    for step in range(STEPS):
        squares = (places**2).sum(axis=1)
        push = apart**2 / np.maximum(squares[:, None] + squares - 2 * places @ places.T, NEAREST_SQUARE)
        moves = push.sum(axis=1, keepdims=True) * places - push @ places - places / 10
        along = places[ends[:, 1]] - places[ends[:, 0]]
        pull = along * np.linalg.norm(along, axis=1, keepdims=True) / apart
        np.add.at(moves, ends[:, 0], pull)
        np.subtract.at(moves, ends[:, 1], pull)
        farthest = EXTENT / 5 * (1 - step / STEPS)
        lengths = np.maximum(np.linalg.norm(moves, axis=1, keepdims=True), 1.0)
        places = places + moves * np.minimum(1, farthest / lengths)
    return places * (EXTENT / max(1.0, float(np.abs(places).max(initial=0))))
