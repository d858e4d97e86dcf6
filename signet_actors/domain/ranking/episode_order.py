"""The order of an episode's rows: boosted trees over what the stages before know of each row.

Which turns of a conversation are about the question is found by scores; which of them answers it shows in how the
scores of a row relate to those beside it. The trees were trained on conversations (``bench/episode_order.py``). They
only exchange the scores of rows of one episode, so nothing else moves, and facts keep their place beside chats.

Source: docs/quality.md "Order within an episode"; Burges, "From RankNet to LambdaRank to LambdaMART" (2010).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.domain.ranking.context import Bools, Floats, InContext, Ints, Neighbours
from signet_actors.domain.ranking.episode_trees import SCALE, TREES
from signet_actors.domain.ranking.text_flags import ASKS, HOLDS_NUMBER, TELLS_TIME

ROWS: Final = 60
"""So many of the best candidates are ordered."""
_COUNTED: Final = 64
"""Rows of an episode are counted among so many of the best candidates of the legs."""
FEATURES: Final = (
    "keyword",
    "coverage",
    "cosine",
    "tokens",
    "asks",
    "time",
    "number",
    "subject",
    "date",
    "left",
    "right",
    "answer",
    "episode",
    "conversation",
    "score",
    "behind",
    "base",
    "beside",
    "rank",
)
"""The columns that trees compare; see ``features``."""
_DEPTH: Final = 3


class Scored(NamedTuple):
    """What the stages before know of n candidates; all arrays have shape (n,), ``flags`` are those of their texts.

    ``keyword`` and ``cosine`` are relative to the best; ``coverage`` is the keyword strength relative to that of a row
    with every word of the query. ``tokens``: the token similarity that counted. ``fused`` and ``base``: the score of
    the legs, and with token similarity. ``scores``: with priors and context. ``wanted``: the flags that the query asks
    for.
    """

    keyword: Floats
    coverage: Floats
    cosine: Floats
    tokens: Floats
    flags: npt.NDArray[np.uint8]
    wanted: int
    is_subject: Bools
    date: Floats
    fused: Floats
    base: Floats
    context: InContext
    scores: Floats


def features(of: Scored, near: Neighbours, first: Ints) -> Floats:
    """Return the ``FEATURES`` of the candidates at ``first``, best first; shape (len(first), len(FEATURES))."""
    beside = np.append(of.base, 0.0)
    counted = best(of.fused, _COUNTED)
    in_episode = np.bincount(near.episode[counted], minlength=int(near.episode.max(initial=0)) + 1)
    time_weight = 2.0 if of.wanted & TELLS_TIME else 1.0
    number_weight = 2.0 if of.wanted & HOLDS_NUMBER else 1.0
    scores, flags, inside = of.scores[first], of.flags[first], near.in_conversation[first]
    columns = (
        of.keyword[first],
        of.coverage[first],
        of.cosine[first],
        of.tokens[first],
        (flags & ASKS) > 0,
        ((flags & TELLS_TIME) > 0) * time_weight,
        ((flags & HOLDS_NUMBER) > 0) * number_weight,
        of.is_subject[first],
        of.date[first],
        beside[near.left[first]],
        beside[near.right[first]],
        of.context.answer[first],
        of.context.episode[first],
        inside,
        scores,
        scores - scores.max(initial=0.0),
        of.base[first],
        in_episode[near.episode[first]] * inside,
        np.arange(len(first)),
    )
    return np.stack([np.asarray(column, np.float64) for column in columns], axis=1)


def ordered(of: Scored, near: Neighbours) -> Floats:
    """Return the scores, exchanged among the best rows of each episode of a conversation. Shape (n,)."""
    first = best(of.scores, ROWS)
    inside = np.flatnonzero(near.in_conversation[first])
    numbers = near.episode[first][inside]
    if len(np.unique(numbers)) == len(numbers):
        return of.scores
    rank_score = SCALE * of.scores[first] + sums(features(of, near, first))
    rows = first[inside]
    by_score = rows[np.argsort(numbers, kind="stable")]
    by_rank = rows[np.lexsort((-rank_score[inside], numbers))]
    exchanged = of.scores.copy()
    exchanged[by_rank] = of.scores[by_score]
    return exchanged


def best(scores: Floats, count: int) -> Ints:
    """Return the best ``count`` of candidates that are ascending by age; of equal scores the newer one is first."""
    found: Ints = np.lexsort((-np.arange(len(scores)), -scores))[:count]
    return found


def sums(found: Floats, trees: tuple[Ints, Floats, Floats] | None = None) -> Floats:
    """Return what the trees add for each row of ``features``; ``trees`` are as ``parsed``, by default the learned."""
    compared, thresholds, leaves = trees or _LEARNED
    rows, numbers = np.arange(len(found))[:, None], np.arange(len(compared))[None, :]
    node = np.zeros((len(found), len(compared)), np.int64)
    for level in range(_DEPTH):
        at = node + (2**level - 1)
        node = 2 * node + (found[rows, compared[numbers, at]] > thresholds[numbers, at])
    total: Floats = leaves[numbers, node].sum(axis=1)
    return total


def parsed(text: str) -> tuple[Ints, Floats, Floats]:
    """Return the features that the nodes compare, their thresholds and the leaves; shapes (trees, 7), the same, 8."""
    lines = text.split("\n")
    heads = np.array([line.split() for line in lines[1:-1:2]], np.float64)
    nodes = 2**_DEPTH - 1
    return heads[:, :nodes].astype(np.int64), heads[:, nodes:], np.array([line.split() for line in lines[2::2]], float)


_LEARNED: Final = parsed(TREES)
