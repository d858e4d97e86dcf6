"""The files ``conversations.json`` of a data export of Claude or of ChatGPT: lists of conversations.

A large export of ChatGPT has several: ``conversations-000.json`` and so on. Of a conversation of ChatGPT, which is a
tree, only the branch that was shown last is kept. A list is read twice, one conversation at a time: once for what there
is, and when a session is sent. The title of a conversation is its first message, of the role ``system``.

Source: docs/guides/backfill.md; RFC 8259.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

from signet_actors.cli.importers.source import NotThisFormat
from signet_actors.cli.past_sessions.line_files import Message, PastSession, Unreadable
from signet_actors.config.regular_file import open_regular
from signet_actors.domain.timestamps import epoch_ms
from signet_actors.domain.transcripts.json_values import object_at, text_at, text_of_content, time_at
from signet_actors.errors import ConfigError

WANTED: Final = "give the file conversations.json of a data export of Claude or ChatGPT, unpacked, or its directory"
_NAMES: Final = ("conversations.json", "conversations-*.json")
_ARCHIVE: Final = b"PK\x03\x04"
_LONGEST_BRANCH: Final = 100_000


def sessions(path: Path) -> Iterator[PastSession]:
    """Yield the conversations of the file, or of those in the directory; raise NotThisFormat if it is no export."""
    files = sorted(file for name in _NAMES for file in path.glob(name)) if path.is_dir() else [path]
    if not files:
        raise NotThisFormat(f"{path} has no conversations.json; {WANTED}")
    for file in files:
        yield from _sessions_of(file)


def _sessions_of(path: Path) -> Iterator[PastSession]:
    number = 0
    try:
        with _opened(path) as file:
            for number, element in enumerate(elements(file), 1):  # noqa: B007 - used below
                session = _session(path, element)
                if session is not None:
                    yield session
    except (ConfigError, OSError) as error:
        why = error.detail if isinstance(error, ConfigError) else f"cannot read {path}: {error.strerror}"
        raise NotThisFormat(f"{why}; {WANTED}") from error
    except (ValueError, RecursionError) as error:
        damaged = f"cannot be read after conversation {number}: it is cut off or damaged"
        why = damaged if number else "is no list in JSON"
        raise NotThisFormat(f"{path} {why}; {WANTED}") from error


def _opened(path: Path) -> BinaryIO:
    """Return the open file. Raises ConfigError, NotThisFormat and OSError."""
    file = os.fdopen(open_regular(path, os.O_RDONLY, follow=True, advice=""), "rb")
    if file.read(len(_ARCHIVE)) == _ARCHIVE:
        file.close()
        raise NotThisFormat(f"{path} is a ZIP archive; unpack it, and {WANTED}")
    file.seek(0)
    return file


def _session(path: Path, element: Element) -> PastSession | None:
    """Return the conversation as a session without its messages, or None if nothing was said."""
    conversation = element.value
    if not isinstance(conversation, dict) or _source(conversation) is None:
        raise NotThisFormat(f"{path} has an entry that is no conversation; {WANTED}")
    key = _key(conversation)
    if key is None:
        raise NotThisFormat(f"{path} has a conversation without a name of its own; {WANTED}")
    said = _messages(conversation)
    if not said:
        return None
    size = sum(len(message["content"]) for message in said)
    updated = time_at(conversation, "updated_at", "update_time", "created_at", "create_time")
    modified_ms = 0 if updated is None else epoch_ms(updated) or 0
    read = partial(_read_messages, path, element.place, element.length, key)
    return PastSession(str(_source(conversation)), key, size, modified_ms, read)


def _read_messages(path: Path, place: int, length: int, key: str) -> list[Message]:
    """Return the messages of the conversation at this place of the file. Raises Unreadable."""
    try:
        with _opened(path) as file:
            file.seek(place)
            conversation = json.loads(file.read(length))
    except (ConfigError, NotThisFormat, OSError, ValueError, RecursionError):
        conversation = None
    if not isinstance(conversation, dict) or _source(conversation) is None or _key(conversation) != key:
        raise Unreadable(f"{path} has changed since it was read; run the command again")
    return _messages(conversation)


def _source(conversation: Mapping[str, Any]) -> str | None:
    """Return where the conversation comes from, or None if it is none."""
    if isinstance(conversation.get("chat_messages"), list):
        return "claude"
    return "chatgpt" if isinstance(conversation.get("mapping"), dict) else None


def _key(conversation: Mapping[str, Any]) -> str | None:
    return text_at(conversation, "uuid", "conversation_id", "id")


def _messages(conversation: Mapping[str, Any]) -> list[Message]:
    """Return the title and what was said; nothing if nothing was said."""
    said = _said_to_claude(conversation) if _source(conversation) == "claude" else _said_to_chatgpt(conversation)
    title = text_at(conversation, "name", "title")
    if not said or title is None:
        return said
    began = time_at(conversation, "created_at", "create_time")
    return [{"role": "system", "content": f"Title: {title.strip()}", "timestamp": began}, *said]


def _said_to_claude(conversation: Mapping[str, Any]) -> list[Message]:
    found = []
    for message in conversation["chat_messages"]:
        if isinstance(message, dict):
            text = text_of_content(message.get("content")) or text_at(message, "text") or ""
            found.append(_message(text_at(message, "sender"), text, time_at(message, "created_at")))
    return [message for message in found if message is not None]


def _said_to_chatgpt(conversation: Mapping[str, Any]) -> list[Message]:
    nodes = conversation["mapping"]
    name = conversation.get("current_node") or next(
        (name for name in reversed(nodes) if not object_at(nodes, name).get("children")), None
    )
    branch: list[Message] = []
    seen: set[str] = set()
    while isinstance(name, str) and name not in seen and len(seen) < _LONGEST_BRANCH:
        seen.add(name)
        node = object_at(nodes, name)
        said = _chatgpt_message(object_at(node, "message"))
        if said is not None:
            branch.append(said)
        name = node.get("parent")
    return branch[::-1]


def _chatgpt_message(message: Mapping[str, Any]) -> Message | None:
    """Return what was said, or None for what the program added, calls of tools, and what they returned."""
    content, metadata = object_at(message, "content"), object_at(message, "metadata")
    if metadata.get("is_visually_hidden_from_conversation") or message.get("recipient", "all") != "all":
        return None
    if content.get("content_type") not in {"text", "multimodal_text"} or not isinstance(content.get("parts"), list):
        return None
    role = text_at(object_at(message, "author"), "role")
    text = "\n".join(part for part in content["parts"] if isinstance(part, str) and part.strip())
    return _message(role, text, time_at(message, "create_time"))


def _message(role: str | None, text: str, said_at: str | None) -> Message | None:
    if role not in {"human", "user", "assistant"} or not text.strip():
        return None
    return {"role": role, "content": text, "timestamp": said_at}


READ_BYTES: Final = 1 << 20
LONGEST_CHARS: Final = 64 << 20
"""A longer element is not read."""
_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()


class Element(NamedTuple):
    """An element, and where it is in the file, in bytes."""

    value: Any
    place: int
    length: int


def elements(file: BinaryIO) -> Iterator[Element]:
    """Yield the elements of the array that the file contains; raise ValueError or RecursionError at what is none."""
    text = _Text(file)
    text.take("[")
    if text.next() == "]":
        return
    while True:
        yield text.element()
        if text.next() == "]":
            return
        text.take(",")


class _Text:
    """The text of the file from ``place`` on, of which only a part is read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._text = ""
        self._at = 0
        self._place = len(codecs.BOM_UTF8)
        if file.read(self._place) != codecs.BOM_UTF8:
            file.seek(0)
            self._place = 0

    def next(self) -> str:
        """Skip blanks, and return the next character; empty at the end of the file."""
        while True:
            blanks = _BLANKS.match(self._text, self._at)
            assert blanks is not None
            self._advance(blanks.end())
            if self._at < len(self._text) or not self._read():
                return self._text[self._at : self._at + 1]

    def take(self, wanted: str) -> None:
        """Skip this character; raise ValueError if another one is next."""
        if self.next() != wanted:
            raise ValueError(wanted)
        self._advance(self._at + 1)

    def element(self) -> Element:
        """Return the next value; what is cut off is read again, each time with twice as much. Raises ValueError."""
        self.next()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
                break
            except json.JSONDecodeError:
                if len(self._text) - self._at > LONGEST_CHARS or not self._read():
                    raise
        place = self._place
        self._advance(end)
        return Element(value, place, self._place - place)

    def _advance(self, to: int) -> None:
        self._place += len(self._text[self._at : to].encode())
        self._at = to

    def _read(self) -> bool:
        raw = self._file.read(max(READ_BYTES, len(self._text) - self._at))
        self._text = self._text[self._at :] + self._decoder.decode(raw, final=not raw)
        self._at = 0
        return bool(raw)
