"""Markdown and plain text: one memory a section, with the headings above it as tags.

YAML front matter gives tags, project, author and time. A plain text has no headings; its paragraphs are the sections.

Source: docs/transfer.md "Other formats", "The memories of your agents"; the CommonMark specification "Leaf blocks".
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import stat
import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from signet_actors.cli.importers.source import (
    Findings,
    Line,
    NotThisFormat,
    Unreadable,
    line,
    read_text,
    refuse_json,
    tag_of,
    tags_of,
)
from signet_actors.config.yaml_file import UnreadableYaml, parse_yaml
from signet_actors.domain import working_memory
from signet_actors.domain.extraction.injected_text import without_injected

MARKDOWN: Final = (".md", ".markdown", ".mdx")
TEXT: Final = (".txt", ".text")
FENCE: Final = "---"
_OF_LIBRARIES: Final = frozenset(("node_modules", "bower_components", "site-packages"))


@dataclass(frozen=True)
class Note:
    """A file: its front matter, and its text without it. ``name`` is its path relative to what is imported."""

    path: Path
    name: str
    matter: dict[str, Any]
    body: str
    findings: Findings

    @property
    def title(self) -> str:
        return str(self.matter.get("title") or self.path.stem)

    def line(self, content: str, place: str, *, tags: Sequence[Any] = (), **members: Any) -> Line:
        """Return a memory from this note. ``place`` names where in it: the same text at the same place is the same."""
        digest = hashlib.sha256(content.encode()).hexdigest()[:12]
        former = f"{self.name}#{place}@"
        about = {**self._about, "sourceType": "markdown", "sourceId": former + digest, "supersedes": former}
        return line(content, tags=tags_of(self._tags, tags), **(about | members))

    @cached_property
    def _about(self) -> dict[str, Any]:
        """What the front matter says of each memory from this note; read once, so that each warning is given once."""
        matter, findings, path = self.matter, self.findings, str(self.path)
        created = findings.time(path, **{key: matter.get(key) for key in ("created", "created_at", "date")})
        modified = datetime.fromtimestamp(min(self.path.stat().st_mtime, time.time()), UTC).isoformat(
            timespec="milliseconds"
        )
        return {
            "type": findings.type(path, "type", matter.get("type")),
            "project": findings.text(path, "project", matter.get("project")),
            "who": findings.text(path, "author", matter.get("author")),
            "createdAt": created or modified,
            "sourcePath": os.path.abspath(path),
        }

    @cached_property
    def _tags(self) -> list[Any]:
        return self.findings.tags(str(self.path), "tags", self.matter.get("tags"))

    def section(self, headings: Sequence[str], text: str, **members: Any) -> Line:
        """Return a section as a memory; the title of the front matter and the headings above it are tags."""
        tags = list(map(tag_of, headings))
        return self.line(text, "/".join(tags), tags=[tag_of(self.matter.get("title") or ""), *tags], **members)


def memories(path: Path, findings: Findings, *, plain: bool = False) -> Iterator[Line]:
    """Yield a memory for each section of the file, or of each file in the directory; raise NotThisFormat.

    The sections of a text are its paragraphs; with ``plain``, every file is a text.
    """
    found = False
    for note in notes(path, (*MARKDOWN, *TEXT), findings):
        is_text = plain or note.path.suffix.lower() in TEXT
        has_text = False
        for headings, text in paragraphs(note.body) if is_text else sections(note.body):
            found = has_text = True
            yield note.section(headings, text)
        findings.without_text += not has_text
    if not found and not findings.unreadable:
        raise NotThisFormat(f"{path} has no Markdown or plain text ({', '.join((*MARKDOWN, *TEXT))}) with a text in it")


def lines_of(
    found: Iterable[Note], read: Callable[[Note], Iterable[Line]], findings: Findings, refusal: str
) -> Iterator[Line]:
    """Yield what ``read`` makes of each note; raise NotThisFormat with the ``refusal`` if there is no note."""
    is_there = False
    for note in found:
        is_there = True
        lines = list(read(note))
        findings.without_text += not lines
        yield from lines
    if not is_there and not findings.unreadable:
        raise NotThisFormat(refusal)


def notes(path: Path, endings: Sequence[str], findings: Findings) -> Iterator[Note]:
    """Yield the file, or the visible files with these endings below the directory, sorted; no links and no libraries.

    What cannot be read is added to ``findings``.
    """
    for file, name in _files(path, endings, findings):
        try:
            note = _note(file, name, findings)
        except Unreadable as error:
            findings.unreadable.append(error.detail)
            continue
        if file == path and not note.matter:
            refuse_json(path, note.body)
        yield note


def _files(path: Path, endings: Sequence[str], findings: Findings) -> Iterator[tuple[Path, str]]:

    def unreadable(error: OSError) -> None:
        findings.unreadable.append(f"cannot read {error.filename}: {error.strerror}")

    if not path.is_dir():
        yield path, path.name
        return
    for directory, names, files in os.walk(path, onerror=unreadable):
        names[:] = sorted(name for name in names if not name.startswith(".") and name not in _OF_LIBRARIES)
        for name in sorted(files):
            file = Path(directory) / name
            if file.suffix.lower() not in endings or name.startswith("."):
                continue
            try:
                is_regular = stat.S_ISREG(file.lstat().st_mode)
            except OSError as error:
                unreadable(error)
                continue
            if is_regular:
                yield file, file.relative_to(path).as_posix()


def sections(body: str, *, without: Container[int] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the headings above each section, and its text with its own heading; leave out the lines ``without``.

    A heading with nothing below it, not even another heading, is a section too.
    """
    lines = body.split("\n")
    found = [*_headings(body), (len(lines), len(lines), ())]
    for (begin, text_begin, headings), (end, _, following) in itertools.pairwise(found):
        kept = [number for number in range(begin, end) if number not in without]
        is_empty = not any(map(str.strip, lines[text_begin:end]))
        is_alone = is_empty and any(headings[-1:]) and len(following) <= len(headings)
        if is_alone or any(lines[number].strip() for number in kept if number >= text_begin):
            yield headings, "\n".join(lines[number] for number in kept).strip()


