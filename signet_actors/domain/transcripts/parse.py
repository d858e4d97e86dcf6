"""Read a transcript of any format as turns: detect the format, skip what cannot be read, lose nothing that was said.

A transcript of JSON lines is read line by line, and each line counts for the format that it has. The last line may be
half written; it is left to the next capture. A transcript of no known format is one turn with all of its text.

Source: docs/compatibility.md "Hooks and sessions"; docs/guides/transcripts.md "Formats".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from signet_actors.domain.normalization import BYTE_ORDER_MARK, sanitize_text
from signet_actors.domain.transcripts import claude_code, codex, cursor, dialogue, gemini, json_messages, opencode, qwen
from signet_actors.domain.transcripts.json_values import decode_json_text, object_at, text_at
from signet_actors.domain.transcripts.turns import (
    MAX_LINES,
    MAX_TEXT_CHARS,
    Transcript,
    TranscriptFormat,
    TranscriptTooLong,
    Turn,
)

FIRST_LINES: Final = 50
"""So many lines are searched for the directory in which a session began."""
_CONTINUATION_BYTES: Final = bytes(range(0x80, 0xC0))
"""All bytes of a character in UTF-8 but its first one."""
_COUNTED_AT_ONCE: Final = 1 << 20
_NOT_BLANK: Final = re.compile(rb"\S")
_BLANK_AT_ONCE: Final = 1 << 20
"""Other threads wait for one search."""
_SAMPLE_LINES: Final = 50
_SHORT_LINES_AT_ONCE: Final = 64
_SHORT_LINE_BYTES: Final = 4096
_LONG_LINE_BYTES: Final = 1 << 16
_JSON_SHARE: Final = 0.6
"""A transcript is JSON lines if so many of its first lines are JSON objects (docs/compatibility.md)."""


class _LineFormat(NamedTuple):
    name: TranscriptFormat
    is_record: Callable[[Mapping[str, Any]], bool]
    session_of: Callable[[Mapping[str, Any]], str | None]
    turn: Callable[[Mapping[str, Any]], Turn | None]
    answers: Callable[[Mapping[str, Any], dict[str, Any]], list[Turn]] = lambda *_: []
    """What a person answered to a tool; the second argument keeps the questions until then."""


_LINE_FORMATS: Final = (
    _LineFormat("qwen", qwen.is_record, qwen.session_of, qwen.turn, lambda record, _: qwen.answers(record)),
    _LineFormat(
        "claude-code",
        claude_code.is_record,
        claude_code.session_of,
        claude_code.turn,
        lambda record, _: claude_code.answers(record),
    ),
    _LineFormat("codex", codex.is_record, codex.session_of, codex.turn, codex.answers),
    _LineFormat("cursor", cursor.is_record, cursor.session_of, cursor.turn),
    _LineFormat("json", json_messages.is_record, json_messages.session_of, json_messages.turn),
)


def first_directory(lines: Iterable[bytes]) -> str | None:
    """Return the directory that the first lines of a transcript name, None if they name none."""
    for record in map(decode_json_text, lines):
        if isinstance(record, dict):
            directory = text_at(record, "cwd") or text_at(object_at(record, "payload"), "cwd")
            if directory is not None:
                return directory
    return None


def parse_transcript(raw: bytes, make_way: Callable[[], None] = lambda: None) -> Transcript:
    """Return the turns of a transcript. ``make_way`` is called between two lines, so that other threads can run.

    Raises TranscriptTooLong.
    """
    if _is_json_lines(raw):
        found = _json_lines(raw, make_way)
        if found is not None:
            return found
    if raw.lstrip()[:1] in {b"{", b"["}:
        document = gemini.transcript(raw) or opencode.transcript(raw) or _json_document(raw)
        if document is not None:
            return document
    if not raw.strip():
        return Transcript("text")
    if _characters(raw) > MAX_TEXT_CHARS:  # before a copy of it is made, which may have four bytes for each
        raise TranscriptTooLong(f"{MAX_TEXT_CHARS} characters")
    text = sanitize_text(raw.decode("utf-8", "replace")).removeprefix(BYTE_ORDER_MARK)
    return dialogue.transcript(text, make_way) or _plain_text(text)


def _characters(raw: bytes) -> int:
    """Return the characters of a text in UTF-8."""
    parts = (raw[at : at + _COUNTED_AT_ONCE] for at in range(0, len(raw), _COUNTED_AT_ONCE))
    return sum(len(part.translate(None, _CONTINUATION_BYTES)) for part in parts)


def _plain_text(text: str) -> Transcript:
    text = text.strip("\r\n \t")
    found = Transcript("text")
    found.add(Turn("text", text) if text else None)
    return found


def _json_document(raw: bytes) -> Transcript | None:
    messages = json_messages.messages_of(decode_json_text(raw))
    if not messages:
        return None
    named = (json_messages.session_of(message) for message in messages)
    found = Transcript("json", session_key=next(filter(None, named), None))
    for message in messages:
        found.add(json_messages.turn(message), claude_code.id_of(message))
    return found


def _lines(raw: bytes) -> Iterator[tuple[bytes, bool]]:
    """Yield each line that is not blank, and whether a line end follows it. A run of blank lines takes no loop."""
    at = 3 if raw.startswith(b"\xef\xbb\xbf") else 0
    while at < len(raw):
        begin = _NOT_BLANK.search(raw, at, at + _BLANK_AT_ONCE)
        if begin is None:
            at += _BLANK_AT_ONCE
            continue
        end = raw.find(b"\n", begin.start())
        stop = len(raw) if end < 0 else end
        yield raw[begin.start() : stop].rstrip(), end >= 0
        at = stop + 1


def _is_json_lines(raw: bytes) -> bool:
    """Return True if most of the first lines are JSON objects."""
    lines = objects = 0
    for line, ended in _lines(raw):
        if not ended and lines:
            break
        lines += 1
        objects += _is_object(line)
        if lines >= _SAMPLE_LINES:
            break
    return lines > 0 and objects >= _JSON_SHARE * lines


def _is_object(line: bytes) -> bool:
    """Return True if the line is a JSON object. Of a long line only its ends are looked at."""
    if not (line.startswith(b"{") and line.endswith(b"}")):
        return False
    return len(line) > _LONG_LINE_BYTES or isinstance(decode_json_text(line), dict)


def _json_lines(raw: bytes, make_way: Callable[[], None]) -> Transcript | None:
    """Return the transcript of JSON lines, None if not a single one is a record of a known format.

    Raises TranscriptTooLong.
    """
    records: dict[TranscriptFormat, int] = {**dict.fromkeys((form.name for form in _LINE_FORMATS), 0), "gemini": 0}
    found = Transcript("json")
    events = Transcript("codex")
    session = gemini.Session()
    unknown = b""
    origin: str | None = None
    asked: dict[str, Any] = {}
    for number, (line, ended) in enumerate(_lines(raw), 1):
        if number > MAX_LINES:
            raise TranscriptTooLong(f"{MAX_LINES} lines")
        if line == unknown:
            continue
        if number % _SHORT_LINES_AT_ONCE == 0 or number < _SAMPLE_LINES or len(line) > _SHORT_LINE_BYTES:
            make_way()
        record = decode_json_text(line)
        if not isinstance(record, dict):
            found.unfinished = not ended
            found.skipped += ended
            continue
        if gemini.is_record(record):
            records["gemini"] += 1
            session.read(record)
            continue
        form = next((form for form in _LINE_FORMATS if form.is_record(record)), None)
        if form is None:
            unknown = line
            continue
        records[form.name] += 1
        found.session_key = found.session_key or form.session_of(record)
        is_codex = form.name == "codex"
        if is_codex and origin is None and codex.is_of_subagent(record):  # a fork repeats the record of its origin
            return Transcript("codex", session_key=found.session_key)
        origin = origin or (codex.origin_of(record) if is_codex else None)
        name = origin if is_codex else claude_code.id_of(record)
        turn = form.turn(record)
        answers = form.answers(record, asked)
        for at, said in enumerate((*answers, turn)):
            suffix = f"\0{len(found.turns)}" if is_codex else f"/{at}" if at < len(answers) else ""
            found.add(said, None if name is None else f"{name}{suffix}")
        if turn is None and is_codex:
            events.add(codex.event_turn(record))
    if not any(records.values()):
        return None
    found.format = max(records, key=records.__getitem__)
    if not found.turns:
        found.turns, found.ids = events.turns, events.ids
    if records["gemini"]:
        found.session_key, found.losses = found.session_key or session.key, session.losses
        for turn in session.turns():
            found.add(turn)
    return found
