"""Split text into the pieces of a Unigram model (SentencePiece): those whose scores have the greatest sum.

Characters are replaced by the model's own table first, and a mark stands for each blank. All runs of characters that
are pieces are found at once by their hashes, so that a quarter of a million pieces need neither objects nor time to
load; then the best way through them is sought from left to right. Linear in the text's length.

Source: Kudo (2018), "Subword Regularization"; Kudo and Richardson (2018), "SentencePiece"; Viterbi (1967).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

BEGIN: Final = 0
END: Final = 2
UNKNOWN: Final = 3
BLANK: Final = "\u2581"
_UNKNOWN_COSTS: Final = 10.0
"""So much lower than the worst piece is the score of a character that has none."""
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)

Array = npt.NDArray[Any]


class Pieces(NamedTuple):
    """The pieces as a file has them. ``offsets``: where each begins in ``text``, UTF-8, and the end of the last.

    ``changed``: what characters become.
    """

    text: bytes
    offsets: Array
    scores: Array
    changed: Mapping[int, str]


class Unigram:
    """Splits texts; thread-safe."""

    def __init__(self, pieces: Pieces, max_tokens: int) -> None:
        self._changed, self._max_tokens = pieces.changed, max_tokens
        # The same pieces as characters of one width: every character has one byte that does not continue another.
        starts = (np.frombuffer(pieces.text, np.uint8) & 0xC0) != 0x80
        bounds = np.concatenate(([0], np.cumsum(starts)))[pieces.offsets]
        codes = _codes(pieces.text.decode())
        lengths = np.diff(bounds)
        self.longest = int(lengths[pieces.scores < 0].max())
        hashes = np.zeros(len(lengths), np.uint64)
        for at in range(self.longest):
            longer = lengths > at
            hashes[longer] = _mixed(hashes[longer], codes[bounds[:-1][longer] + at])
        kept = np.flatnonzero((pieces.scores < 0) & (lengths > 0))  # special pieces have no score
        self._numbers = kept[np.argsort(hashes[kept])].astype(np.int32)
        self._hashes, self._scores = hashes[self._numbers], pieces.scores[self._numbers]
        self._unknown = float(pieces.scores.min()) - _UNKNOWN_COSTS

    def numbers(self, text: str) -> list[int]:
        """Return the numbers of the first pieces of ``text`` between those of begin and end, with both."""
        changed = text.translate(self._changed)
        marked = "".join(BLANK + word for word in changed.split(" ") if word)
        found: list[int] = []
        for number in self._best(marked):
            if number != UNKNOWN or found[-1:] != [UNKNOWN]:  # unknown characters side by side are one
                found.append(number)
        return [BEGIN, *found[: self._max_tokens - 2], END]

    def _best(self, marked: str) -> list[int]:
        """Return the pieces of the best way through the text."""
        length = len(marked)
        begins, ends, scores, numbers = self._matches(_codes(marked))
        best = [0.0, *[-float("inf")] * length]
        came_from, by = [0] * (length + 1), [UNKNOWN] * (length + 1)
        at = 0
        for begin in range(length):
            here = best[begin]
            if here + self._unknown > best[begin + 1]:
                best[begin + 1], came_from[begin + 1], by[begin + 1] = here + self._unknown, begin, UNKNOWN
            while at < len(begins) and begins[at] == begin:
                end = ends[at]
                if here + scores[at] > best[end]:
                    best[end], came_from[end], by[end] = here + scores[at], begin, numbers[at]
                at += 1
        backwards = []
        while length:
            backwards.append(by[length])
            length = came_from[length]
        return backwards[::-1]

    def _matches(self, codes: Array) -> tuple[list[int], list[int], list[float], list[int]]:
        """Return where pieces begin and end in the text, their scores and numbers, in the order of their begins."""
        hashes = np.zeros(len(codes), np.uint64)
        found = []
        for longer in range(min(self.longest, len(codes))):
            hashes = _mixed(hashes[: len(codes) - longer], codes[longer:])
            places = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
            begins = np.flatnonzero(self._hashes[places] == hashes)
            found.append(np.stack((begins, begins + longer + 1, places[begins])))
        if not found:
            return [], [], [], []
        begins, ends, places = np.concatenate(found, axis=1)
        order = np.argsort(begins, kind="stable")
        places = places[order]
        scores, numbers = self._scores[places], self._numbers[places]
        return begins[order].tolist(), ends[order].tolist(), scores.tolist(), numbers.tolist()


def _codes(text: str) -> Array:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint64)


def _mixed(hashes: Array, codes: Array) -> Array:
    """Return the hashes of runs that are one character longer, modulo 2 ** 64."""
    mixed: Array = (hashes ^ (hashes >> np.uint64(29)) ^ codes) * _FACTOR
    return mixed
