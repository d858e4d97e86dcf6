"""A directory of ``signet export --markdown``, edited or not: a memory for each file.

Source: docs/transfer.md "Markdown to read and edit".
"""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any, Final

from signet_actors.cli.importers.markdown import MARKDOWN, notes
from signet_actors.cli.importers.source import Line, NotThisFormat, line
from signet_actors.cli.markdown_files import MARK

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from signet_actors.cli.importers.findings import Findings
    from signet_actors.cli.importers.markdown import Note

FILE: Final = "file"
"""The member of a line that names its file; it and ``MARK`` are removed before the line is imported."""
_TEXTS: Final = (
    *("id", "who", "project", "scope", "agentId", "visibility", "sourceType", "sourceId", "sourcePath"),
    *("runtimePath", "idempotencyKey", "sessionId", "createdAt", "updatedAt", "lastAccessed", MARK),
)
_NUMBERS: Final = ("importance", "accessCount", "injectedCount")


def memories(path: Path, findings: Findings) -> Iterator[Line]:
    """Yield the memory of each file, oldest first; raise NotThisFormat if none was exported by this program."""
    found = []
    for note in notes(path, MARKDOWN, findings):
        if note.body.strip():
            found.append(_memory(note, findings))
        else:
            findings.without_text += 1
    if not any(MARK in memory for memory in found) and not findings.unreadable:
        raise NotThisFormat(
            f"{path} has no file of `signet export --markdown`; `--from markdown` imports any other Markdown"
        )
    yield from sorted(found, key=lambda memory: (str(memory.get("createdAt")), str(memory.get("id"))))


def _memory(note: Note, findings: Findings) -> Line:
    place, matter = str(note.path), note.matter
    given: dict[str, Any] = {name: _text(matter.get(name), name, place, findings) for name in _TEXTS}
    for name in _NUMBERS:
        value = matter.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            given[name] = value
        else:
            findings.left_out(place, name, value, "a number")
    if isinstance(matter.get("times"), list):
        given["times"] = matter["times"]
    return line(
        note.body.strip("\n"),
        **given,
        type=findings.type(place, "type", matter.get("type")),
        tags=findings.tags(place, "tags", matter.get("tags")) if matter.get("tags") else None,
        pinned=True if matter.get("pinned") is True else None,
        **{FILE: place},
    )


def _text(value: Any, name: str, place: str, findings: Findings) -> str | None:
    return value.isoformat() if isinstance(value, date) else findings.text(place, name, value)
