"""Rules of what a walk over the knowledge graph finds: limits, which entities a query is about, and scores.

Source: knowledge-graph.txt "Graph Traversal"; architecture.txt "Traversal-primary search"; docs/decisions.md 63.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from signet_actors.domain.graph.names import name_tokens
from signet_actors.domain.stop_words import STOP_WORDS

Mask = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

MAX_OF_QUERY: Final = 20
"""Entities that a query names."""
MAX_OF_PROJECT: Final = 5
MAX_NEIGHBOURS: Final = 50
"""Of the entities of a graph boost."""
MAX_BOOSTED: Final = 200
FLAT_SHARE: Final = 0.4
"""At least this share of the results is left to rows that a search without the graph finds."""
OF_COSINE: Final = 0.7
OF_STRUCTURE: Final = 0.3
UNNAMED: Final = 0.5
"""How much an entity counts that the query does not name: a pinned one, or that of the project or the last session."""
WEAK: Final = 0.1
"""How much an entity counts whose name tells nothing: stop words alone, or a word of most memories."""
_RARE: Final = 20
"""An entity that one of so many memories mentions, or fewer, counts in full."""
_FEW: Final = 100
_HALF: Final = 0.5
_NO_SPACES: Final = "\u3040"


@lru_cache(4096)
def telling_tokens(name: str) -> tuple[str, ...]:
    """Return the words of a name without stop words; all of them if it has no others."""
    tokens = name_tokens(name)
    return tuple(token for token in tokens if token not in STOP_WORDS) or tokens


def coverage(name: str, query: Collection[str]) -> float:
    """Return which share of the telling tokens of a name the query has, in [0, 1]; 0 for less than half of them.

    A name of stop words alone counts little. Such a name, and one in a script without spaces, whose tokens are single
    characters, counts only if the query has all of it.
    """
    tokens = telling_tokens(name)
    share = sum(token in query for token in tokens) / max(1, len(tokens))
    if tokens and STOP_WORDS.issuperset(tokens):
        return WEAK * (share == 1.0)
    return share if share == 1.0 or (share >= _HALF and not any(token > _NO_SPACES for token in tokens)) else 0.0


def rarity(mentions: int, memories: int) -> float:
    """Return how much an entity tells that so many of the memories mention, in [``WEAK``, 1]."""
    share = max(mentions, 1) / max(memories, _FEW)
    return min(1.0, max(WEAK, -math.log(share) / math.log(_RARE)))


def pool_scores(cosine: Floats, structure: Floats) -> Floats:
    """Return the scores of rows that only the walk has found; ``cosine`` (relative) and ``structure`` in [0, 1]."""
    return OF_COSINE * cosine + OF_STRUCTURE * structure


def best_of_pool(flat: Floats, limit: int) -> float:
    """Return the highest score of a row that only the walk has found: ``FLAT_SHARE`` of the results come before it."""
    reserved = min(len(flat), max(1, math.ceil(FLAT_SHARE * limit)))
    return float(np.sort(flat)[-reserved]) if reserved else 1.0
