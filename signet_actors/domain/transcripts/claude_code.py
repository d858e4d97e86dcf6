"""The session files of Claude Code: one JSON object a line, below ``~/.claude/projects``.

The records of the conversation have the type ``user`` or ``assistant`` and a ``message``, whose content is a text or a
list of blocks. The results of tools stand in records of the user. What a person types while the agent works, and the
agent reads before it is done, is in an ``attachment`` alone, a ``queued_command``; what they answer to a tool, in its
result. Nothing is kept of what a subagent says, nor of what the program says on behalf of the user (records marked as
meta, or of another origin than a person) or of the model (errors of its API).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from signet_actors.domain.transcripts.answers import Exchange, exchanges_of, feedback_in, refused, turns_of
from signet_actors.domain.transcripts.json_values import object_at, text_at, text_of_content, time_at
from signet_actors.domain.transcripts.turns import Turn, turn_of

_OTHER_RECORDS: Final = frozenset({"summary", "file-history-snapshot", "queue-operation", "attachment", "progress"})


def is_record(record: Mapping[str, Any]) -> bool:
    """Return True if this is a line of a session file of Claude Code."""
    kind = text_at(record, "type")
    if kind in {"user", "assistant"}:
        return isinstance(record.get("message"), dict)
    return kind in _OTHER_RECORDS or (kind == "system" and "sessionId" in record)


def session_of(record: Mapping[str, Any]) -> str | None:
    """Return the session that the record names."""
    return text_at(record, "sessionId")


def id_of(record: Mapping[str, Any]) -> str | None:
    """Return the id of the record, or that of the record of which a fork has made it."""
    return text_at(object_at(record, "forkedFrom"), "messageUuid") or text_at(record, "uuid")


def turn(record: Mapping[str, Any]) -> Turn | None:
    """Return the turn of the record, or None if it is none."""
    kind = text_at(record, "type")
    if not _is_of_session(record):
        return None
    if kind == "attachment":
        queued = object_at(record, "attachment")
        text = text_of_content(queued.get("prompt")) if _is_typed(queued) else ""
        return turn_of("user", text, time_at(record, "timestamp"))
    if kind not in {"user", "assistant"}:
        return None
    message = object_at(record, "message")
    if record.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
        return None
    text = text_of_content(message.get("content"))
    is_handed_over = record.get("isCompactSummary") is True or text_at(record, "planContent") is not None
    role = "system" if is_handed_over else text_at(message, "role") or str(kind)
    return turn_of(role, text, time_at(record, "timestamp"))


def answers(record: Mapping[str, Any]) -> list[Turn]:
    """Return the answers of a person to the tool whose result is in the record, with the questions."""
    content = object_at(record, "message").get("content")
    if text_at(record, "type") != "user" or not isinstance(content, list) or not _is_of_session(record):
        return []
    found: list[Exchange] = []
    for block in content:
        if not isinstance(block, dict) or text_at(block, "type") != "tool_result":
            continue
        if block.get("is_error") is True:
            feedback = text_at(record, "userFeedback") or ""
            found += refused(text_of_content(block.get("content"))) or feedback_in(feedback)
        else:
            found += _answered(object_at(record, "toolUseResult"))
    return turns_of(found, time_at(record, "timestamp"))


def _answered(result: Mapping[str, Any]) -> list[Exchange]:
    """Return the questions of a tool with their answers, and what a person noted beside them."""
    said, notes = object_at(result, "answers"), object_at(result, "annotations")
    if "questions" not in result:
        return []
    return exchanges_of(
        [{"question": question} for question in {**said, **notes}],
        lambda _, asked: [said.get(asked["question"]), text_at(object_at(notes, asked["question"]), "notes")],
    )


def _is_of_session(record: Mapping[str, Any]) -> bool:
    """Return True unless the record is a subagent's, or the program wrote it for the user."""
    if record.get("isSidechain") is True or record.get("isMeta") is True or record.get("promptSource") == "system":
        return False
    return text_at({"kind": "human", **object_at(record, "origin")}, "kind") == "human"


def _is_typed(attachment: Mapping[str, Any]) -> bool:
    """Return True if this is a prompt that a person typed while the agent worked."""
    return (
        text_at(attachment, "type") == "queued_command"
        and attachment.get("commandMode", "prompt") == "prompt"
        and _is_of_session(attachment)
    )
