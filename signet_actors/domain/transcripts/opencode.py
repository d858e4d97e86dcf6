"""The export of OpenCode: one JSON document with the session and its messages (``opencode export``).

A message has an ``info`` with its role and time, and ``parts``; those of the type ``text`` are what was said, unless
they are marked as synthetic (added by the program) or ignored. What a person answered to a tool stands in its part.
Reasoning, what tools returned and the summary of a compaction, which an event reports, are left out.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from signet_actors.domain.json_bounds import has_too_many_values
from signet_actors.domain.transcripts.answers import Exchange, exchanges_of, turns_of
from signet_actors.domain.transcripts.json_values import MAX_JSON_BYTES, decode_json_text, object_at, text_at, time_at
from signet_actors.domain.transcripts.turns import Transcript, TranscriptTooLong, turn_of

_MAX_VALUES: Final = 250_000
"""Values of an export, with those of tools: a message with ten parts has some 200. As many parts take 20 MB."""
OWN_TITLE: Final = "signet"
OWN_DIRECTORY: Final = "signet-cli-"
"""OpenCode keeps a session for each prompt with which the daemon asks it for its model: of this title, in a directory
whose name begins so."""
_OWN_NAME: Final = re.compile(rf"(?:.*[\\/])?{OWN_DIRECTORY}[a-z0-9_]{{8}}", re.DOTALL)
_QUESTIONS: Final = "question"
_FEEDBACK: Final = b"with the following feedback: "
_REFUSED: Final = re.compile(
    rf"The user rejected permission to use this specific tool call {_FEEDBACK.decode()}([\s\S]*)"
)


class _Time(Struct):
    created: float | None = None


class _Info(Struct):
    id: str | None = None
    role: str | None = None
    session_id: str | None = field(name="sessionID", default=None)
    time: _Time = field(default_factory=_Time)
    summary: Any = None
    """True in an answer that is the summary of a compaction; in a prompt, what it changed."""


class _Part(Struct):
    type: str
    text: str | None = None
    synthetic: bool | None = None
    ignored: bool | None = None
    tool: str | None = None
    state: msgspec.Raw = msgspec.Raw(b"{}")


class _Message(Struct):
    info: _Info
    parts: list[_Part]


class _Export(Struct):
    info: _Info
    messages: list[_Message]


_decoder: Final = msgspec.json.Decoder(_Export)


def transcript(raw: bytes) -> Transcript | None:
    """Return the transcript, or None if this is no export of OpenCode. Raises TranscriptTooLong."""
    if len(raw) > MAX_JSON_BYTES or b'"parts"' not in raw:
        return None
    if has_too_many_values(raw, _MAX_VALUES):
        raise TranscriptTooLong(f"{_MAX_VALUES} values in JSON")
    try:
        export = _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None
    named = next((message.info.session_id for message in export.messages if message.info.session_id), None)
    found = Transcript("opencode", session_key=export.info.id or named)
    for message in export.messages:
        if message.info.summary is True:
            continue
        texts = [
            part.text
            for part in message.parts
            if part.type == "text" and part.text and not part.synthetic and not part.ignored
        ]
        said_at = time_at({"created": message.info.time.created}, "created")
        found.add(turn_of(message.info.role, "\n".join(texts), said_at))
        for part in message.parts:
            if part.tool == _QUESTIONS or _FEEDBACK in bytes(part.state):
                for turn in turns_of(exchanges_of_tool(part.tool, decode_json_text(bytes(part.state))), said_at):
                    found.add(turn)
    return found


def is_own(title: Any, directory: str | None) -> bool:
    """Return True if the daemon itself had the session."""
    return title == OWN_TITLE and _OWN_NAME.fullmatch(directory or "") is not None


def exchanges_of_tool(name: str | None, state: Any) -> list[Exchange]:
    """Return the questions that a tool asked with their answers, or what a person said when they refused it."""
    if name is None or not isinstance(state, dict):
        return []
    if text_at(state, "status") == "error":
        refused = _REFUSED.match(text_at(state, "error") or "")
        return [] if refused is None else [("", refused[1])]
    said = object_at(state, "metadata").get("answers") if name == _QUESTIONS else None
    listed: list[Any] = said if isinstance(said, list) else []
    questions = object_at(state, "input").get("questions")
    return exchanges_of(questions, lambda number, _: listed[number] if number < len(listed) else None)
