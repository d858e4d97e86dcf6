"""Blocks that a program puts into a prompt on its own account."""

from __future__ import annotations


def without_blocks(text: str, opening: str, closing: str) -> str:
    """Return ``text`` without the blocks from ``opening`` to ``closing``. A block without an end is kept."""
    parts: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0:
        end = text.find(closing, start + len(opening))
        if end < 0:
            break
        parts.append(text[at:start])
        at = end + len(closing)
    parts.append(text[at:])
    return "".join(parts)
