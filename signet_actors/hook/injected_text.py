"""Fit the daemon's text into what a harness takes: the parts that matter least are cut first.

A harness cuts a longer text at any place, or hides it in a file. The daemon already keeps to the limit that the request
names, so this acts only on the answer of another release.

Source: docs/guides/claude-code.md "What your agent sees".
"""

from __future__ import annotations

CUT_NOTE = "[shortened: this program takes no longer text]"

_SECTIONS = (
    ("[memory active", 0),
    ("# Current Date", 0),
    ("## Active Constraints", 1),
    ("## Session Recovery Context", 2),
    ("## From Memory: Last Session", 2),
    ("## From Memory: ", 3),
    ("## Relevant Memories", 3),
    ("## Relevant Entity Context", 3),
    ("[since last session", 4),
    ("## Working Memory", 5),
    ("## Active Peer Sessions", 6),
    ("## Signet Status", 6),
    ("## Available Secrets", 6),
    ("## Plugin Context", 6),
    ("## Agent Instructions", 7),
    ("## Soul", 8),
    ("## Identity", 8),
    ("## About Your User", 8),
)
"""How each section of an injected text begins, and its rank: what has the lowest rank is kept longest."""
_UNKNOWN_RANK = 6


def fitted(text: str, limit: int, *, count_bytes: bool) -> str:
    """Return the text with at most ``limit`` UTF-8 bytes, or UTF-16 units; its sections stay in their order."""

    def size(part: str) -> int:
        return len(part.encode("utf-8" if count_bytes else "utf-16-le", "replace")) // (1 if count_bytes else 2)

    if size(text) <= limit:
        return text
    sections = _split(text)
    room = limit - size(CUT_NOTE)
    kept: dict[int, str] = {}
    for place in sorted(range(len(sections)), key=lambda place: sections[place][0]):
        section = sections[place][1]
        if size(section) > room:
            kept[place] = _whole_lines(section, room, size)
            break
        kept[place] = section
        room -= size(section)
    return "".join(kept[place] for place in sorted(kept)) + CUT_NOTE


def _split(text: str) -> list[tuple[int, str]]:
    """Return the sections with their ranks. An unknown heading belongs to the section that it stands in."""
    sections: list[tuple[int, list[str]]] = []
    for line in text.splitlines(keepends=True):
        rank = next((rank for begin, rank in _SECTIONS if line.startswith(begin)), None)
        if rank is not None or not sections:
            sections.append((_UNKNOWN_RANK if rank is None else rank, []))
        sections[-1][1].append(line)
    return [(rank, "".join(lines)) for rank, lines in sections]


def _whole_lines(section: str, room: int, size: object) -> str:
    """Return the first lines of the section that fit; nothing if that is only its heading."""
    assert callable(size)
    kept: list[str] = []
    for line in section.splitlines(keepends=True):
        room -= size(line)
        if room < 0:
            break
        kept.append(line)
    return "".join(kept) if len(kept) > 1 else ""
