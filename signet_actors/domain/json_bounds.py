"""How many values a JSON text may hold: decoding more would hold the interpreter lock for too long.

Source: docs/reliability.md R13.
"""

from __future__ import annotations

from typing import Final

MAX_VALUES: Final = 50_000
"""Values of one JSON text: decoding so many takes five milliseconds. The fullest valid request has some 25,000.

A body at its size limit can hold over a million empty lists, which block the event loop for a third of a second.
"""


def has_too_many_values(raw: bytes) -> bool:
    """Return True if ``raw`` has more than ``MAX_VALUES`` values; takes at most some 20 ms for the longest body."""
    if len(raw) <= MAX_VALUES or _separators(raw) <= MAX_VALUES:
        return False
    # A long text may contain that many commas and brackets: count those outside strings only.
    unescaped = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    parts = unescaped.split(b'"', 2 * MAX_VALUES)
    return len(parts) > 2 * MAX_VALUES or _separators(b"".join(parts[::2])) > MAX_VALUES


def _separators(raw: bytes) -> int:
    return len(raw) - len(raw.translate(None, b",[{"))
