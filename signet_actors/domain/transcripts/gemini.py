"""The session files of Gemini CLI, below ``~/.gemini/tmp/<project>/chats``: JSON lines, or one JSON document before.

A record of the conversation has an ``id``, a ``type`` and a ``content`` in the form of the model's API: a text, a part,
or a list of parts. Calls of tools, their results and thoughts stand beside it or in parts of their own. A record is
written again when it changed; what the model has is written as a whole (``$set``) when that changed, and ``$rewindTo``
takes back what follows. Nothing that was said is taken back here. What a person answered to a tool is in its call, in a
later form of the record.

Source: packages/core/src/services/chatRecordingService.ts of google-gemini/gemini-cli.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from signet_actors.domain.json_bounds import has_too_many_values
from signet_actors.domain.transcripts.answers import Exchange, exchanges_of, turns_of
from signet_actors.domain.transcripts.json_values import MAX_JSON_BYTES, decode_json_text, object_at, text_at, time_at
from signet_actors.domain.transcripts.turns import Transcript, TranscriptTooLong, Turn, turn_of

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_MAX_VALUES: Final = 250_000
"""Values of a document, with those of tools."""
_HEAD_BYTES: Final = 4096
"""A session is described at the beginning of its document."""
_ROLES: Final = {"user": "user", "gemini": "assistant"}
_TYPES: Final = frozenset({*_ROLES, "info", "warning", "error"})
_SNAPSHOT: Final = re.compile(r"\s*(?:<(scratchpad|analysis)>[\s\S]*?</\1>\s*)?(?:```(?:xml)?\s*)?(?=<state_snapshot>)")
"""What a model writes before the summary of a compression."""
_TAG: Final = "<state_snapshot>"
_TAKEN: Final = "Got it. Thanks for the additional context!"
"""What the program has the model say to a summary, whatever the model put before that."""
_QUESTIONS: Final = "ask_user"
_PLAN: Final = "exit_plan_mode"
_PLAN_REFUSED: Final = re.compile(r"Plan rejected\. User feedback: ([\s\S]*?)(?:\n\nThe plan is stored at: |\Z)")
_COMMAND: Final = re.compile(r"\s*(?:![^\s!]|/[a-z][\w:-]*\s*\Z)")
"""A command of the shell, and one of the program without words."""


class Session:
    """What the records of a session say, read one by one.

    ``losses``: how often the model lost a part of the conversation: it was compressed, rewound or broken off.
    """

    def __init__(self) -> None:
        self.key: str | None = None
        self.losses = 0
        self._said: dict[str, Turn] = {}
        """By the id of the record, in the form in which it came first."""
        self._copies: set[str] = set()
        self._new: set[str] = set()
        """Records since what the model has was last written."""
        self._history: dict[str, None] = {}
        """What the model has."""
        self._before: dict[str, None] | None = None
        """What the model had before the program was started again: it writes its history anew, piece by piece."""

    def read(self, record: Mapping[str, Any]) -> None:
        """Read the next record."""
        rewound = text_at(record, "$rewindTo")
        if rewound is not None:
            self._rewind(rewound)
        elif "id" in record:
            if self._before is not None:
                self.losses += any(self._lost(self._before).values())
                self._before = None
            self._say(record)
        else:
            if "startTime" in record and self._history and self._before is None:
                self._before = self._history
            about = object_at(record, "$set") or record
            self.key = text_at(about, "sessionId") or self.key
            messages = about.get("messages")
            if isinstance(messages, list):
                self._replace([message for message in messages if isinstance(message, dict)])

    def turns(self) -> Iterator[Turn]:
        """Yield the turns."""
        return (turn for name, turn in self._said.items() if name not in self._copies)

    def _say(self, record: Mapping[str, Any]) -> None:
        """Note the record, which the model has, and what it says."""
        name = text_at(record, "id")
        if name is None:
            return
        if text_at(record, "type") == "gemini" and _text(record.get("content")) == _TAKEN:
            self._take(next(reversed(self._history), ""))
        self._history[name] = None
        turn = None if name in self._said else _turn(record)
        if turn is not None:
            self._said[name] = turn
            self._new.add(name)
        self._said.update(_answers(record, self._said))

    def _take(self, name: str) -> None:
        """Note that this was a summary, if it has one."""
        turn = self._said.get(name)
        if turn is not None and turn.role == "user" and _TAG in turn.text:
            self._said[name] = turn._replace(role="system", text=turn.text[turn.text.index(_TAG) :])

    def _rewind(self, to: str) -> None:
        """Note that the model no longer has this record and what follows it; it has nothing left if it never had it."""
        self.losses += bool(self._history)
        while self._history and self._history.popitem()[0] != to:
            pass

    def _replace(self, messages: list[Mapping[str, Any]]) -> None:
        """Note what the model has from now on.

        A new record that says the same as one that it no longer has is that one under another id.
        """
        before, self._history = self._before or self._history, {}
        for message in messages:
            self._say(message)
        lost = self._lost(before)
        for name in self._history:
            if name in self._new and lost[self._said[name][:2]]:
                lost[self._said[name][:2]] -= 1
                self._copies.add(name)
        self._new.clear()
        if self._before is None:
            self.losses += any(lost.values())

    def _lost(self, before: Iterable[str]) -> Counter[tuple[str, str]]:
        """Return what was said in the records that the model had ``before`` and has no longer."""
        return Counter(self._said[name][:2] for name in before if name in self._said and name not in self._history)


def is_record(record: Mapping[str, Any]) -> bool:
    """Return True if this is a line of a session file of Gemini CLI."""
    if text_at(record, "type") in _TYPES and "content" in record and "role" not in record:
        return text_at(record, "id") is not None and text_at(record, "timestamp") is not None
    return "$set" in record or "$rewindTo" in record or _describes_session(record)


def transcript(raw: bytes) -> Transcript | None:
    """Return the transcript of a session in one document, None if this is none. Raises TranscriptTooLong."""
    head = raw[:_HEAD_BYTES]
    if b'"sessionId"' not in head or b'"projectHash"' not in head:
        return None
    if len(raw) > MAX_JSON_BYTES:
        raise TranscriptTooLong(f"{MAX_JSON_BYTES} bytes in one JSON document")
    if has_too_many_values(raw, _MAX_VALUES):
        raise TranscriptTooLong(f"{_MAX_VALUES} values in JSON")
    session = Session()
    try:
        document = _decoder.decode(raw.removeprefix(_BYTE_ORDER_MARK))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return Transcript("gemini", unfinished=True)  # it is being written
    session.read(msgspec.to_builtins(document))
    found = Transcript("gemini", session_key=session.key, losses=session.losses)
    for turn in session.turns():
        found.add(turn)
    return found


def session_of(raw: bytes) -> str | None:
    """Return the session that a document, or the first line of a file, describes; None if it is that of a subagent."""
    try:
        found = _description.decode(raw.removeprefix(_BYTE_ORDER_MARK))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None
    return None if found.kind == "subagent" else found.session_id.strip() or None


class _Description(Struct, rename="camel"):
    session_id: str
    project_hash: str
    kind: str | None = None


class _Call(Struct):
    id: Any = None
    name: Any = None
    args: Any = None
    result: Any = None


class _Message(Struct, omit_defaults=True, rename="camel"):
    """A record of a document."""

    id: str | None = None
    type: str | None = None
    timestamp: str | None = None
    content: Any = None
    tool_calls: list[_Call] | None = None


class _Document(Struct, rename="camel"):
    session_id: str
    messages: list[_Message] = msgspec.field(default_factory=list)


_description: Final = msgspec.json.Decoder(_Description)
_decoder: Final = msgspec.json.Decoder(_Document)


def _describes_session(record: Mapping[str, Any]) -> bool:
    return text_at(record, "sessionId") is not None and text_at(record, "projectHash") is not None


def _turn(record: Mapping[str, Any]) -> Turn | None:
    """Return what the user or the agent said in the record, None if that is nothing."""
    role = _ROLES.get(text_at(record, "type") or "")
    text = _text(record.get("content"))
    if role is None or text is None:
        return None
    said_at = time_at(record, "timestamp")
    snapshot = _SNAPSHOT.match(text) if role == "user" else None
    if snapshot is not None:
        return turn_of("system", text[snapshot.end() :], said_at)
    return None if role == "user" and _COMMAND.match(text) else turn_of(role, text, said_at)


def _answers(record: Mapping[str, Any], known: Mapping[str, Turn]) -> dict[str, Turn]:
    """Return what a person answered to the tools that the record calls, by names that no record has.

    The record may be that of an earlier history under another id; the calls keep theirs.
    """
    found: dict[str, Turn] = {}
    calls = record.get("toolCalls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and f"{call.get('id')}\0" not in known:
            turns = turns_of(_exchanges(call), time_at(call, "timestamp") or time_at(record, "timestamp"))
            found.update((f"{call.get('id')}\0{number or ''}", turn) for number, turn in enumerate(turns))
    return found


def _exchanges(call: Mapping[str, Any]) -> list[Exchange]:
    """Return the questions that the call of a tool asked with their answers, or why its plan was refused."""
    name, parts = text_at(call, "name"), call.get("result")
    if name not in {_QUESTIONS, _PLAN} or not isinstance(parts, list):
        return []
    responses = [object_at(part, "functionResponse") for part in parts if isinstance(part, dict)]
    output = "".join(text_at(object_at(each, "response"), "output") or "" for each in responses)
    if name == _PLAN:
        refused = _PLAN_REFUSED.match(output)
        return [] if refused is None else [("", refused[1])]
    decoded = decode_json_text(output.encode("utf-8", "replace"))
    said = object_at(decoded, "answers") if isinstance(decoded, dict) else {}
    return exchanges_of(object_at(call, "args").get("questions"), lambda number, _: said.get(str(number)))


def _text(content: Any) -> str | None:
    """Return the text of a content, without thoughts; None for results of tools, with what stands beside them."""
    texts = []
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            if "functionResponse" in part:
                return None
            text = part.get("text")
            if isinstance(text, str) and part.get("thought") is not True:
                texts.append(text)
    return "".join(texts)
