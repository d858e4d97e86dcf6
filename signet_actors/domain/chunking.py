"""Oversized content falls into chunks that end where sentences end.

Source: wire.md section 3 "Chunking by sentence" and 1.2 "Oversized".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


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
    for sentence in _SENTENCE_END.split(text.strip()):
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


def _cut(sentence: str, size: int) -> Iterator[str]:
    for start in range(0, len(sentence), size):
        piece = sentence[start : start + size].strip()
        if piece:
            yield piece
