"""Whether a text says what a memory says: what was forgotten is not told again by the conversation that had it.

Source: docs/concepts.md "What happens later".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from signet_actors.domain.normalization import CJK_RUN, MAYBE_CJK, character_pairs
from signet_actors.domain.query_words import words_of
from signet_actors.domain.stop_words import STOP_WORDS, stop_words_of
from signet_actors.domain.temporal.change import names_in, stem

MOST_CHARS: Final = 1500
"""Of a memory the beginning is compared; of a longer text this much at a time, because a long one has most words."""
_MOST: Final = 0.7
"""A text that says the same in other words has so much of a memory's words."""
_FEW: Final = 3
"""A memory with fewer telling words is said by a sentence with little else."""
_MORE_WORDS: Final = 3
_HALF: Final = 0.5
_DATE: Final = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_HOUR: Final = re.compile(r"(\d+)(?:am|pm|h)?")
_SENTENCE: Final = re.compile(r"[^.!?;\n]*(?:[.!?;](?!\s)[^.!?;\n]*)*[.!?;\n]?\s*")
_LABEL: Final = re.compile(r"(?:- )?[\w ]{1,20}:\s*")


class Statement(NamedTuple):
    """The telling words of a text by their stems; which of these are numbers or days, and which are names."""

    words: frozenset[str]
    numbers: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()


class Passage(NamedTuple):
    """A text as what its parts say, which are as long as a memory, and what each sentence says."""

    parts: Sequence[Statement]
    sentences: Sequence[Statement]


def statement_of(text: str) -> Statement:
    """Return what a memory says. The day on which it was written down counts only if it has no other number."""
    text = text[:MOST_CHARS]
    undated = _statement(_DATE.sub(" ", text))
    return undated if undated.numbers else _statement(text)


def passage_of(text: str) -> Passage:
    """Return what a text says that may be long."""
    step = MOST_CHARS // 2
    starts = range(0, max(1, len(text) - step), step)
    parts = [_statement(text[at : at + MOST_CHARS]) for at in starts]
    return Passage(parts, [_statement(sentence) for sentence in sentences_of(text)])


def says(passage: Passage, said: Statement) -> bool:
    """Return True if the passage has most words of the statement, all its numbers and half of its names."""
    if len(said.words) < _FEW:
        likely = (each for each in passage.sentences if len(each.words) <= len(said.words) + _MORE_WORDS)
        return bool(said.words) and any(said.words <= each.words for each in likely)
    return any(_has(each.words, said) for each in passage.parts)


def says_rather(passage: Passage, one: Statement, other: Statement) -> bool:
    """Return True if the passage says ``one``, which is about the same as ``other``, and has as much of it."""
    if len(one.words & other.words) < _HALF * len(one.words) or not says(passage, one):
        return False
    return _most_words(passage, one) >= _most_words(passage, other)


def without_said(text: str, statements: Iterable[Statement], before: str = "") -> str:
    """Return the text without the sentences that say one of these, alone or as the answer to what was said before.

    It is empty if nothing but the name of a line is left.
    """
    told = list(statements)
    kept = [sentence for sentence in sentences_of(text) if not any(_tells(sentence, before, each) for each in told)]
    left = "".join(kept).strip()
    return "" if _LABEL.fullmatch(f"{left} ") else left


def sentences_of(text: str) -> list[str]:
    """Return the sentences and lines of a text, which are the text when they are joined."""
    return [sentence for sentence in _SENTENCE.findall(text) if sentence]


def _tells(sentence: str, before: str, said: Statement) -> bool:
    """Return True if the sentence says the statement, or a word of it as the answer to what says or asks it."""
    if said.words.isdisjoint(_statement(sentence).words):
        return False
    return says(passage_of(f"{before}\n{sentence}"), said)


def _most_words(passage: Passage, said: Statement) -> int:
    return max((len(said.words & each.words) for each in passage.parts), default=0)


def _has(words: frozenset[str], said: Statement) -> bool:
    return (
        said.numbers <= words
        and len(said.names & words) >= _HALF * len(said.names)
        and len(said.words & words) >= _MOST * len(said.words)
    )


def _statement(text: str) -> Statement:
    words = words_of(text)
    stop_words = STOP_WORDS | stop_words_of(words)
    stems = {_value(word) for word in words if word not in stop_words}
    stems.discard("0")  # 02:00 is also written 2am
    numbers = frozenset(each for each in stems if each.startswith("#") or any(map(str.isnumeric, each)))
    names = names_in(text) & stems - numbers
    if MAYBE_CJK.search(text):
        stems.update(pair for run in CJK_RUN.findall(text) for pair in character_pairs(run))
    return Statement(frozenset(stems), numbers, frozenset(names))


def _value(word: str) -> str:
    """Return the stem of a word; of one with a digit the whole word, of an hour its number."""
    if not any(map(str.isnumeric, word)):
        return stem(word)
    hour = _HOUR.fullmatch(word)
    return hour[1].lstrip("0") or "0" if hour else word
