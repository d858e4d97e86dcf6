"""Oversized content falls into chunks that end where sentences end.

Source: wire.md section 3 "Chunking by sentence" and 1.2 "Oversized".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from signet_actors.domain.text_windows import windowed_matches

MAX_CHUNKS = 2001
"""Chunks of one text at most; see ``chunk_target``."""
_PLANNED_CHUNKS = 1000

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_BLANKS = 1024


def chunk_target(chars: int, configured: int) -> int:
    """The target for a text of ``chars`` characters with which ``chunk_by_sentence`` makes at most ``MAX_CHUNKS``.

    That is the ``configured`` one up to some hundred thousand characters. The chunks of a longer text are longer, so
    that one text never keeps the writer for long: two neighbours together exceed the target, or they would be one.

    Source: reliability.md R13. Departs: wire.md 1.2 knows one target for every length.
    """
    return max(configured, -(-chars // _PLANNED_CHUNKS))


def chunk_by_sentence(text: str, target: int) -> list[str]:
    """Every character of ``text`` but white space is in exactly one chunk, in order; no chunk is empty.

    Sentences (cut after ``. ! ?`` and white space) are joined with one space while they fit into ``target``
    characters. A sentence up to twice ``target`` stays whole; a longer one is cut every ``target`` characters, so
    that no chunk exceeds ``2 * target``.
    """
    if target < 1:
        raise ValueError("target must be at least 1 character")
    chunks: list[str] = []
    current = ""
    for sentence in _sentences(text.strip()):
        if current and len(current) + 1 + len(sentence) <= target:
            current = f"{current} {sentence}"
            continue
        if current:
            chunks.append(current)
        current = ""
        if len(sentence) > 2 * target:
            chunks.extend(_cut(sentence, target))
        else:
            current = sentence
    if current:
        chunks.append(current)
    return chunks


def _sentences(text: str) -> Iterator[str]:
    at = 0
    for end in windowed_matches(_SENTENCE_END, text, _BLANKS):
        yield text[at : end.start()]
        at = end.end()
    yield text[at:]


def _cut(sentence: str, size: int) -> Iterator[str]:
    for start in range(0, len(sentence), size):
        piece = sentence[start : start + size].strip()
        if piece:
            yield piece
