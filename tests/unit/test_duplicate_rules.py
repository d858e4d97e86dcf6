"""A memory is merged only into one that says all of it."""

from __future__ import annotations

import pytest

from signet_actors.features.duplicates.rules import Candidate, better_first, kept_and_merged, says_all_of

SAME = (
    ("The staging database listens on port 5433", "the staging database listens on port 5433."),
    ("The staging database of the shop listens on port 5433", "staging database listens on port 5433"),
    ("Anna prefers dark mode in every editor", "Anna prefers dark mode"),
)
DIFFERENT = (
    ("The staging database listens on port 5433", "The staging database listens on port 5434"),
    ("We deploy the shop on Mondays", "We deploy the shop on Tuesdays"),
    ("Agents may deploy the shop", "Agents may not deploy the shop"),
    ("The cache is enabled in production", "The cache is disabled in production"),
    ("The shop uses postgres for orders", "The shop uses mysql for orders"),
    ("Copy the dump from alpha to beta", "Copy the dump from beta to alpha"),
    ("Anna reviews the migrations", "Bert reviews the migrations"),
    ("the", "a"),
)


@pytest.mark.parametrize(("kept", "merged"), SAME)
def test_a_text_with_all_words_of_another_says_all_of_it(kept: str, merged: str) -> None:
    assert says_all_of(kept, merged)


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_texts_that_differ_in_what_they_say_are_not_merged(one: str, other: str) -> None:
    assert not says_all_of(one, other)
    assert not says_all_of(other, one)


def candidate(content: str, importance: float = 0.5, created_at: str = "2026-01-01", seq: int = 1) -> Candidate:
    return Candidate(seq, f"id-{seq}", content, "hash", importance, created_at)


def test_the_more_important_one_stays_and_then_the_older_one() -> None:
    old, new = candidate("x", created_at="2025-01-01"), candidate("x", created_at="2026-01-01", seq=2)
    important = candidate("x", 0.9, "2026-06-01", 3)
    assert better_first(new, old) == (old, new)
    assert better_first(old, important) == (important, old)


def test_the_one_that_says_more_stays_whatever_its_importance() -> None:
    less, more = (
        candidate("Anna prefers dark mode", 0.9),
        candidate("Anna prefers dark mode in every editor", 0.5, seq=2),
    )
    assert kept_and_merged(less, more) == (more, less)
    assert kept_and_merged(candidate("Anna likes tea"), candidate("Bert likes coffee", seq=2)) is None
