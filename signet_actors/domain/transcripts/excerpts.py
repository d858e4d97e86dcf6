"""The part of a long text, or of a conversation, that shows why it was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from signet_actors.domain.lazy_patterns import compile_later
from signet_actors.domain.normalization import collapsed
from signet_actors.domain.query_words import words_of
from signet_actors.domain.transcripts.turns import conversation, turns_of_conversation

EXCERPT_CHARS: Final = 240
_BEFORE: Final = 120
"""An excerpt begins with the sentence, if that begins so many characters before the word."""
_MOST_PLACES: Final = 1_000
_SENTENCE_END: Final = compile_later(r"\n|[.!?\u2026]\s+|[\u3002\uff01\uff1f]")
_SHORTEST_STEM: Final = 4
_ENDING: Final = 3


def excerpt(text: str, words: Sequence[str], chars: int = EXCERPT_CHARS) -> str:
    """Return the ``chars`` characters that have most of the ``words``, on one line; without any, the beginning.

    What is rare in the text counts more. Of parts that have as much the last is taken: an answer ends with a result.
    The text index finds other endings of a word too, so the word's beginning counts if it does not occur as it is.
    """
    if len(text) <= chars:
        return collapsed(text)
    start = _best_start(text.lower(), words, chars)
    end = start + chars
    cut = collapsed(text[start:end])
    return f"{'… ' if start else ''}{cut}{' …' if end < len(text) else ''}"


def _best_start(folded: str, words: Sequence[str], chars: int) -> int:
    found = [places for word in words if word and (places := _places(folded, word) or _places(folded, _stem(word)))]
    weights = [len(places) ** -0.5 for places in found]
    ordered = sorted((at, word) for word, places in enumerate(found) for at in places)
    best, best_start, inside, first, after = 0.0, 0, [0] * len(found), 0, 0
    for at, _ in ordered:
        start = _passage_start(folded, at, min(_BEFORE, chars // 2))
        while after < len(ordered) and ordered[after][0] + _ENDING < start + chars:
            inside[ordered[after][1]] += 1
            after += 1
        while ordered[first][0] < start:
            inside[ordered[first][1]] -= 1
            first += 1
        score = sum(weight for weight, count in zip(weights, inside, strict=True) if count)
        if score >= best:
            best, best_start = score, start
    return best_start


def _places(folded: str, beginning: str) -> list[int]:
    """Return where words begin with these characters."""
    places: list[int] = []
    at = folded.find(beginning)
    while at >= 0 and len(places) < _MOST_PLACES:
        if not at or not folded[at - 1].isalnum() or not beginning[0].isascii():
            places.append(at)
        at = folded.find(beginning, at + len(beginning))
    return places


def _passage_start(folded: str, at: int, most: int) -> int:
    """Return where the sentence or line begins, or, if it began long before, a word at most so much before ``at``."""
    before = folded[max(0, at - most) : at]
    ends = [end.end() for end in _SENTENCE_END.finditer(before)]
    if ends or len(before) < most:
        return at - len(before) + (ends[-1] if ends else 0)
    return at - most + before.find(" ") + 1


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

    Words that a short turn has are the subject of all; the part of a long one is chosen by the others if it has any.
    ``turns`` are as for ``conversation_around``.
    """
    share = chars // max(1, len(turns))
    short = [text for _, text, _ in turns if len(text) <= share]
    share = (chars - sum(map(len, short))) // max(1, len(turns) - len(short))
    subject = " ".join(short).lower()
    others = [word for word in words if word and not _places(subject, _stem(word))]
    return conversation(
        [
            (role, text if len(text) <= share else excerpt(text, _of_text(text, others) or words, share), continues)
            for role, text, continues in turns
        ]
    )


def _of_text(text: str, words: Sequence[str]) -> list[str]:
    folded = text.lower()
    return [word for word in words if _places(folded, _stem(word))]


def shortened_conversation(text: str, words: Sequence[str], chars: int) -> str:
    """Return what ``conversation`` made, in about ``chars`` characters on one line, as ``exchange`` does."""
    return collapsed(text if len(text) <= chars else exchange(turns_of_conversation(text), words, chars))
