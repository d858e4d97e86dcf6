"""How many values a JSON text may hold: decoding more would hold the interpreter lock for too long.

Source: docs/reliability.md R13.
"""

from __future__ import annotations

from typing import Final

MAX_VALUES: Final = 50_000
"""Values of one JSON text: decoding so many takes five milliseconds. The fullest valid request has some 25,000.

A body at its size limit can hold over a million empty lists, which block the event loop for a third of a second.
"""
_PART_BYTES: Final = 1 << 20


def has_too_many_values(raw: bytes, most: int = MAX_VALUES) -> bool:
    """Return True if ``raw`` has more than ``most`` values; takes at most some 20 ms for the longest body.

    A long text is read part by part, so that its copies stay small.
    """
    if len(raw) <= most or _separators(raw) <= most:
        return False
    # A long text may contain that many commas and brackets: count those outside strings only.
    values = at = in_string = 0
    while at < len(raw):
        end = _part_end(raw, at)
        unescaped = raw[at:end].replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = unescaped.split(b'"')
        values += _separators(b"".join(parts[in_string::2]))
        if values > most:
            return True
        in_string ^= (len(parts) - 1) & 1
        at = end
    return False


def _part_end(raw: bytes, at: int) -> int:
    """Return where the part that begins at ``at`` ends: never between a backslash and what it escapes."""
    part = raw[at : at + _PART_BYTES]
    backslashes = len(part) - len(part.rstrip(b"\\"))
    return min(at + _PART_BYTES - backslashes % 2, len(raw))


def _separators(raw: bytes) -> int:
    return raw.count(b",") + raw.count(b"[") + raw.count(b"{")
