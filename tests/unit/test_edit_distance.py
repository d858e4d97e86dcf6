"""Typing errors between words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain.edit_distance import within_distance


@pytest.mark.parametrize(
    ("word", "other", "errors"),
    [
        ("kitten", "kitten", 0),
        ("kitten", "kiten", 1),
        ("kitten", "kittten", 1),
        ("kitten", "kitben", 1),
        ("kitten", "ktiten", 1),
        ("kitten", "sitting", 3),
        ("", "ab", 2),
        ("ca", "abc", 3),
    ],
)
def test_the_number_of_errors(word: str, other: str, errors: int) -> None:
    assert within_distance(word, other, errors)
    assert within_distance(other, word, errors)
    assert not within_distance(word, other, errors - 1)


@given(st.text("ab", max_size=6), st.integers(0, 5), st.sampled_from("abc"))
def test_a_letter_too_many_is_one_error(word: str, place: int, letter: str) -> None:
    longer = word[:place] + letter + word[place:]
    assert within_distance(word, longer, 1)
    assert within_distance(longer, word, 1)
    assert not within_distance(word, longer, 0)
