"""Split long content into chunks that end at sentence or line ends and keep their layout.

Source: memory-pipeline "Configuration Reference" (guardrails); docs/operations.md "Long texts".
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from signet_actors.domain.normalization import comparable, content_hash
from signet_actors.domain.windowed_search import windowed_matches

_PLANNED_CHUNKS: Final = 1000
"""Half of the chunks that one text has at most; see ``chunk_target``."""

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_LIST_NUMBER = re.compile(r"\s{0,40}+\d{1,9}\.")
_BLANKS = 1024
_INVISIBLE: Final = ""


def chunk_target(chars: int, configured: int) -> int:
    """Return the target size for which ``distinct_chunks`` makes at most ``2 * _PLANNED_CHUNKS + 1`` chunks.

    Up to some hundred thousand characters, that is the ``configured`` target. Longer texts get longer chunks, so that
    one text never occupies the writer for long. The bound holds because two adjacent chunks together exceed the target;
    otherwise they would be one chunk.

    Source: docs/reliability.md R13. Departs: the specification has one target for every length.
    """
    return max(configured, -(-chars // _PLANNED_CHUNKS))


def distinct_chunks(text: str, target: int) -> list[str]:
    """Return chunks of ``text``, which is in storage form. Every character except white space is in exactly one chunk,
    and each chunk has visible characters and a content hash of its own.

    Sentences (split after ``. ! ?`` and white space) are grouped up to ``target`` characters. A sentence of up to twice
    ``target`` stays whole. A longer one is split into lines, and a longer line is cut every ``target`` characters, so
    no chunk exceeds ``2 * target``.

    A chunk that equals an earlier one also takes the pieces (sentences, lines or parts of lines) after it, until it
    differs, so that a text that repeats itself loses nothing although each content is stored once. If the text ends
    before that, the last chunks become one. Such chunks may exceed ``2 * target``.

    Departs: the specification joins sentences with one space and cuts a long sentence anywhere, which breaks code,
    tables and lists. Here the number of a list item does not end a sentence.
    """
    pieces = _Pieces(text, target)
    chunks: dict[str, int] = {}  # hash -> first piece, in text order
    added: dict[str, int] = {}  # hash of a chunk as grouped -> pieces that the last chunk of this hash took besides
    first = 0
    while first < len(pieces.ends):
        after = pieces.group(first)
        digest = grouped = pieces.digest(first, after)
        if digest in chunks:
            after += added.get(grouped, 0)  # it would equal the chunks that took fewer
        while digest in chunks or digest == _INVISIBLE:
            if after >= len(pieces.ends):
                after = len(pieces.ends)
                if not chunks:
                    return []
                _, first = chunks.popitem()
            else:
                # Pieces without visible characters change no hash.
                taken = pieces.next_visible(after) + 1 - after
                after += taken
                added[grouped] = added.get(grouped, 0) + taken
            digest = pieces.digest(first, after)
        chunks[digest] = first
        first = after
    firsts = [*chunks.values(), len(pieces.ends)]
    return [pieces.text(begin, end) for begin, end in pairwise(firsts)]


class _Pieces:
    """The bounds of the sentences, lines and parts of lines from which the chunks of a text are made."""

    def __init__(self, text: str, target: int) -> None:
        if target < 1:
            raise ValueError("target must be at least 1 character")
        self._text, self._target = text, target
        self._begins, self.ends = array("q"), array("q")  # a tuple for each piece would take ten times the memory
        self._cut: set[int] = set()
        for begin, end in _units(text, 2 * target):
            if end - begin <= 2 * target:
                self._begins.append(begin)
                self.ends.append(end)
                continue
            for part_begin, part_end in _cut(text, begin, end, target):
                self._cut.add(len(self.ends))
                self._begins.append(part_begin)
                self.ends.append(part_end)

    def group(self, first: int) -> int:
        """Return the index after the last piece of the chunk that begins with the piece ``first``."""
        after = first + 1
        if first in self._cut:
            return after  # each part of a line that was cut is a chunk
        limit = self._begins[first] + self._target
        while after < len(self.ends) and self.ends[after] <= limit and after not in self._cut:
            after += 1
        return after

    def text(self, first: int, after: int) -> str:
        """Return the text from the piece ``first`` to the one before ``after``."""
        return self._text[self._begins[first] : self.ends[after - 1]]

    def next_visible(self, index: int) -> int:
        """Return the index of the first piece from ``index`` on that has visible characters, else of the last piece."""
        while index < len(self.ends) - 1 and not comparable(self.text(index, index + 1)):
            index += 1
        return index

    def digest(self, first: int, after: int) -> str:
        """Return the content hash of these pieces, or ``_INVISIBLE`` if they have no visible characters."""
        chunk = self.text(first, min(after, len(self.ends)))
        return content_hash(chunk) if comparable(chunk) else _INVISIBLE


def _units(text: str, longest: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of each sentence, and of each line of a sentence that is longer than ``longest``.

    A unit at the beginning of a line includes its indentation. It is longer than ``longest`` only if its line is.
    """
    after = 0
    for begin, end in _sentences(text):
        if end - (start := _line_start(text, after, begin)) <= longest:
            yield start, end
            after = end
            continue
        at = begin
        while at < end:
            line_end = text.find("\n", at, end)
            stop = end if line_end < 0 else line_end
            line = text[at:stop]
            if line.strip():
                first = stop - len(line.lstrip())
                yield _line_start(text, after, first), at + len(line.rstrip())
                after = stop
            at = stop + 1


def _line_start(text: str, after: int, begin: int) -> int:
    """Return the start of the line of ``begin`` if only white space is between, else ``begin``."""
    if after == 0:
        return text.rfind("\n", 0, begin) + 1
    line = text.rfind("\n", after, begin) + 1
    return line or begin


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of each sentence, without surrounding white space."""
    begin = len(text) - len(text.lstrip())
    size = len(text.rstrip())
    if begin >= size:
        return
    for gap in windowed_matches(_SENTENCE_END, text, _BLANKS):
        if gap.end() >= size:
            break
        line = text.rfind("\n", begin, gap.start()) + 1 or begin
        if not _LIST_NUMBER.fullmatch(text, line, gap.start()):
            yield begin, gap.start()
            begin = gap.end()
    yield begin, size


def _cut(text: str, begin: int, end: int, size: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of the parts of a line, ``size`` characters each, without surrounding white space."""
    for start in range(begin, end, size):
        part = text[start : min(start + size, end)]
        if part.strip():
            first = start if start == begin else start + len(part) - len(part.lstrip())
            yield first, start + len(part.rstrip())
