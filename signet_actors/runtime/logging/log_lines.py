"""Log events as JSON lines and as text for a terminal; no value in an event makes this fail.

A value that JSON cannot hold (or whose ``repr`` raises) is replaced by a description of itself; the rest of the event
stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

_MAX_REPLACED_CHARS = 1000
_FIRST = ("timestamp", "level", "event", "actor", "incarnation")


def json_line(event: Mapping[str, Any]) -> bytes:
    """Return the event as one line of JSON, its well-known fields first."""
    ordered = {key: event[key] for key in _FIRST if key in event} | dict(event)
    try:
        return msgspec.json.encode(ordered, enc_hook=repr) + b"\n"
    except Exception:  # noqa: BLE001 - whatever a value's own code raises
        plain = {_text(key): _plain(value) for key, value in ordered.items()}
        return msgspec.json.encode(plain) + b"\n"


def text_line(event: Mapping[str, Any], *, bold: bool = False) -> str:
    """Return the event as text for a person; a stack follows on lines of its own."""
    shown = {key: _shown(value) for key, value in event.items() if key not in {*_FIRST, "stack"}}
    level, what = _shown(event.get("level", "")), _shown(event.get("event", ""))
    if bold:
        what = f"\x1b[1m{what}\x1b[0m"
    who = f"{_shown(event.get('actor', ''))}/{_shown(event.get('incarnation', ''))}"
    details = "".join(f" {_text(key)}={repr(value) if ' ' in value else value}" for key, value in shown.items())
    lines = [f"{_shown(event.get('timestamp', ''))} {level:<8} {who:<14} {what}{details}"]
    stack = event.get("stack")
    if isinstance(stack, (list, tuple)):
        lines += [f"    {_shown(frame)}" for frame in stack]
    elif stack is not None:
        lines.append(f"    {_shown(stack)}")
    return "\n".join(lines)


def _plain(value: Any) -> Any:
    """Return ``value`` if JSON can hold it, else a text that describes it."""
    try:
        msgspec.json.encode(value, enc_hook=repr)
    except Exception:  # noqa: BLE001 - see json_line
        return _text(value)
    return value


def _text(value: Any) -> str:
    try:
        return (
            (value if isinstance(value, str) else repr(value))
            .encode("utf-8", "backslashreplace")
            .decode()[:_MAX_REPLACED_CHARS]
        )
    except Exception:  # noqa: BLE001 - see json_line
        return f"<{type(value).__name__} without a readable representation>"


def _shown(value: Any) -> str:
    """Return a value on one line, without characters that steer a terminal."""
    text = _text(value)
    return text if text.isprintable() else ascii(text)
