"""The transcripts of Cursor: one JSON object a line, below ``~/.cursor/projects/<project>/agent-transcripts``.

A record has a ``role`` and a ``message``, whose content is a list of blocks like those of Claude Code, and no ``type``,
id or session; that of the end of a turn has a ``type`` alone. The user's own words stand in ``<user_query>``, behind
the time of the prompt and what Cursor adds to it. Answers have no time. Results of tools are not in the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from signet_actors.domain.timestamps import normalize_timestamp
from signet_actors.domain.transcripts.json_values import object_at, text_at, text_of_content
from signet_actors.domain.transcripts.turns import Turn, turn_of

_QUERY: Final = "<user_query>"
_QUERY_END: Final = "</user_query>"
_HIDDEN: Final = "[REDACTED]"
"""Stands at the end of an answer for what Cursor does not show of it."""
_TIME_CHARS: Final = 20_000
"""The time of a prompt stands before the user's words, behind the names of attached files."""
_TIME: Final = re.compile(
    r"<timestamp>(?:[A-Z][a-z]{2,8}, )?([A-Z][a-z]{2})[a-z]{0,6} (\d{1,2}), (\d{4}),? (\d{1,2}):(\d\d) ?([AP])M"
    r" \((?:UTC|GMT)(?:([+-])(\d{1,2})(?::(\d\d))?)?\)</timestamp>"
)
_WHOLE_TIME: Final = re.compile(r"<timestamp>[^<]{0,200}</timestamp>")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def is_record(record: Mapping[str, Any]) -> bool:
    """Return True if this is a line of a transcript of Cursor."""
    if "type" in record:
        return text_at(record, "type") == "turn_ended" and "status" in record
    return text_at(record, "role") is not None and "content" in object_at(record, "message")


def session_of(record: Mapping[str, Any]) -> str | None:  # noqa: ARG001 - like the other formats
    """Return None: no record names its session."""
    return None


def turn(record: Mapping[str, Any]) -> Turn | None:
    """Return the turn of the record, or None if it is none."""
    role = text_at(record, "role")
    text = text_of_content(object_at(record, "message").get("content"))
    if role != "user":
        return turn_of(role, text.rstrip().removesuffix(_HIDDEN))
    before, is_marked, rest = text.partition(_QUERY)
    if not is_marked:
        return turn_of(role, _WHOLE_TIME.sub("", text, 1), _said_at(text))
    said = rest.rpartition(_QUERY_END)[0] or rest
    return turn_of(role, said, _said_at(before))


def _said_at(text: str) -> str | None:
    """Return the time that stands in what Cursor adds to a prompt, in storage form; None if there is none."""
    found = _TIME.search(text, 0, _TIME_CHARS)
    if found is None or found[1] not in _MONTHS:
        return None
    month, day, year, hour, minute, half, sign, hours, minutes = found.groups()
    in_24_hours = int(hour) % 12 + (12 if half == "P" else 0)
    offset = f"{sign or '+'}{int(hours or 0):02}:{minutes or '00'}"
    return normalize_timestamp(
        f"{year}-{_MONTHS.index(month) + 1:02}-{int(day):02}T{in_24_hours:02}:{minute}:00{offset}"
    )
