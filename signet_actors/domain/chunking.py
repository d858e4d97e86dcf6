"""Split long content into chunks that end at sentence or line ends and keep their layout.

Source: memory-pipeline "Configuration Reference" (guardrails); docs/operations.md "Long texts".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from signet_actors.domain.windowed_search import windowed_matches

MAX_CHUNKS = 2001
"""Maximum chunks of one text; see ``chunk_target``."""
_PLANNED_CHUNKS = 1000

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_LIST_NUMBER = re.compile(r"\s{0,40}+\d{1,9}\.")
_BLANKS = 1024


def chunk_target(chars: int, configured: int) -> int:
    """Return the target size for which ``chunk_by_sentence`` makes at most ``MAX_CHUNKS`` chunks.

    Up to some hundred thousand characters, that is the ``configured`` target. Longer texts get longer chunks, so that
    one text never occupies the writer for long. The bound holds because two adjacent chunks together exceed the target;
    otherwise they would be one chunk.

    Source: docs/reliability.md R13. Departs: the specification has one target for every length.
    """
    return max(configured, -(-chars // _PLANNED_CHUNKS))


def chunk_by_sentence(text: str, target: int) -> list[str]:
    """Return chunks of ``text``, which is in storage form. Every character except white space is in exactly one chunk.

    Sentences (split after ``. ! ?`` and white space) are grouped up to ``target`` characters. A sentence of up to twice
    ``target`` stays whole. A longer one is split into lines, and a longer line is cut every ``target`` characters, so
    no chunk exceeds ``2 * target``.

    Departs: the specification joins sentences with one space and cuts a long sentence anywhere, which breaks code,
    tables and lists. Here the number of a list item does not end a sentence.
    """
    if target < 1:
        raise ValueError("target must be at least 1 character")
    chunks: list[str] = []
    start = end = 0
    for begin, stop in _units(text, 2 * target):
        if end > start and stop - start <= target:
            end = stop
            continue
        if end > start:
            chunks.append(text[start:end])
        start, end = begin, stop
        if stop - begin > 2 * target:
            chunks.extend(_cut(text[begin:stop], target))
            start = end
    if end > start:
        chunks.append(text[start:end])
    return chunks


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


def _cut(line: str, size: int) -> Iterator[str]:
    for start in range(0, len(line), size):
        piece = line[start : start + size]
        piece = piece.strip() if start else piece.rstrip()
        if piece:
            yield piece
