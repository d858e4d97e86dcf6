"""The rollout files of Codex: one JSON object a line, below ``~/.codex/sessions``.

Today each line has a ``timestamp``, a ``type`` and a ``payload``; messages are the payloads of ``response_item`` with
the type ``message``. Earlier releases wrote these payloads as lines of their own. The events ``user_message`` and
``agent_message`` repeat the messages, and count only in a file without them. The calls of tools are left out, but for
the questions of ``request_user_input`` with their answers; so is the file of a subagent, whose user is another agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from signet_actors.domain.transcripts.answers import exchanges_of, turns_of
from signet_actors.domain.transcripts.json_values import decode_json_text, object_at, text_at, text_of_content, time_at
from signet_actors.domain.transcripts.turns import Turn, turn_of

_ENVELOPES: Final = frozenset({"session_meta", "response_item", "event_msg", "turn_context", "compacted"})
_QUESTIONS: Final = "request_user_input"
_NOTE: Final = "user_note: "
"""What a person typed, beside the label that they chose."""
_OTHER: Final = "None of the above"
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


def answers(record: Mapping[str, Any], asked: dict[str, Any]) -> list[Turn]:
    """Return the answers of a person in the record, with the questions that ``asked`` has by the ids of their calls."""
    payload = object_at(record, "payload") if "payload" in record else record
    call = text_at(payload, "call_id") or ""
    if text_at(payload, "type") == "function_call" and text_at(payload, "name") == _QUESTIONS:
        asked[call] = _decoded(payload.get("arguments")).get("questions")
    if text_at(payload, "type") != "function_call_output" or call not in asked:
        return []
    output = payload.get("output")
    output = _decoded(output.get("content") if isinstance(output, dict) else output)
    said = object_at(output, "answers")

    def answer_to(_: int, question: Mapping[str, Any]) -> list[str]:
        listed = object_at(said, text_at(question, "id") or "").get("answers")
        texts = [text for text in listed if isinstance(text, str)] if isinstance(listed, list) else []
        is_typed = any(text.startswith(_NOTE) for text in texts)
        return [text.removeprefix(_NOTE) for text in texts if not (is_typed and text == _OTHER)]

    return turns_of(exchanges_of(asked.pop(call), answer_to), time_at(record, "timestamp"))


def _decoded(text: Any) -> Mapping[str, Any]:
    found = decode_json_text(text.encode("utf-8", "replace")) if isinstance(text, str) else text
    return found if isinstance(found, dict) else {}


def event_turn(record: Mapping[str, Any]) -> Turn | None:
    """Return the turn that an event repeats, or None if it is none."""
    payload = object_at(record, "payload")
    role = _EVENTS.get(text_at(payload, "type") or "") if text_at(record, "type") == "event_msg" else None
    return None if role is None else turn_of(role, text_at(payload, "message") or "", time_at(record, "timestamp"))
