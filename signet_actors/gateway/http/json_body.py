"""Decode the JSON of a request, whose number of values is bounded before any of them is created.

A body at its size limit can hold over a million empty lists. Decoding them blocks the event loop, and the garbage
collector, for a third of a second and longer.

Source: docs/security.md A12; docs/reliability.md R13.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from signet_actors.errors import InvalidRequest

MAX_VALUES: Final = 50_000
"""Values of one JSON text: decoding so many takes five milliseconds. The fullest valid request has some 25,000."""


class TooManyValues(InvalidRequest):
    """The JSON holds too many values."""


def decode_json(raw: bytes) -> Any:
    """Return the decoded ``raw``. Raises InvalidRequest; TooManyValues for more than ``MAX_VALUES`` values."""
    if len(raw) > MAX_VALUES and _has_too_many_values(raw):
        raise TooManyValues(f"The JSON must hold at most {MAX_VALUES} values")
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError) as error:
        raise InvalidRequest("Invalid JSON body") from error


def _has_too_many_values(raw: bytes) -> bool:
    """Return True if ``raw`` has more than ``MAX_VALUES`` values; takes at most some 20 ms for the longest body."""
    if _separators(raw) <= MAX_VALUES:
        return False
    # A long text may contain that many commas and brackets: count those outside strings only.
    unescaped = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    parts = unescaped.split(b'"', 2 * MAX_VALUES)
    return len(parts) > 2 * MAX_VALUES or _separators(b"".join(parts[::2])) > MAX_VALUES


def _separators(raw: bytes) -> int:
    return len(raw) - len(raw.translate(None, b",[{"))
