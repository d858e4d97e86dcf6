"""Whether a text repeats a memory: most of its words are there, and nothing in it may be a correction."""

from __future__ import annotations

import pytest

from signet_actors.domain.near_duplicates import repeats, search_text

HELD = "The staging database of the shop listens on port 5433."


@pytest.mark.parametrize(
    "text",
    [
        HELD,
        "the staging database listens on port 5433",
        "Staging database of the shop: port 5433!",
        "We know that the staging database of the shop listens on port 5433",
    ],
)
def test_a_text_whose_words_a_memory_has_repeats_it(text: str) -> None:
    assert repeats(text, HELD)


@pytest.mark.parametrize(
    "text",
    [
        "The staging database of the shop listens on port 5434",
        "The staging database of the shop listens on port 5433 and 5434",
        "The staging server of the shop listens on port 5433",
        "The staging database of the shop never listens on port 5433",
        "The warehouse robots charge at night",
        "",
        "on it",
    ],
)
def test_a_text_that_may_say_something_else_repeats_nothing(text: str) -> None:
    assert not repeats(text, HELD)


def test_seven_of_ten_words_are_enough_and_fewer_are_not() -> None:
    held = "alpha beta gamma delta epsilon zeta eta"
    assert repeats(f"{held} one two three", held)
    assert not repeats(f"{held} one two three four", held)


def test_ten_different_words_are_searched_for() -> None:
    assert search_text("A b1: “Alpha”, alpha, (beta)") == "alpha beta"
    assert len(search_text(" ".join(f"word{number}" for number in range(30))).split()) == 10
