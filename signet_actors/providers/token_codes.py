"""Codes of a text's tokens, which are stored beside its vector and compared one by one at recall (MaxSim).

A code identifies the static vector of a word piece. Words are cached, because the tokenizer takes longer than a lookup.

Source: docs/quality.md "Token similarity".
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import accumulate
from typing import Final, Protocol

from signet_actors.config.embedding_models import MAX_TOKEN_CODES
from signet_actors.domain.stop_words import STOP_WORDS
from signet_actors.providers.byte_pairs import WORD_MARK, BytePairs

_MAX_TEXT_WORDS: Final = 256
_MAX_BYTES: Final = 2 * MAX_TOKEN_CODES
_MAX_CACHED_WORDS: Final = 16_384
_MAX_WORD_CHARS: Final = 64
_TAILS: Final = frozenset({"s", "t", "m", "re", "ve", "ll", "d"})
"""What the tokenizer leaves behind the apostrophe of a contraction."""


class TokenCodes(Protocol):
    """Makes the codes of an encoder; only the searcher that compares them knows their form."""

    def of_text(self, text: str) -> bytes:
        """Return the codes that are stored with the vector of ``text``; empty if it has no token."""

    def of_query(self, text: str) -> list[tuple[str, bytes]]:
        """Return each word of ``text`` with the codes of its tokens."""


class WordPieceCodes:
    """The numbers of word pieces, two bytes each (native order)."""

    def __init__(self, pieces: BytePairs) -> None:
        self._pieces = pieces
        self._telling: dict[str, bytes] = {}

    def of_text(self, text: str) -> bytes:
        """Return the numbers of the first ``MAX_TOKEN_CODES`` telling pieces, or of all pieces if none tells."""
        words = text.split(maxsplit=_MAX_TEXT_WORDS)[:_MAX_TEXT_WORDS]
        codes = _joined(map(self._telling_pieces, words))
        return codes or _joined(map(self._all_pieces, words))

    def of_query(self, text: str) -> list[tuple[str, bytes]]:
        """Return the words with telling pieces, or all words, up to ``MAX_TOKEN_CODES`` pieces together."""
        words = list(dict.fromkeys(text.split()))[:MAX_TOKEN_CODES]
        telling = [(word, codes) for word in words if (codes := self._telling_pieces(word))]
        found = telling or [(word, codes) for word in words if (codes := self._all_pieces(word))]
        lengths = accumulate(len(codes) for _, codes in found)
        return [word for word, length in zip(found, lengths, strict=True) if length <= _MAX_BYTES]

    def _telling_pieces(self, word: str) -> bytes:
        known = self._telling.get(word)
        if known is None:
            known = array("H", [number for piece, number in self._tokens(word) if _is_compared(piece)]).tobytes()
            if len(word) <= _MAX_WORD_CHARS:
                if len(self._telling) >= _MAX_CACHED_WORDS:
                    self._telling = {}
                self._telling[word] = known
        return known

    def _all_pieces(self, word: str) -> bytes:
        return array("H", [number for _, number in self._tokens(word)]).tobytes()

    def _tokens(self, word: str) -> list[tuple[str, int]]:
        pieces = self._pieces.pieces_of_word(word[:_MAX_WORD_CHARS])
        return [(piece, self._pieces.vocabulary[piece]) for piece in pieces]


def _joined(codes: Iterable[bytes]) -> bytes:
    """Return the first ``MAX_TOKEN_CODES`` codes; the rest is not computed."""
    found = bytearray()
    for more in codes:
        found += more
        if len(found) >= _MAX_BYTES:
            break
    return bytes(found[:_MAX_BYTES])


def is_telling(piece: str) -> bool:
    """Return False for a stop word, the tail of a contraction, punctuation and a special token ("[CLS]")."""
    bare = piece.strip(WORD_MARK).lower()
    return bare not in STOP_WORDS and bare not in _TAILS and any(map(str.isalnum, bare)) and not bare.startswith("[")


def _is_compared(piece: str) -> bool:
    """Return True for a piece that ``is_telling``, except digits and bytes ("<0xE3>"), which unrelated texts share."""
    return is_telling(piece) and any(map(str.isalpha, piece)) and not piece.startswith("<")
