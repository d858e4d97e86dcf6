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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import click

from signet_actors.cli.importers.source import tag_of
from signet_actors.errors import SignetError

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
                file.write(document(memory))
        except OSError as error:
            raise SignetError(f"{path} cannot be written: {error.strerror}") from error

    def finish(self) -> None:
        """Rename the directory to its path."""
        try:
            self._draft.rename(self._path)
        except OSError as error:
            raise SignetError(f"{self._path} cannot be written: {error.strerror}") from error

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
