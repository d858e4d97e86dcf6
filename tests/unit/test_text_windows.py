"""A text searched in windows gives the same matches as when searched at once."""

from __future__ import annotations

import re
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signet_actors.domain import windowed_search
from signet_actors.domain.windowed_search import windowed_matches, word_windows

PATTERNS = (
    r"ab{1,4}c",
    r"(?<=[.])\s+",
    r"(?<![ab])a[ab]{0,6}(?!b)",
    r"\bc+\b",
    r"^a|b$",
    r"a.{0,5}?c",
    r"[ab]{2,}",
)


@given(st.sampled_from(PATTERNS), st.text(st.sampled_from("abc. "), max_size=60), st.integers(1, 9))
def test_every_match_is_found_at_any_window_boundary(source: str, text: str, window: int) -> None:
    pattern = re.compile(source)
    whole = [match.span() for match in pattern.finditer(text)]
    reach = max([8, *(end - begin for begin, end in whole)])
    with patch.object(windowed_search, "WINDOW", window):
        assert [match.span() for match in windowed_matches(pattern, text, reach)] == whole


def test_a_match_longer_than_the_window_is_returned_completely() -> None:
    text = "x" * 50 + "k-" + "a" * 200 + " " + "k-" + "b" * 90
    with patch.object(windowed_search, "WINDOW", 16):
        found = [match[0] for match in windowed_matches(re.compile(r"k-\w{4,}"), text, 10)]
    assert found == ["k-" + "a" * 200, "k-" + "b" * 90]


@given(st.text(st.sampled_from("ab \n\u00a0"), max_size=80), st.integers(1, 9))
def test_no_word_is_split_or_lost(text: str, window: int) -> None:
    with patch.object(windowed_search, "WINDOW", window):
        pieces = list(word_windows(text))
    assert [word for piece in pieces for word in piece.split()] == text.split()


@pytest.mark.parametrize("text", ["", "word", " ", "a" * 100])
def test_a_text_without_blanks_is_one_window(text: str) -> None:
    assert list(word_windows(text)) == [text]
