"""The part of a long text that shows why it was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from signet_actors.domain.normalization import collapsed

EXCERPT_CHARS: Final = 240
_BEFORE: Final = 60
_SHORTEST_STEM: Final = 4
_ENDING: Final = 3


def excerpt(text: str, words: Sequence[str], chars: int = EXCERPT_CHARS) -> str:
    """Return about ``chars`` characters around the first of the ``words`` that occurs, on one line.

    The text index finds other endings of a word too, so the word's beginning counts if none occurs as it is.
    """
    if len(text) <= chars:
        return collapsed(text)
    folded = text.lower()
    at = _first(folded, words)
    if at < 0:
        at = _first(folded, [word[: max(_SHORTEST_STEM, len(word) - _ENDING)] for word in words])
    start = 0 if at < _BEFORE else text.find(" ", at - _BEFORE, at) + 1 or at - _BEFORE
    end = start + chars
    cut = collapsed(text[start:end])
    return f"{'… ' if start else ''}{cut}{' …' if end < len(text) else ''}"


def _first(folded: str, words: Sequence[str]) -> int:
    places = [at for word in words if word and (at := folded.find(word)) >= 0]
    return min(places, default=-1)
