"""The rollout files of Codex: one JSON object a line, below ``~/.codex/sessions``.

Today each line has a ``timestamp``, a ``type`` and a ``payload``; messages are the payloads of ``response_item`` with
the type ``message``. Earlier releases wrote these payloads as lines of their own. The events ``user_message`` and
``agent_message`` repeat the messages, and count only in a file without them. The calls of tools are left out, and so is
the whole file of a subagent, whose user is another agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from signet_actors.domain.transcripts.json_values import object_at, text_at, text_of_content, time_at
from signet_actors.domain.transcripts.turns import Turn, turn_of

_ENVELOPES: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_EVENTS: Final = {"user_message": "user", "agent_message": "assistant"}


def is_record(record: Mapping[str, Any]) -> bool:
    """Return True if this is a line of a rollout file of Codex, of this or an earlier form."""
    if isinstance(record.get("payload"), dict):
        return text_at(record, "type") in _ENVELOPES
    return (text_at(record, "type") == "message" and "role" in record) or "record_type" in record


def session_of(record: Mapping[str, Any]) -> str | None:
    """Return the session that the record names."""
    if text_at(record, "type") != "session_meta":
        return None
    return text_at(object_at(record, "payload"), "id", "session_id")


def origin_of(record: Mapping[str, Any]) -> str | None:
    """Return the session whose turns this one begins with: the one that was forked, or itself."""
    if text_at(record, "type") != "session_meta":
        return None
    return text_at(object_at(record, "payload"), "forked_from_id", "id", "session_id")


def is_of_subagent(record: Mapping[str, Any]) -> bool:
    """Return True if the record says that a subagent, or the program for itself, had the session."""
    payload = object_at(record, "payload") if text_at(record, "type") == "session_meta" else {}
    source = object_at(payload, "source")
    return "subagent" in source or "internal" in source or payload.get("thread_source") == "subagent"


def turn(record: Mapping[str, Any]) -> Turn | None:
    """Return the turn of the record, or None if it is none."""
    payload = object_at(record, "payload") if "payload" in record else record
    said_at = time_at(record, "timestamp")
    if text_at(record, "type") == "compacted":
        return turn_of("system", text_at(payload, "message") or "", said_at)
    if text_at(payload, "type") != "message" or text_at(record, "type") not in {"message", "response_item"}:
        return None
    role = text_at(payload, "role")
    return None if role in {"system", "developer"} else turn_of(role, text_of_content(payload.get("content")), said_at)


def event_turn(record: Mapping[str, Any]) -> Turn | None:
    """Return the turn that an event repeats, or None if it is none."""
    payload = object_at(record, "payload")
    role = _EVENTS.get(text_at(payload, "type") or "") if text_at(record, "type") == "event_msg" else None
    return None if role is None else turn_of(role, text_at(payload, "message") or "", time_at(record, "timestamp"))
