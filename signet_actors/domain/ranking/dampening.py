"""Dampening: corrections of fused scores before the final sort.

Source: memory-pipeline.txt "Post-Fusion Dampening"; docs/decisions.md 9.
Departs: gravity lowers no score below the bound from which it counts, as the newer reference: otherwise a result just
above the bound would fall behind one just below it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

GRAVITY_FLOOR: Final = 0.3
HUB_SHARE: Final = 0.25
"""An entity of less than this share of the memories is no hub."""
RESOLVED_TYPES: Final = ("constraint", "decision")
LEAST_CHARS: Final = 50
_OF_DATE: Final = 0.5
_DATED: Final = re.compile(
    r"\b(?:\d{4}-\d{2}-\d{2}|january|february|march|april|may|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)


def with_gravity(scores: Floats, is_semantic: Mask, shares: Mask, penalty: float) -> Floats:
    """Return the scores, lower for rows that were found by meaning alone and share no word with the query."""
    lowered = np.maximum(GRAVITY_FLOOR, scores * penalty)
    found: Floats = np.where(is_semantic & ~shares & (scores > GRAVITY_FLOOR), lowered, scores)
    return found


def hub_degree(degrees: Sequence[int] | npt.NDArray[np.int64], memories: int, percentile: float) -> float:
    """Return the number of mentions from which on an entity is a hub; infinite without entities."""
    ordered = np.sort(degrees)
    if not len(ordered):
        return math.inf
    at = min(len(ordered) - 1, math.floor(len(ordered) * percentile))
    return max(float(ordered[at]), math.ceil(memories * HUB_SHARE))


def with_hubs(scores: Floats, has_only_hubs: Mask, penalty: float) -> Floats:
    """Return the scores, lower for rows whose entities are all hubs; a row without entities has none."""
    found: Floats = np.where(has_only_hubs, scores * penalty, scores)
    return found


def resolution(memory_type: str, content: str, boost: float) -> float:
    """Return the factor for a memory that decides something, or names a date."""
    if memory_type in RESOLVED_TYPES:
        return boost
    if len(content) >= LEAST_CHARS and _DATED.search(content):
        return 1 + (boost - 1) * _OF_DATE
    return 1.0
