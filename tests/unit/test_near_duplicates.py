"""Whether a text repeats a memory: the same words in the same order, apart from fillers."""

from __future__ import annotations

import pytest

from signet_actors.domain.near_duplicates import repeats, search_text

HELD = "The staging database of the shop listens on port 5433."


@pytest.mark.parametrize(
    "text",
    [
        HELD,
        "the staging database of our shop listens on port 5433",
        "Staging database of the shop listens on port 5433!",
        "Please note: the staging database of the shop also listens on port 5433",
    ],
)
def test_a_text_with_the_words_of_a_memory_repeats_it(text: str) -> None:
    assert repeats(text, HELD)


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("The staging database of the shop listens on port 5434", HELD),
        ("The staging database of the shop listens on port 5433 and 5434", HELD),
        ("The staging database listens on port 5433", HELD),
        ("The staging database of the shop never listens on port 5433", HELD),
        ("Ada and Bob may deploy to production and Carol", "Ada and Bob may deploy to production"),
        ("Never push to main", "Never push to main on weekends"),
        ("Bob reports to Ada", "Ada reports to Bob"),
        ("Copy the data from staging to production", "Copy the data to staging from production"),
        ("The warehouse robots charge at night", HELD),
        ("", HELD),
        ("the", "a"),
    ],
)
def test_a_text_that_says_anything_else_repeats_nothing(text: str, memory: str) -> None:
    assert not repeats(text, memory)


def test_ten_different_words_are_searched_for() -> None:
    assert search_text("A b1: “Alpha”, alpha, (beta)") == "alpha beta"
    assert len(search_text(" ".join(f"word{number}" for number in range(30))).split()) == 10
