"""Plain text in which a turn begins with the name of who speaks: "User: ...", "Assistant: ...", also in Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from signet_actors.domain.transcripts.turns import MAX_LINES, Transcript, TranscriptTooLong, turn_of

_SPEAKERS: Final = {
    "user": "user",
    "human": "user",
    "you": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "agent": "assistant",
    "claude": "assistant",
    "codex": "assistant",
    "system": "system",
}
_LONGEST: Final = 24
"""Characters of the longest name with the Markdown around it."""
_MARKDOWN: Final = "#*_> \t"
_MAY_SPEAK: Final = re.compile(rf"^(?:[^\n:]{{0,{_LONGEST - 1}}}:|(?:#|\*\*)[^\n]{{0,{_LONGEST}}}$)", re.MULTILINE)
_LINES_AT_ONCE: Final = 1000
_SEARCHED_AT_ONCE: Final = 1 << 16


def transcript(text: str, make_way: Callable[[], None]) -> Transcript | None:
    """Return the transcript, or None unless the text begins with a speaker and the user speaks.

    Of a session that has just begun, there is no answer yet.

    Raises TranscriptTooLong.
    """
    first = text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1
    if speaker(text[first:].partition("\n")[0]) is None:
        return None
    found = Transcript("dialogue")
    role: str | None = None
    begin = 0
    for number, (start, end) in enumerate(_lines(text)):
        if number % _LINES_AT_ONCE == 0:
            make_way()
        if number > MAX_LINES:
            raise TranscriptTooLong(f"{MAX_LINES} lines")
        said = speaker(text[start:end])
        if said is None:
            continue
        if role is not None:
            found.add(turn_of(role, text[begin:start]))
        role, rest = said
        begin = end - len(rest)
    if role is not None:
        found.add(turn_of(role, text[begin:]))
    return found if any(turn.role == "user" for turn in found.turns) else None


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each line that may name a speaker. Other threads wait for a search in a part of it."""
    at = 0
    while at < len(text):
        stop = text.find("\n", at + _SEARCHED_AT_ONCE) + 1 or len(text)
        for line in _MAY_SPEAK.finditer(text, at, stop):
            end = text.find("\n", line.start())
            yield line.start(), len(text) if end < 0 else end
        at = stop


def speaker(line: str) -> tuple[str, str] | None:
    """Return the role of the speaker that the line begins with, and the rest of the line; None if there is none."""
    at = line.find(":", 0, _LONGEST)
    heading = at < 0
    if heading and (len(line) > _LONGEST or not line.startswith(("#", "**"))):
        return None
    name = (line if heading else line[:at]).strip(_MARKDOWN + "\r").lower()
    role = _SPEAKERS.get(name)
    return None if role is None else (role, "" if heading else line[at + 1 :].lstrip("*_ \t"))
