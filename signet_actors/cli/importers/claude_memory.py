"""The memory that Claude Code keeps by itself: Markdown below ``~/.claude/projects/PROJECT/memory``.

``MEMORY.md`` is an index, of which only what is more than a link to another file is a memory. The other files have the
name, the type and the last change of a memory as front matter. ``PROJECT`` is a path in which everything but letters
and digits is a hyphen; the directory is found in the sessions beside it, else on the disk.

Source: docs/transfer.md "The memories of your agents"; Claude Code's documentation "Manage Claude's memory".
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from signet_actors.cli.importers.markdown import Note, agent_notes, sections
from signet_actors.cli.importers.source import Findings, Line, NotThisFormat, tag_of
from signet_actors.cli.past_sessions.line_files import claude_code_projects, project_of

SOURCE_TYPE: Final = "claude-memory"
INDEX: Final = "MEMORY.md"
_FOLDER: Final = "memory"
_SESSIONS_READ: Final = 20


def default_path(environ: Mapping[str, str]) -> Path:
    return claude_code_projects(environ)


def memories(path: Path, findings: Findings) -> Iterator[Line]:
    """Yield the memories of the file, the project, or all projects; raise NotThisFormat if there are none."""
    found = False
    for folder in _folders(path):
        place = (folder.parent if folder.is_file() else folder).absolute()
        project, name = _project(place.parent), place.parent.name
        for note in agent_notes(folder, findings):
            found = True
            lines = list(_memories(replace(note, name=f"{name}/{note.name}"), project, findings))
            findings.without_text += not lines
            yield from lines
    if not found and not findings.unreadable:
        raise NotThisFormat(
            f"{path} has no memory of Claude Code, which keeps it as Markdown in ~/.claude/projects/PROJECT/{_FOLDER}"
        )


def _folders(path: Path) -> list[Path]:
    """Return the memory folders of ``path``: itself, that of a project, or those of all projects."""
    if path.is_file():
        return [path] if path.suffix == ".md" and _is_memory(path.absolute().parent) else []
    if _is_memory(path):
        return [path]
    for pattern in (_FOLDER, f"*/{_FOLDER}", f"projects/*/{_FOLDER}"):
        found = sorted(folder for folder in path.glob(pattern) if folder.is_dir())
        if found:
            return found
    return []


def _is_memory(folder: Path) -> bool:
    return folder.name == _FOLDER or (folder / INDEX).is_file()


def _memories(note: Note, project: str | None, findings: Findings) -> Iterator[Line]:
    matter, place = note.matter, str(note.path)
    details = matter.get("metadata")
    about: Mapping[str, Any] = {**matter, **details} if isinstance(details, dict) else matter
    kind = findings.text(place, "type", about.get("type"))
    members: dict[str, Any] = {
        "sourceType": SOURCE_TYPE,
        "type": None,  # theirs says whom a memory is about, ours what it is
        "project": project,
        "sessionId": findings.text(place, "originSessionId", about.get("originSessionId")),
    }
    modified = findings.time(place, modified=about.get("modified"))
    if modified is not None:
        members |= {"createdAt": modified, "updatedAt": modified}
    tags = list(filter(None, (tag_of(kind or ""), tag_of(matter.get("name") or ""))))
    pointers = _pointers(note)
    for headings, text in sections(note.body, without=pointers):
        names = list(map(tag_of, headings))
        yield note.line(text, "/".join(names), tags=[*tags, *names], **members)
    description = matter.get("description")
    if not note.body.strip() and isinstance(description, str) and description.strip():
        yield note.line(description.strip(), "", tags=tags, **members)


def _pointers(note: Note) -> set[int]:
    """Return the lines of an index that only lead to another file: ``- [Title](file.md) — what is in it``."""
    if note.path.name != INDEX:
        return set()
    return {number for number, text in enumerate(note.body.split("\n")) if _is_pointer(text.strip(), note.path.parent)}


def _is_pointer(item: str, folder: Path) -> bool:
    if not item.startswith(("- ", "* ")) or not item[2:].lstrip("*_ ").startswith("["):
        return False
    target = item.partition("](")[2].partition(")")[0]
    return target.endswith(".md") and "\0" not in target and (folder / target).is_file()


def _project(folder: Path) -> str | None:
    """Return the directory ``folder`` is named after; its name if unknown, so that no memory is for all projects."""
    name = folder.name
    if not name.startswith("-"):
        return None
    sessions = sorted(folder.glob("*.jsonl"), key=_modified_ns, reverse=True)[:_SESSIONS_READ]
    for session in sessions:
        with contextlib.suppress(OSError):
            directory = project_of(session)
            if directory is not None and hyphenated(directory) == name:
                return directory
    found = list(_directories(Path("/"), name[1:]))
    return str(found[0]) if len(found) == 1 else name


def hyphenated(path: str) -> str:
    """Return the path as Claude Code writes it in the name of a folder."""
    return "".join(char if char.isascii() and char.isalnum() else "-" for char in path)


def _directories(above: Path, rest: str) -> Iterator[Path]:
    """Yield each directory below ``above`` whose path from there is ``rest`` with hyphens."""
    try:
        with os.scandir(above) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return
    for name in names:
        written = hyphenated(name)
        if rest == written:
            yield above / name
        elif rest.startswith(f"{written}-"):
            yield from _directories(above / name, rest[len(written) + 1 :])


def _modified_ns(path: Path) -> int:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0
