"""A given value as a message shows it: short, on one line."""

from __future__ import annotations

from typing import Any, Final

MAX_SHOWN_CHARS: Final = 60


def shown_value(value: Any) -> str:
    """Return a given value for a message: short, on one line, without the contents of a list or mapping."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple | set):
        return "a list"
    if isinstance(value, int):
        return str(value) if value.bit_length() <= 256 else "a very large number"
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        text = value if len(value) <= MAX_SHOWN_CHARS else value[:MAX_SHOWN_CHARS] + "…"
        return f'"{printable(text)}"'
    return f"a {type(value).__name__}"


def printable(text: str) -> str:
    """Return the text with a mark in place of each character that cannot be shown."""
    return "".join(sign if sign.isprintable() else "�" for sign in text)
