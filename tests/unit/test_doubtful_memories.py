"""Which of the memories that a prompt's search finds are given beside one that surely answers.

Source: docs/quality.md "Relevance"; docs/guides/hooks.md "Each prompt".
"""

from __future__ import annotations

from signet_actors.domain.ranking.relevance import without_doubtful


def given(*relevances: float, newer: dict[int, int] | None = None) -> list[float]:
    """Return the relevance of the memories that are given; ``newer`` maps one to the one that corrects it."""
    corrected = newer or {}
    found = [
        (f"row-{at}", relevance, f"row-{corrected[at]}" if at in corrected else None)
        for at, relevance in enumerate(relevances)
    ]
    return [relevances[at] for at in without_doubtful(found)]


def test_beside_a_memory_that_surely_answers_no_doubtful_one_is_given() -> None:
    for found, expected in (
        ((), []),
        ((0.5,), [0.5]),
        ((0.94,), [0.94]),
        ((0.95,), [0.95]),
        ((0.95, 0.79), [0.95]),
        ((0.95, 0.8), [0.95, 0.8]),
        ((0.79, 0.95), [0.95]),
        ((0.94, 0.79), [0.94, 0.79]),
        ((0.94, 0.5), [0.94, 0.5]),
        ((0.99, 0.98, 0.97), [0.99, 0.98, 0.97]),
        ((0.99, 0.6, 0.97), [0.99, 0.97]),
        ((0.6, 0.6, 0.6), [0.6, 0.6, 0.6]),
        ((1.0, 0.5, 0.6, 0.7), [1.0]),
        ((0.85, 0.55, 0.9), [0.85, 0.55, 0.9]),
        ((1.0, 0.81, 0.79), [1.0, 0.81]),
    ):
        assert given(*found) == expected, found


def test_what_corrects_a_memory_that_is_given_stays_beside_it() -> None:
    for found, newer, expected in (
        ((0.99, 0.1), {0: 1}, [0.99, 0.1]),
        ((0.99, 0.1), {}, [0.99]),
        ((0.99, 0.85, 0.2), {1: 2}, [0.99, 0.85, 0.2]),
        ((0.99, 0.6, 0.2), {1: 2}, [0.99]),
        ((0.9, 0.1), {0: 1}, [0.9, 0.1]),
    ):
        assert given(*found, newer=newer) == expected, (found, newer)
