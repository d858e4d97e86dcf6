"""The export of OpenCode: one JSON document with the session and its messages (``opencode export``).

A message has an ``info`` with its role and time, and ``parts``; those of the type ``text`` are what was said, unless
they are marked as synthetic (added by the program) or ignored. Reasoning and tools are left out.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct, field

from signet_actors.domain.transcripts.json_values import MAX_JSON_BYTES, time_at
from signet_actors.domain.transcripts.turns import Transcript, turn_of


class _Time(Struct):
    created: float | None = None


class _Info(Struct):
    id: str | None = None
    role: str | None = None
    session_id: str | None = field(name="sessionID", default=None)
    time: _Time = field(default_factory=_Time)


class _Part(Struct):
    type: str
    text: str | None = None
    synthetic: bool | None = None
    ignored: bool | None = None


class _Message(Struct):
    info: _Info
    parts: list[_Part]


class _Export(Struct):
    info: _Info
    messages: list[_Message]


_decoder: Final = msgspec.json.Decoder(_Export)


def transcript(raw: bytes) -> Transcript | None:
    """Return the transcript, or None if this is no export of OpenCode."""
    if len(raw) > MAX_JSON_BYTES or b'"parts"' not in raw:
        return None
    try:
        export = _decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None
    named = next((message.info.session_id for message in export.messages if message.info.session_id), None)
    found = Transcript("opencode", session_key=export.info.id or named)
    for message in export.messages:
        texts = [
            part.text
            for part in message.parts
            if part.type == "text" and part.text and not part.synthetic and not part.ignored
        ]
        turn = turn_of(message.info.role, "\n".join(texts), time_at({"created": message.info.time.created}, "created"))
        if turn is not None:
            found.turns.append(turn)
    return found
