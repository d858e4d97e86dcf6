"""The memory that Codex keeps by itself: Markdown in ``~/.codex/memories``.

``MEMORY.md`` has groups of tasks, each with the directory that it is about; ``memory_summary.md`` the user's profile
and preferences. What only leads to other files (indexes, keywords, summaries of sessions) is left out, and so is what
Codex collects before it writes these two.

Source: docs/transfer.md "The memories of your agents"; Codex's prompt for the consolidation of memories.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from signet_actors.cli.importers.markdown import Note, agent_notes, lines_of, sections
from signet_actors.cli.importers.source import Findings, Line
from signet_actors.cli.past_sessions.line_files import codex_home
from signet_actors.domain.timestamps import normalize_timestamp

SOURCE_TYPE: Final = "codex-memory"
_FOLDER: Final = "memories"
_OWN_FILES: Final = ("MEMORY.md", "memory_summary.md")
_COLLECTED: Final = "raw_memories.md"
_GROUP: Final = "task group:"
_LEADING_ELSEWHERE: Final = ("rollout_summary_files", "keywords", "what's in memory")
_SCHEMA: Final = "v1"
_UPDATED: Final = re.compile(r"updated_at=([0-9T:.+Z-]{10,40})")


def default_path(environ: Mapping[str, str]) -> Path:
    return codex_home(environ) / _FOLDER


def memories(path: Path, findings: Findings) -> Iterator[Line]:
    """Return the memories of the file, or of the Markdown in the directory; raise NotThisFormat if there are none."""
    found = (note for file in _files(path) for note in agent_notes(file, findings))
    refusal = f"{path} has no memory of Codex, which keeps it as Markdown in ~/.codex/memories"
    return lines_of(found, _memories, findings, refusal)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix == ".md" and _is_memory(path.absolute().parent) else []
    folder = path / _FOLDER if (path / _FOLDER).is_dir() else path
    if not _is_memory(folder):
        return []
    return sorted(file for file in folder.glob("*.md") if file.is_file() and file.name != _COLLECTED)


def _is_memory(folder: Path) -> bool:
    return folder.name == _FOLDER or any((folder / name).is_file() for name in _OWN_FILES)


def _memories(note: Note) -> Iterator[Line]:
    group: list[tuple[tuple[str, ...], str]] = []
    for headings, text in sections(note.body):
        if group and headings[:1] != group[0][0][:1]:
            yield from _of_group(note, group)
            group = []
        group.append((headings, text))
    if group:
        yield from _of_group(note, group)


def _of_group(note: Note, group: list[tuple[tuple[str, ...], str]]) -> Iterator[Line]:
    """Yield the memories below one heading of the first level."""
    first = group[0][0][:1]
    about = group[0][1] if first and first[0].lower().startswith(_GROUP) else ""
    times = [time for _, text in group for found in _UPDATED.findall(text) if (time := normalize_timestamp(found))]
    members = {"sourceType": SOURCE_TYPE, "project": _directory(about) if about else None}
    if times:
        members |= {"createdAt": max(times)}
    for headings, text in group:
        is_head = bool(about) and len(headings) == 1
        if is_head or text == _SCHEMA or any(map(_leads_elsewhere, headings)):
            continue
        yield note.section(headings, text, **members)


def _leads_elsewhere(heading: str) -> bool:
    return heading.lower().replace("\u2019", "'") in _LEADING_ELSEWHERE


def _directory(about: str) -> str | None:
    """Return the directory of ``applies_to: cwd=DIRECTORY; reuse_rule=…`` if it names one."""
    for line in about.split("\n"):
        if line.startswith("applies_to:"):
            named = line.partition("cwd=")[2].partition(";")[0].strip().rstrip("/")
            return named if named.startswith("/") else None
    return None
