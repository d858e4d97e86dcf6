"""The part of a long text, or of a conversation, that shows why it was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from signet_actors.domain.normalization import collapsed
from signet_actors.domain.query_words import words_of
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
        at = _first(folded, list(map(_stem, words)))
    start = 0 if at < _BEFORE else text.find(" ", at - _BEFORE, at) + 1 or at - _BEFORE
    end = start + chars
    cut = collapsed(text[start:end])
    return f"{'… ' if start else ''}{cut}{' …' if end < len(text) else ''}"


def best_line(lines: Sequence[str], words: Sequence[str]) -> int:
    """Return the index of the first of the lines that has most of the words, by their beginnings; 0 if none has one."""
    stems = tuple({_stem(word) for word in words})
    counts = [len({stem for token in words_of(line) for stem in stems if token.startswith(stem)}) for line in lines]
    return counts.index(max(counts, default=0)) if counts else 0


def beginning_or_best(text: str, words: Sequence[str], chars: int) -> str:
    """Return the beginning of a text, or its heading and the lines from the one on that has most of the words."""
    lines = list(filter(str.strip, text.splitlines()))
    at = best_line(lines, words)
    if sum(map(len, lines[: at + 1])) + at <= chars:
        return text
    heading = lines[:1] if lines[0].startswith("#") and len(lines[0]) < chars // 3 else []
    rest = "\n".join(lines[at:])
    return "\n".join([*heading, f"… {excerpt(rest, words, chars)}" if len(lines[at]) > chars else f"… {rest}"])


def _stem(word: str) -> str:
    return word[: max(_SHORTEST_STEM, len(word) - _ENDING)]


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


def exchange(turns: Sequence[tuple[str, str, bool]], words: Sequence[str], chars: int) -> str:
    """Return what was asked and answered, in about ``chars`` characters: of a long turn the part that matches.

    ``turns`` are as for ``conversation_around``.
    """
    share = chars // max(1, len(turns))
    short = [len(text) for _, text, _ in turns if len(text) <= share]
    share = (chars - sum(short)) // max(1, len(turns) - len(short))
    return conversation(
        [
            (role, text if len(text) <= share else excerpt(text, words, share), continues)
            for role, text, continues in turns
        ]
    )


def _first(folded: str, words: Sequence[str]) -> int:
    places = [at for word in words if word and (at := folded.find(word)) >= 0]
    return min(places, default=-1)
