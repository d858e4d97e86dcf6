"""The elements of a JSON array in a file, one at a time: only the longest of them has to fit into memory.

Source: RFC 8259.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import TYPE_CHECKING, Any, BinaryIO, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

READ_BYTES: Final = 1 << 20
LONGEST_CHARS: Final = 64 << 20
"""A longer element is not read."""
_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()


class Element(NamedTuple):
    """An element, and where it is in the file, in bytes."""

    value: Any
    place: int
    length: int


def elements(file: BinaryIO) -> Iterator[Element]:
    """Yield the elements of the array that the file contains; raise ValueError or RecursionError at what is none."""
    text = _Text(file)
    text.take("[")
    if text.next() == "]":
        return
    while True:
        yield text.element()
        if text.next() == "]":
            return
        text.take(",")


class _Text:
    """The text of the file from ``place`` on, of which only a part is read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._place = len(codecs.BOM_UTF8)
        if file.read(self._place) != codecs.BOM_UTF8:
            file.seek(0)
            self._place = 0

    def next(self) -> str:
        """Skip blanks, and return the next character; empty at the end of the file."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            assert blanks is not None
            self._advance(blanks.end())
            if self._at < len(self._text) or not self._read():
                return self._text[self._at : self._at + 1]

    def take(self, wanted: str) -> None:
        """Skip this character; raise ValueError if another one is next."""
        if self.next() != wanted:
            raise ValueError(wanted)
        self._advance(self._at + 1)

    def element(self) -> Element:
        """Return the value that is next. What is cut off is read again with more of the file, twice as much each time.

        Raises ValueError.
        """
        self.next()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
                break
            except json.JSONDecodeError:
                if len(self._text) - self._at > LONGEST_CHARS or not self._read():
                    raise
        place = self._place
        self._advance(end)
        return Element(value, place, self._place - place)

    def _advance(self, to: int) -> None:
        self._place += len(self._text[self._at : to].encode())
        self._at = to

    def _read(self) -> bool:
        raw = self._file.read(max(READ_BYTES, len(self._text) - self._at))
        self._text = self._text[self._at :] + self._decoder.decode(raw, final=not raw)
        self._at = 0
        return bool(raw)
