"""Convert rows of ``memories`` to message values; the only place that knows the column order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from signet_actors.protocol.memories import Memory

_tags = msgspec.json.Decoder(list[str])

MEMORY_COLUMNS = ", ".join(f"m.{name}" for name in Memory.__struct_fields__)
"""The SELECT list over the alias ``m`` that ``to_memory`` expects."""
SHORTENED_COLUMNS = MEMORY_COLUMNS.replace("m.content,", "substr(m.content, 1, :chars),").replace(
    "m.tags,", "CASE WHEN length(m.tags) > 4000 THEN '[]' ELSE m.tags END,"
)
"""``MEMORY_COLUMNS`` with the first ``:chars`` characters of the content, and without tags that are very long."""

_TAGS_AT = Memory.__struct_fields__.index("tags")


class StoredValueInvalid(Exception):
    """A column holds a value that this program would not have stored."""


def decode_tags(text: str) -> list[str]:
    """Decode the JSON array of the ``tags`` column. Raises ``StoredValueInvalid``."""
    try:
        return _tags.decode(text)
    except msgspec.MsgspecError as error:
        raise StoredValueInvalid(f"tags: {error}") from error


def to_memory(row: Sequence[Any]) -> Memory:
    """Convert a row selected with ``MEMORY_COLUMNS``; further columns may follow."""
    values = list(row[: len(Memory.__struct_fields__)])
    values[_TAGS_AT] = decode_tags(values[_TAGS_AT])
    return Memory(*values)
