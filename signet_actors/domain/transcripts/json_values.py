"""Read values of JSON that a harness wrote: lenient about what is missing or of another type, strict about its size.

Source: docs/reliability.md R13.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from signet_actors.domain.json_bounds import has_too_many_values
from signet_actors.domain.timestamps import iso, normalize_timestamp

MAX_JSON_BYTES: Final = 16 << 20
"""A longer line or document is not read: decoding it would stop every other thread for too long."""
_MAX_TIME_CHARS: Final = 64
_SECONDS_END: Final = 100_000_000_000
"""A smaller number is a time in seconds, a larger one in milliseconds."""
_LAST_MS: Final = 253_402_300_799_999

_TEXT_BLOCKS: Final = frozenset({"text", "input_text", "output_text"})


def decode_json_text(raw: bytes) -> Any:
    """Return the value, or None if ``raw`` is no JSON or too large. Bytes that are not UTF-8 become U+FFFD."""
    if len(raw) > MAX_JSON_BYTES or has_too_many_values(raw):
        return None
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        pass
    try:
        # Half of a surrogate pair, which JSON permits and msgspec does not, or bytes that are not UTF-8.
        return json.loads(raw.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def text_at(value: Mapping[str, Any], *names: str) -> str | None:
    """Return the first text that is not blank among these members, or None."""
    for name in names:
        text = value.get(name)
        if isinstance(text, str) and text.strip():
            return text
    return None


def object_at(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object of this name, or an empty one."""
    inner = value.get(name)
    return inner if isinstance(inner, dict) else {}


def time_at(value: Mapping[str, Any], *names: str) -> str | None:
    """Return the first valid time among these members in storage form: ISO text, or a number since 1970; else None."""
    for name in names:
        time = value.get(name)
        found = None
        if isinstance(time, str):
            found = normalize_timestamp(time) if len(time) <= _MAX_TIME_CHARS else None
        elif isinstance(time, int | float) and not isinstance(time, bool) and 0 < time < _LAST_MS:
            found = iso(int(time * 1000 if time < _SECONDS_END else time))
        if found is not None:
            return found
    return None


def text_of_content(content: Any) -> str:
    """Return the text of a message's content: a text, or the texts among its blocks, one after another.

    Thinking, images, and the calls of tools with their results are left out.
    """
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        content = [content] if "text" in content else content.get("parts")
    if not isinstance(content, list):
        return ""
    texts = [_text_of_block(block) for block in content]
    return "\n".join(text for text in texts if text.strip())


def _text_of_block(block: Any) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, dict) or ("type" in block and text_at(block, "type") not in _TEXT_BLOCKS):
        return ""
    text = block.get("text")
    return text if isinstance(text, str) and block.get("thought") is not True else ""
