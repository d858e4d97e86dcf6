"""A readable export: a directory of Markdown, one file a memory, with front matter that an import reads again.

The directory is written under another name and renamed when it is complete. A file's ``exported`` is a digest of what
can be edited in it, by which an import tells an edited file from one whose memory has changed.

Source: docs/transfer.md "Markdown to read and edit".
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Self

import click

from signet_actors.cli.connection import DaemonClient, memory_path
from signet_actors.cli.exit_codes import EXIT_CODES
from signet_actors.cli.importers.markdown import MARKDOWN, Note, notes
from signet_actors.cli.importers.source import Findings, Line, NotThisFormat, line, tag_of
from signet_actors.cli.presentation import reporting
from signet_actors.errors import RequestRefused, SignetError

MARK: Final = "exported"
_SLUG_CHARS: Final = 40
_UNSAFE: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""What JSON leaves as it is and YAML refuses, or reads as the end of a line."""
_TAG_LIKE: Final = re.compile(r"[A-Za-z][\w-]*\Z", re.ASCII)


class MarkdownDirectory:
    """A new directory of memories; nothing is at its path until ``finish``."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._draft = path.with_name(f"{path.name}.partial")
        try:
            if path.is_symlink() or (path.exists() and (not path.is_dir() or any(path.iterdir()))):
                raise click.UsageError(f"cannot write {path}: give a new or an empty directory")
            self._draft.mkdir(mode=0o700)
        except OSError as error:
            raise click.UsageError(f"cannot write {self._draft}: {error.strerror}") from error

    def add(self, memory: Mapping[str, Any]) -> None:
        """Write the file of a memory, in a folder of its type."""
        folder = self._draft / (tag_of(memory.get("type") or "") or "other").replace("/", "-")
        first = memory["content"].strip().partition("\n")[0]
        slug = tag_of(first[:200]).replace("/", "-").strip(".")[:_SLUG_CHARS].strip("-.")
        name = str(memory.get("id") or "")
        path = folder / f"{slug or 'memory'}-{name[-8:]}.md"
        if path.exists():
            path = folder / f"{slug or 'memory'}-{name}.md"
        with reporting(path, "written", SignetError):
            folder.mkdir(mode=0o700, exist_ok=True)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(document(memory))

    def finish(self) -> None:
        with reporting(self._path, "written", SignetError):
            self._draft.rename(self._path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self._draft, ignore_errors=True)


def document(memory: Mapping[str, Any]) -> str:
    """Return the file of a memory: front matter with all of its members, and its text."""
    matter = {name: value for name, value in memory.items() if name != "content"} | {MARK: digest(memory)}
    lines = [f"{name}: {_scalar(value)}" for name, value in matter.items()]
    return "\n".join(["---", *lines, "---", "", memory["content"], ""])


def digest(memory: Mapping[str, Any]) -> str:
    """Return the digest of what can be edited in the file of a memory."""
    return hashlib.sha256(json.dumps(editable(memory), sort_keys=True).encode()).hexdigest()[:16]


def editable(memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return what can be edited in the file of a memory."""
    importance = memory.get("importance")
    return {
        "content": str(memory["content"]).strip(),
        "type": memory.get("type"),
        "tags": sorted(memory.get("tags") or []),
        "importance": None if importance is None else float(importance),
        "pinned": bool(memory.get("pinned")),
    }


def mark_as_imported(path: Path, memory: Mapping[str, Any]) -> None:
    """Write the digest of the edited memory into its file, so that it can be edited and imported once more."""
    text = path.read_bytes().decode("utf-8")  # with the line ends of an editor on Windows
    begin, end = text.index(f"\n{MARK}: ") + 1, text.index("\n---", 4)
    if begin < end:
        stop = begin + len(text[begin : text.index("\n", begin)].rstrip("\r"))
        path.write_bytes(f"{text[:begin]}{MARK}: {_scalar(digest(memory))}{text[stop:]}".encode())


def _scalar(value: Any) -> str:
    """Return the value as YAML: bare words as they are, anything else as JSON, which YAML can read."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return f"[{', '.join(map(_scalar, value))}]"
    if isinstance(value, str) and _TAG_LIKE.match(value) and value.lower() not in _WORDS:
        return value
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(value, ensure_ascii=False))


_WORDS: Final = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}
"""Words that YAML takes for something else than a text."""


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
    memory = line(
        note.body.strip("\n"),
        **given,
        type=findings.type(place, "type", matter.get("type")),
        tags=findings.tags(place, "tags", matter.get("tags")) if matter.get("tags") else None,
        pinned=True if matter.get("pinned") is True else None,
        **{FILE: place},
    )
    if matter.get("typeInferred") is True and digest(memory) == memory.get(MARK):  # else somebody may have named it
        memory["typeInferred"] = True
    return memory


def _text(value: Any, name: str, place: str, findings: Findings) -> str | None:
    return value.isoformat() if isinstance(value, date) else findings.text(place, name, value)


REASON: Final = "edited as Markdown"
_FIXED: Final = ("project", "who", "scope", "visibility", "createdAt")


@dataclass
class MarkdownEdits:
    """The files whose memories the daemon has. ``export`` returns the lines of an export of now."""

    client: DaemonClient
    export: Callable[[], bytes]
    changed: int = 0
    unchanged: int = 0
    refusals: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _taken: list[tuple[Path, str | None, Line, Line]] = field(default_factory=list)

    def take(self, memory: Line) -> bool:
        """Take the file if the daemon has its memory, and return True; else the line is left to the import."""
        path, mark = Path(memory.pop(FILE)), memory.pop(MARK, None)
        stored = self._stored.get(memory.get("id") or "")
        if stored is not None:
            self._taken.append((path, mark, memory, stored))
        return stored is not None

    def apply(self) -> None:
        """Change the memories of the files that were edited."""
        for path, mark, memory, stored in self._taken:
            self._apply(path, mark, memory, stored)

    def _apply(self, path: Path, mark: str | None, memory: Line, stored: Line) -> None:
        self.warnings += [
            f"{path}: `{name}` is left as it is; only the text, type, tags, importance and pinned can be changed"
            for name in _FIXED
            if memory.get(name) != stored.get(name)
        ]
        if digest(memory) == mark or editable(memory) == editable(stored):
            self.unchanged += 1
        elif digest(stored) != mark:
            self._refuse(path, "its memory has changed since the export; nothing was changed")
        else:
            self._change(path, memory, stored)

    def _change(self, path: Path, memory: Line, stored: Line) -> None:
        before = editable(stored)
        edits = {name: value for name, value in editable(memory).items() if value is not None and value != before[name]}
        if not edits:
            self.unchanged += 1
            return
        target = memory_path(stored["id"])
        try:
            version = self.client.get(target).body["version"]
            body = {**edits, "reason": REASON, "if_version": version}
            self.client.send("PATCH", target, body).confirm("status", "updated", "no_changes")
        except RequestRefused as error:
            if error.code in EXIT_CODES:  # try the whole import again
                raise
            self._refuse(path, error.detail)
            return
        self.changed += 1
        try:
            mark_as_imported(path, memory)
        except OSError as error:
            self.warnings.append(f"{path} cannot be marked as imported ({error.strerror}); export it again to edit it")

    def _refuse(self, path: Path, reason: str) -> None:
        self.refusals.append({"source": str(path), "error": reason})

    @cached_property
    def _stored(self) -> dict[str, Line]:
        """The memories that the agent may read, by their ids."""
        found = (json.loads(line) for line in self.export().splitlines())
        return {memory["id"]: memory for memory in found if "id" in memory}