def _headings(body: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield the line of each heading, the line after it, and the headings above it and its own; first the top."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - slow; only for an import of Markdown

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    tokens = parser.parse(body)
    above: list[tuple[int, str]] = []
    yield 0, 0, ()
    for number, token in enumerate(tokens):
        if token.type != "heading_open" or token.level or token.map is None:
            continue
        depth = int(token.tag[1:])
        above = [(level, title) for level, title in above if level < depth]
        above.append((depth, tokens[number + 1].content.strip()))
        start, text_start = token.map
        yield start, text_start, tuple(title for _, title in above)


def paragraphs(body: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the parts of a plain text between blank lines, without headings."""
    part: list[str] = []
    for text in [*body.split("\n"), ""]:
        if text.strip():
            part.append(text)
        elif part:
            yield (), "\n".join(part).strip()
            part = []


def _note(path: Path, name: str, findings: Findings) -> Note:
    """Return the file as a note; raise Unreadable."""
    text = read_text(path)
    first, *rest = text.split("\n")
    if first.rstrip() != FENCE or FENCE not in (after := [other.rstrip() for other in rest]):
        return Note(path, name, {}, text, findings)
    end = after.index(FENCE)
    try:
        matter = parse_yaml("\n".join(["", *rest[:end]]).encode())  # an empty line for the opening fence
    except UnreadableYaml as error:
        raise Unreadable(
            f"{path}: the front matter is not valid YAML: {'; '.join(error.problems)}; correct it, or quote the value"
        ) from error
    body = "\n".join(rest[end + 1 :])
    is_matter = isinstance(matter, dict)
    return Note(path, name, matter if is_matter else {}, body if is_matter else text, findings)


_SHOWN_ID: Final = re.compile(r"\(id [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}\)")
"""The beginning of an id, as it stands in each line of a memory that was shown to an agent."""


def agent_notes(path: Path, findings: Findings) -> Iterator[Note]:
    """Yield the file, or the Markdown below the directory, without what Signet wrote; count that in ``findings``."""
    for note in notes(path, MARKDOWN, findings):
        body, parts = without_signet(note.body)
        findings.of_signet += parts
        yield replace(note, body=body)


def without_signet(text: str) -> tuple[str, int]:
    """Return the text without what Signet wrote, and how many parts that were."""
    own, made = working_memory.split(text)
    own, injected = without_injected(own)
    lines = own.split("\n")
    kept = [line for line in lines if _SHOWN_ID.search(line) is None]
    return "\n".join(kept), bool(made) + injected + len(lines) - len(kept)
