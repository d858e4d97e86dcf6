"""Oversized content falls into chunks that end where sentences or lines end, and keep their layout.

Source: memory-pipeline "Configuration Reference" (guardrails); docs/operations.md "Long texts".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from signet_actors.domain.windowed_search import windowed_matches

MAX_CHUNKS = 2001
"""Chunks of one text at most; see ``chunk_target``."""
_PLANNED_CHUNKS = 1000

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_LIST_NUMBER = re.compile(r"\s{0,40}+\d{1,9}\.")
_BLANKS = 1024


def chunk_target(chars: int, configured: int) -> int:
    """The target for a text of ``chars`` characters with which ``chunk_by_sentence`` makes at most ``MAX_CHUNKS``.

    That is the ``configured`` one up to some hundred thousand characters. The chunks of a longer text are longer, so
    that one text never keeps the writer for long: two neighbours together exceed the target, or they would be one.

    Source: docs/reliability.md R13. Departs: the specification knows one target for every length.
    """
    return max(configured, -(-chars // _PLANNED_CHUNKS))


def chunk_by_sentence(text: str, target: int) -> list[str]:
    """Return stretches of ``text``, in storage form, with every character of it but white space in exactly one.

    Sentences (cut after ``. ! ?`` and white space) stay together while they fit into ``target`` characters. A sentence
    up to twice ``target`` stays whole; a longer one falls into its lines, and a line that is longer still is cut every
    ``target`` characters, so that no chunk exceeds ``2 * target``.

    Departs: the specification joins sentences with one space and cuts a long sentence anywhere, which breaks code,
    tables and lists; and the number of a list item is no sentence.
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

    A unit at the beginning of a line has its indentation; it is longer than ``longest`` only where a line is.
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
    """Return where the line of ``begin`` starts if only white space lies between, else ``begin``."""
    if after == 0:
        return text.rfind("\n", 0, begin) + 1
    line = text.rfind("\n", after, begin) + 1
    return line or begin


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of each sentence, without the white space around it."""
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
