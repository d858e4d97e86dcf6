"""Whether a text says what another one says: what was forgotten is not told again from the conversation that had it.

Source: docs/concepts.md "Forgetting".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from signet_actors.domain.normalization import CJK_RUN, MAYBE_CJK, character_pairs
from signet_actors.domain.query_words import words_of
from signet_actors.domain.stop_words import STOP_WORDS, stop_words_of
from signet_actors.domain.temporal.change import names_in, stem

_MOST_CHARS: Final = 1500
"""Of a memory the beginning is compared; of a longer text this much at a time, because a long one has most words."""
_MOST: Final = 0.7
"""So much of a memory's words a text has that says the same in other words."""
_FEW: Final = 3
"""A memory with fewer telling words is said by a sentence with little else."""
_MORE_WORDS: Final = 3
_ENDS: Final = frozenset(".!?;\n")


class Statement(NamedTuple):
    """The telling words of a text by their stems, and which of these name a value: numbers, names and days."""

    words: frozenset[str]
    values: frozenset[str]


def statement_of(text: str) -> Statement:
    """Return what a memory says. Of a long one, the beginning counts."""
    return _statement(text[:_MOST_CHARS])


def says(text: str, statement: Statement) -> bool:
    """Return True if the text has most words of the statement, and all its numbers, names and days, close together."""
    return statement.words != frozenset() and any(_has(part, statement) for part in _parts(text))


def share_of(text: str, statement: Statement) -> float:
    """Return how much of the statement's words the text has at most, close together."""
    least = max(1, len(statement.words))
    return max((len(statement.words & _statement(part).words) / least for part in _parts(text)), default=0.0)


def are_about_the_same(one: Statement, other: Statement) -> bool:
    """Return True if the shorter of two statements has half of its words in common with the other one."""
    return 2 * len(one.words & other.words) >= min(len(one.words), len(other.words)) > 0


def without_said(text: str, statements: Iterable[Statement], before: str = "") -> str:
    """Return the text without the sentences that say one of the statements, alone or as an answer to ``before``."""
    told = [each for each in statements if says(f"{before}\n{text}", each)]
    if not told:
        return text
    asked = [] if any(says(before, each) for each in told) else [before]
    return "".join(
        sentence
        for sentence in _sentences(text)
        if not any(_adds(sentence, each) and says("\n".join([*asked, sentence]), each) for each in told)
    ).strip()


def _adds(sentence: str, statement: Statement) -> bool:
    return not statement.words.isdisjoint(_statement(sentence).words)


def _has(text: str, statement: Statement) -> bool:
    if len(statement.words) < _FEW:
        said = map(_statement, _sentences(text))
        return any(statement.words <= each.words and len(each.words) <= _MORE_WORDS for each in said)
    found = _statement(text).words
    return statement.values <= found and len(statement.words & found) >= _MOST * len(statement.words)


def _statement(text: str) -> Statement:
    words = words_of(text)
    stop_words = STOP_WORDS | stop_words_of(words)
    numbers = {word: word.lstrip("0") for word in words if word.isdecimal()}
    telling = {numbers.get(word) or stem(word) for word in words if word not in stop_words and numbers.get(word) != ""}
    values = {word for word in telling if any(map(str.isnumeric, word)) or word.startswith("#")}
    if MAYBE_CJK.search(text):
        telling.update(pair for run in CJK_RUN.findall(text) for pair in character_pairs(run))
    return Statement(frozenset(telling), frozenset(values | (names_in(text) & telling)))


def _parts(text: str) -> Iterator[str]:
    """Yield the text in parts of a length, each of which begins in the middle of the one before it."""
    for at in range(0, max(1, len(text) - _MOST_CHARS // 2), _MOST_CHARS // 2):
        yield text[at : at + _MOST_CHARS]


def _sentences(text: str) -> Iterator[str]:
    """Yield the sentences and lines of a text; joined they are the text."""
    begin = 0
    for at, char in enumerate(text):
        if char in _ENDS and (char == "\n" or text[at + 1 : at + 2].isspace()):
            yield text[begin : at + 1]
            begin = at + 1
    if begin < len(text):
        yield text[begin:]
