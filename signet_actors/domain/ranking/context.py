"""Scores of candidates from their context: the rows beside them in a conversation, and what their texts are about.

``base`` is the base score of each candidate (shape (n,), in [0, 1]); ``scores`` is that with priors. A candidate's
neighbours are given by position among the candidates; position n means that there is none, or that it is no candidate.

Source: docs/quality.md "Context and priors", with the measured gain of each stage.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from signet_actors.domain.ranking.text_flags import ASKS, HOLDS_NUMBER, TELLS_TIME

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

NEIGHBOUR: Final = 0.30
ANSWER: Final = 0.20
EPISODE: Final = 0.40
SUBJECT: Final = 0.15
QUESTION: Final = 0.10
TIME: Final = 0.10
NUMBER: Final = 0.05
DATE: Final = 0.30
COMPENSATION: Final = 1.2
"""Weights of the stages, chosen on the development half of LoCoMo. Changing one by a quarter moves R@10 by < 1."""
_COMPENSATION_ROWS: Final = 20
_MOST_COMPENSATION: Final = 2.0
"""A conversation of weak candidates gains much in proportion; that says nothing about rows outside it."""


class Neighbours(NamedTuple):
    """The context of n candidates; all arrays have shape (n,).

    ``left`` and ``right`` are positions among the candidates, n for none. ``episode`` numbers the episodes from 0.
    ``in_conversation``: whether the rows of its episode are alike enough for context to mean anything.
    """

    left: Ints
    right: Ints
    episode: Ints
    in_conversation: Bools


def priors(flags: npt.NDArray[np.uint8], is_subject: Bools, wanted: int) -> dict[str, Floats]:
    """Return what each candidate is worth by its text alone, by prior; the sum counts.

    Rows about the subject that the query names gain 0.15, rows that ask lose 0.1; where the query asks for a time,
    rows that tell one gain 0.1, where it asks for a number, rows that hold one gain 0.05.
    """
    points: dict[str, Floats] = {
        "subject": np.where(is_subject, SUBJECT, 0.0),
        "question": np.where((flags & ASKS) > 0, -QUESTION, 0.0),
    }
    if wanted & TELLS_TIME:
        points["time"] = np.where((flags & TELLS_TIME) > 0, TIME, 0.0)
    if wanted & HOLDS_NUMBER:
        points["number"] = np.where((flags & HOLDS_NUMBER) > 0, NUMBER, 0.0)
    return points


def date_boost(days_apart: Ints) -> Floats:
    """Return the gain of rows by their distance in days from the date that the query names; 0 beyond a week."""
    after, before = (days_apart > 0) & (days_apart <= 7), (days_apart < 0) & (days_apart >= -7)
    return DATE * np.select([days_apart == 0, np.abs(days_apart) == 1, after, before], [1.0, 0.8, 0.4, 0.3], 0.0)


class InContext(NamedTuple):
    """``scores`` with context, and what each candidate gained from its neighbours, a question before it, and its
    episode. What a row outside conversations gained is compensation."""

    scores: Floats
    neighbours: Floats
    answer: Floats
    episode: Floats


def with_context(base: Floats, scores: Floats, flags: npt.NDArray[np.uint8], near: Neighbours) -> InContext:
    """Return ``scores`` with the support of each candidate's context.

    In a conversation: 0.3 of the better neighbour's base score, 0.2 of the previous row's if that one asks a question,
    and 0.4 of the best score in the episode. Rows without context would fall behind by this, so they gain the share
    that the 20 best candidates of conversations gained on average, times 1.2.
    """
    beside = np.append(base, 0.0)
    asked = np.append(base * ((flags & ASKS) > 0), 0.0)
    neighbours = NEIGHBOUR * np.maximum(beside[near.left], beside[near.right])
    answer = ANSWER * asked[near.left]
    support = neighbours + answer
    opened = np.flatnonzero(near.in_conversation)
    final, episode = scores.copy(), np.zeros(len(scores))
    if not len(opened):
        return InContext(final, neighbours, answer, episode)
    best = np.full(int(near.episode.max()) + 1, -np.inf)
    np.maximum.at(best, near.episode[opened], (scores + support)[opened])
    episode[opened] = EPISODE * best[near.episode[opened]]
    gained = (support + episode)[opened]
    final[opened] += gained
    first = np.argsort(-scores[opened], kind="stable")[:_COMPENSATION_ROWS]
    total = float(scores[opened][first].sum())
    ratio = min(_MOST_COMPENSATION, max(0.0, float(gained[first].sum()) / total)) if total > 0 else 0.0
    final[~near.in_conversation] *= 1.0 + COMPENSATION * ratio
    return InContext(final, neighbours, answer, episode)


def strongest_beside(base: Floats, near: Neighbours) -> Floats:
    """Return the greatest base score among each candidate and its neighbours in a conversation.

    ``min_score`` is compared with it: an answer without a word of the question is beside the row that has them.
    """
    beside = np.append(base, 0.0)
    strongest: Floats = np.maximum(base, np.maximum(beside[near.left], beside[near.right]))
    return strongest
