"""The long-term memory of an agent of OpenClaw: ``MEMORY.md`` in the agent's workspace.

Comments are left out: OpenClaw keeps words and weights for its own search in them.

Source: docs/transfer.md "The memories of your agents"; OpenClaw's documentation "Memory".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from signet_actors.cli.importers.markdown import agent_notes, sections
from signet_actors.cli.importers.source import Findings, Line, NotThisFormat
from signet_actors.cli.presentation import home_of

SOURCE_TYPE: Final = "openclaw"
_NAMES: Final = ("MEMORY.md", "memory.md")
_OPENING: Final = "<!--"
_CLOSING: Final = "-->"


def default_path(environ: Mapping[str, str]) -> Path:
    return home_of(environ) / ".openclaw" / "workspace"


def memories(path: Path, findings: Findings) -> Iterator[Line]:
    """Yield a memory for each section of the file, or of that in the workspace; raise NotThisFormat without one."""
    folder = path if path.is_dir() else path.parent
    files = [file for name in _NAMES if (file := folder / name).is_file() and path in (folder, file)]
    if not files:
        raise NotThisFormat(f"{path} is no {_NAMES[0]}, and none is in it; give the workspace of an agent of OpenClaw")
    if len(files) > 1 and files[0].samefile(files[1]):
        files.pop()
    for file in files:
        for note in agent_notes(file, findings):
            found = list(sections(without_comments(note.body)))
            findings.without_text += not found
            for headings, text in found:
                yield note.section(headings, text, sourceType=SOURCE_TYPE)


def without_comments(text: str) -> str:
    """Return the text without its comments. A comment without an end is kept."""
    parts: list[str] = []
    at = 0
    while (start := text.find(_OPENING, at)) >= 0 and (end := text.find(_CLOSING, start)) >= 0:
        parts.append(text[at:start].rstrip(" "))
        at = end + len(_CLOSING)
    parts.append(text[at:])
    return "".join(parts)
