"""The session files of Qwen Code: one JSON object a line, below ``~/.qwen/projects/<project>/chats``.

A record is like one of Claude Code, but its ``message`` has ``parts`` in the form of Gemini's API. Calls of tools and
their results are parts or records of their own; of these, answers to questions are kept. Releases before that wrote
the files of Gemini CLI.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from signet_actors.domain.transcripts.answers import exchanges_of, turns_of
from signet_actors.domain.transcripts.json_values import object_at, text_at, text_of_content, time_at
from signet_actors.domain.transcripts.turns import Turn, turn_of

_SAID_MEANWHILE: Final = "mid_turn_user_message"
"""What the user says while the agent works; records of the user with any other subtype are the program's."""

_ANSWERS: Final = "User has provided the following answers:\n\n"
_NO_ANSWERS: Final = "No valid answers were provided."


def is_record(record: Mapping[str, Any]) -> bool:
    """Return True if this is a line of a session file of Qwen Code."""
    kind = text_at(record, "type")
    if kind == "system":
        return "systemPayload" in record
    return kind in {"user", "assistant", "tool_result"} and isinstance(object_at(record, "message").get("parts"), list)


def session_of(record: Mapping[str, Any]) -> str | None:
    """Return the session that the record names."""
    return text_at(record, "sessionId")


def turn(record: Mapping[str, Any]) -> Turn | None:
    """Return the turn of the record, or None if it is none."""
    kind = text_at(record, "type")
    if kind not in {"user", "assistant"} or _is_of_subagent(record):
        return None
    if kind == "user" and text_at(record, "subtype") not in {None, _SAID_MEANWHILE}:
        return None
    return turn_of(kind, text_of_content(object_at(record, "message")), time_at(record, "timestamp"))


def answers(record: Mapping[str, Any]) -> list[Turn]:
    """Return the answers of a person that are the result of a tool in the record, with the questions."""
    if text_at(record, "type") != "tool_result" or _is_of_subagent(record):
        return []
    display = object_at(record, "toolCallResult").get("resultDisplay")
    found = []
    if isinstance(display, dict) and text_at(display, "type") == "ask_user_question_answers":
        found = exchanges_of(display.get("answers"), lambda _, asked: asked.get("answer"))
    elif isinstance(display, str) and display.startswith(_ANSWERS) and _NO_ANSWERS not in display:
        found = [("", display.removeprefix(_ANSWERS))]
    return turns_of(found, time_at(record, "timestamp"))


def _is_of_subagent(record: Mapping[str, Any]) -> bool:
    return record.get("isSidechain") is True or "agentId" in record
