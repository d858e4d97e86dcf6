"""Split text into the word pieces of BERT, with the place of each in the text.

Characters are prepared first: control characters and accents are removed, letters become lower-case, blanks are put
around punctuation and Chinese characters. Then each word is cut into the longest pieces of the vocabulary, from its
beginning. The pieces equal those of the package tokenizers (a test compares them); which characters are removed and
which stand alone is fixed in characters.txt, since Python's own tables change with its version.

Source: Devlin et al. (2019), BERT; Wu et al. (2016), word pieces; The Unicode Standard, "Normalization Forms" (NFD).
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Final, NamedTuple

CHARACTERS: Final = Path(__file__).with_name("characters.txt")
"""Code points and ranges of them, in hexadecimal: a line for each treatment."""
UNKNOWN: Final = "[UNK]"
BEGIN: Final = "[CLS]"
END: Final = "[SEP]"
MAX_WORD_CHARS: Final = 100
"""A longer word is unknown."""
_CONTINUED: Final = "##"
_MAX_CHARACTERS: Final = 16_384
"""Capacity of the table of prepared characters; it is cleared when it is full."""


class Token(NamedTuple):
    """A word piece, and where it begins in the text."""

    piece: str
    begin: int


class WordPieces:
    """Splits texts; thread-safe."""

    def __init__(self, vocabulary: str, max_tokens: int) -> None:
        """``vocabulary`` has a piece on each line. Raises ``KeyError`` if it lacks the special tokens."""
        self.numbers = {piece: number for number, piece in enumerate(vocabulary.split())}
        for special in (BEGIN, END, UNKNOWN):
            self.numbers[special]
        self._longest = max(map(len, self.numbers))
        self._max_tokens = max_tokens
        self._prepared = _Characters()

    def tokens(self, text: str) -> list[Token]:
        """Return the first pieces of ``text`` between ``BEGIN`` and ``END``, ``max_tokens`` with both."""
        found = [Token(BEGIN, 0)]
        for token in self._pieces(text):
            if len(found) == self._max_tokens - 1:
                break
            found.append(token)
        found.append(Token(END, 0))
        return found

    def _pieces(self, text: str) -> Iterator[Token]:
        prepared = [self._prepared[character] for character in text]
        ends = list(accumulate(map(len, prepared)))
        place = 0
        at = 0
        for word in "".join(prepared).split(" "):
            if word:
                for piece, begin in self._pieces_of_word(word):
                    while ends[at] <= place + begin:
                        at += 1
                    yield Token(piece, at)
            place += len(word) + 1

    def _pieces_of_word(self, word: str) -> list[tuple[str, int]]:
        """Return the pieces and where they begin in ``word``; one unknown piece if some part has no piece."""
        if len(word) > MAX_WORD_CHARS:
            return [(UNKNOWN, 0)]
        if word in self.numbers:
            return [(word, 0)]
        found: list[tuple[str, int]] = []
        begin, mark = 0, ""
        while begin < len(word):
            for end in range(min(len(word), begin + self._longest), begin, -1):
                piece = mark + word[begin:end]
                if piece in self.numbers:
                    found.append((piece, begin))
                    break
            else:
                return [(UNKNOWN, 0)]
            begin, mark = end, _CONTINUED
        return found


class _Characters(dict[str, str]):
    """What each character becomes, computed when it is first seen."""

    def __init__(self) -> None:
        super().__init__()
        lines = (line.partition(" ") for line in CHARACTERS.read_text(encoding="ascii").splitlines())
        self._ranges = {treatment: _Ranges(ranges) for treatment, _, ranges in lines}

    def __missing__(self, character: str) -> str:
        removed, space, alone = (character in self._ranges[name] for name in ("removed", "space", "alone"))
        if removed or space:
            prepared = " " if space else ""
        else:
            parts = unicodedata.normalize("NFD", character)
            prepared = "".join(part.lower() for part in parts if part not in self._ranges["removed"])
            prepared = f" {prepared} " if alone else prepared
        if len(self) >= _MAX_CHARACTERS:
            self.clear()
        self[character] = prepared
        return prepared


class _Ranges:
    def __init__(self, ranges: str) -> None:
        """``ranges``: "20 41-5a", in ascending order."""
        pairs = [each.partition("-") for each in ranges.split()]
        self._first = [int(first, 16) for first, _, _ in pairs]
        self._last = [int(last or first, 16) for first, _, last in pairs]

    def __contains__(self, character: str) -> bool:
        at = bisect_right(self._first, ord(character)) - 1
        return at >= 0 and ord(character) <= self._last[at]
