"""Split text into the word pieces of the embedded model: byte-pair encoding as SentencePiece does it.

Two neighbours whose joined text is in the vocabulary are joined, those with the lowest number first. A character that
is not in the vocabulary becomes its UTF-8 bytes ("<0xE3>"). The numbers equal those of the package tokenizers (a test
compares them), which with its dependencies is twice as large as the model.

Source: Sennrich, Haddow and Birch (2016), subword units; Kudo and Richardson (2018), SentencePiece.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Final

WORD_MARK: Final = "\u2581"
"""Stands for a blank, and before the first word."""
SPECIAL: Final = ("<unk>", "<s>", "</s>")
"""Written in a text, these are tokens and not text, as in the package."""
_SPECIAL: Final = re.compile("(<unk>|<s>|</s>)")


_REMEMBERED_WORDS: Final = 4096


class BytePairs:
    """Thread-safe. Words are remembered and texts are not, because texts are the contents of memories."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        """``vocabulary`` has the number of each piece. Raises ``ValueError`` if one of the 256 bytes is missing."""
        self.vocabulary = vocabulary
        self._bytes = [f"<0x{byte:02X}>" for byte in range(256)]
        if not all(piece in vocabulary for piece in (*self._bytes, *SPECIAL)):
            raise ValueError("the vocabulary lacks bytes or special tokens")
        # A pair's rank is that of the joined piece plus the number of its left side; runs of blanks are joined last.
        count = len(vocabulary)
        self._ranks = {
            piece: count * (number if piece.strip(WORD_MARK) else number + count)
            for piece, number in vocabulary.items()
        }
        self.pieces_of_word = lru_cache(_REMEMBERED_WORDS)(self._pieces_of_word)
        """``pieces`` of a word, with the mark before it. Vector and codes of a text need the same ones one after the
        other."""

    def numbers_of_text(self, text: str) -> list[int]:
        """Return the numbers of the pieces of a whole text."""
        found: list[int] = []
        for part in _SPECIAL.split(text):
            if part in SPECIAL:
                found.append(self.vocabulary[part])
            elif part:
                pieces = self.pieces(WORD_MARK + part.replace(" ", WORD_MARK))
                found += [self.vocabulary[piece] for piece in pieces]
        return found

    def pieces(self, text: str) -> list[str]:
        """Return the pieces of ``text``, whose blanks have been replaced by marks; linearithmic in its length."""
        numbers, ranks = self.vocabulary, self._ranks
        pieces: list[str] = []
        for character in text:
            if character in numbers:
                pieces.append(character)
            else:
                pieces += [self._bytes[byte] for byte in character.encode("utf-8", "surrogatepass")]
        queue = [
            (rank + numbers[left], place, joined)
            for place, (left, right) in enumerate(pairwise(pieces))
            if (rank := ranks.get(joined := left + right)) is not None
        ]
        if not queue:
            return pieces
        heapify(queue)
        following = list(range(1, len(pieces) + 1))
        previous = list(range(-1, len(pieces) - 1))
        while queue:
            _, place, joined = heappop(queue)
            right = following[place]
            # A piece that was joined to its left neighbour is empty. A pair may have changed since it was queued.
            if not pieces[place] or right == len(pieces) or pieces[place] + pieces[right] != joined:
                continue
            pieces[place], pieces[right] = joined, ""
            right = following[place] = following[right]
            if right < len(pieces):
                previous[right] = place
                if (rank := ranks.get(longer := joined + pieces[right])) is not None:
                    heappush(queue, (rank + numbers[joined], place, longer))
            left = previous[place]
            if left >= 0 and (rank := ranks.get(longer := pieces[left] + joined)) is not None:
                heappush(queue, (rank + numbers[pieces[left]], left, longer))
        return [piece for piece in pieces if piece]

    def _pieces_of_word(self, word: str) -> tuple[str, ...]:
        return tuple(self.pieces(WORD_MARK + word))
