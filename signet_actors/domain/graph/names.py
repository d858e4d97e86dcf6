"""Names of entities: their canonical form, their tokens, and where a text mentions them.

Source: knowledge-graph.txt "Data Model"; docs/decisions.md 20, 21.
Departs: the specification drops names of fewer than four characters (Go, AWS, npm); here they have at least two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from signet_actors.domain.stop_words import STOP_WORDS

MIN_NAME_CHARS: Final = 2
MAX_NAME_CHARS: Final = 200
MAX_NAME_TOKENS: Final = 8
"""A longer name is stored, but not recognised in a text."""
MAX_SCANNED_CHARS: Final = 20_000
MAX_MENTIONS: Final = 50
"""Of one text."""
MAX_ALIKE: Final = 8
"""Names that differ in their marks alone, such as "a/b" and "a-b": so many of them are recognised in a text."""
CHUNK_GROUP: Final = "chunk_group"
"""The type of what holds the parts of a long text together, which is no entity of the graph."""
EXTRACTED: Final = "extracted"
"""The type of an entity of which nothing says what it is."""
ENTITY_TYPES: Final = ("person", "project", "system", "tool", "concept", "skill", "task", "unknown")

_SHORT: Final = 3
_CJK: Final = "\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3"
_TOKEN: Final = re.compile(f"[{_CJK}]|[^\\W_{_CJK}]+[+#]*")
_ENDS: Final = frozenset(".,;:!?()")


class Mention(NamedTuple):
    """A place in a text where the name ``canonical`` may stand, written as ``text``."""

    canonical: str
    text: str


class Token(NamedTuple):
    text: str
    """In lower case."""
    start: int
    end: int


def canonical_name(name: str) -> str:
    """Return the name in lower case, with single spaces. Equal canonical names mean the same entity of an agent."""
    return " ".join(name.lower().split())


def tokens_of(text: str) -> list[Token]:
    """Return the words of the text in order; of scripts without spaces, the characters. Linear time."""
    return [Token(match[0].lower(), match.start(), match.end()) for match in _TOKEN.finditer(text)]


def name_tokens(name: str) -> tuple[str, ...]:
    """Return the tokens of a name in lower case."""
    return tuple(token.text for token in tokens_of(name))


def is_written_as(name: str, text: str) -> bool:
    """Return whether ``text``, whose letters are those of ``name``, can mean the entity.

    A short name, or one that is a common word of English, must be written with the same capital letters: "Go" is not
    mentioned by "go", nor "IT" by "it".
    """
    canonical = canonical_name(name)
    return text == name or not (len(canonical) <= _SHORT or canonical in STOP_WORDS)


class NameIndex:
    """The names of the entities of one agent, to find in a text which of them it may mention.

    It may have names that are gone, so a hit is to be looked up; it lacks those beyond ``MAX_ALIKE`` alone. A text of n
    tokens takes ``MAX_NAME_TOKENS`` look-ups for each, whatever the names are.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._names: dict[str, tuple[str, ...]] = {}
        self._lengths: dict[str, int] = {}
        for name in names:
            self.add(name)

    def __len__(self) -> int:
        return len(self._names)

    def add(self, canonical: str) -> None:
        """Add a canonical name."""
        tokens = name_tokens(canonical)
        if not 0 < len(tokens) <= MAX_NAME_TOKENS:
            return
        key = " ".join(tokens)
        known = self._names.get(key, ())
        if canonical not in known and len(known) < MAX_ALIKE:
            self._names[key] = (*known, canonical)
            self._lengths[tokens[0]] = self._lengths.get(tokens[0], 0) | 1 << len(tokens)

    def mentions(self, text: str) -> Iterator[Mention]:
        """Yield what the text may mention, in order, the longest name at each place; no token counts twice."""
        text = text[:MAX_SCANNED_CHARS]
        tokens = tokens_of(text) if self._names else []
        at = found = 0
        while at < len(tokens) and found < MAX_MENTIONS:
            lengths = self._lengths.get(tokens[at].text, 0)
            at, step = at + 1, 0
            for count in range(min(lengths.bit_length() - 1, len(tokens) - at + 1), 0, -1):
                if not lengths >> count & 1:
                    continue
                words = tokens[at - 1 : at - 1 + count]
                names = self._names.get(" ".join(word.text for word in words))
                if names is None or not _adjacent(text, words):
                    continue
                found, step = found + 1, count - 1
                for name in names:
                    yield Mention(name, text[words[0].start : words[-1].end])
                break
            at += step


def _adjacent(text: str, words: list[Token]) -> bool:
    """Return whether only a space or a mark is between the words, and no sentence or clause ends there."""
    for left, right in pairwise(words):
        gap = text[left.end : right.start]
        if len(gap) > 2 or "\n" in gap or (len(gap) == 2 and gap[0] in _ENDS):
            return False
    return True
