"""The part of a long text, or of a conversation, that shows why it was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from signet_actors.domain.normalization import collapsed
from signet_actors.domain.transcripts.turns import conversation

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


def conversation_around(turns: Sequence[tuple[str, str, bool]], at: int, words: Sequence[str], chars: int) -> str:
    """Return the turn ``at`` with those beside it, as many as have ``chars`` characters; an excerpt of a longer one.

    ``turns`` are role, text and whether the turn continues the one before it.
    """
    role, text, continues = turns[at]
    if len(text) >= chars:
        return conversation([(role, excerpt(text, words, chars), continues)])
    first = last = at
    size = len(text)
    while True:
        grown = size
        if last + 1 < len(turns) and size + len(turns[last + 1][1]) <= chars:
            last += 1
            size += len(turns[last][1])
        if first and size + len(turns[first - 1][1]) <= chars:
            first -= 1
            size += len(turns[first][1])
        if size == grown:
            return conversation(turns[first : last + 1])


def _first(folded: str, words: Sequence[str]) -> int:
    places = [at for word in words if word and (at := folded.find(word)) >= 0]
    return min(places, default=-1)
