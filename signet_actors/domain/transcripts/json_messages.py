"""Messages in JSON of programs that no other module knows: objects with a role or speaker, and what was said.

They stand one on a line, in a list, or in an object's list ``messages``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from signet_actors.domain.transcripts.json_values import object_at, text_at, text_of_content, time_at
from signet_actors.domain.transcripts.turns import Turn, turn_of

_ROLE: Final = ("role", "speaker", "from", "author", "sender")
_SAID: Final = ("content", "text", "message", "value")
_TIME: Final = ("timestamp", "time", "created_at", "createdAt", "date")


def is_record(record: Mapping[str, Any]) -> bool:
    """Return True if this object is a message."""
    return text_at(record, *_ROLE) is not None and any(name in record for name in _SAID)


def session_of(record: Mapping[str, Any]) -> str | None:
    """Return the session that the message names."""
    return text_at(record, "sessionKey", "session_key", "sessionId", "session_id")


def turn(record: Mapping[str, Any]) -> Turn | None:
    """Return the turn of the message, or None if it is none."""
    for name in _SAID:
        text = text_of_content(record.get(name))
        if text.strip():
            return turn_of(text_at(record, *_ROLE), text, time_at(record, *_TIME))
    return None


def messages_of(document: Any) -> list[Mapping[str, Any]]:
    """Return the messages of a whole document; none if it has none."""
    if isinstance(document, dict):
        inner = object_at(document, "session")
        document = document.get("messages", inner.get("messages"))
    if not isinstance(document, list):
        return []
    return [message for message in document if isinstance(message, dict) and is_record(message)]
