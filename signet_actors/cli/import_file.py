"""What is said of a file before its import: that it is not JSON lines, or that it was imported into another project.

Source: docs/transfer.md "What an import does".
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from signet_actors.cli.export import export_lines
from signet_actors.cli.importers.signet_markdown import MARK
from signet_actors.cli.presentation import ask_confirmation, one_line, print_message
from signet_actors.errors import ErrorCode, RequestRefused

if TYPE_CHECKING:
    from pathlib import Path

    from signet_actors.cli.connection import DaemonClient

OTHER_NAMES: Final = {".md", ".markdown", ".txt", ".db", ".sqlite"}
MAX_DOCUMENT_BYTES: Final = 64 * 1024 * 1024
"""A larger file is not read as one JSON document."""


def refuse_other_name(path: Path) -> None:
    """Raise click.UsageError for a directory, or a file named like another format that does not begin like JSON."""
    if path.is_dir():
        kind = "a directory"
    elif path.suffix.lower() in OTHER_NAMES and path.is_file() and not _begins_like_json(path):
        kind = "no file of JSON lines"
    else:
        return
    is_database = path.suffix.lower() in {".db", ".sqlite"}
    guess = "claude-mem` or `--from reference" if is_database else "markdown"
    raise click.UsageError(f"{path} is {kind}; name its format with `--from {guess}`")


def format_of(path: Path) -> str | None:
    """Return the format of Markdown, a file or a directory with it, in it or below: notes, or an export; else None."""
    candidates = path.rglob("*") if path.is_dir() else [path]
    files = (file for file in candidates if file.suffix.lower() in {".md", ".markdown"} and file.is_file())
    first = next(files, None)
    if first is None:
        return None
    try:
        with first.open("rb") as file:
            text = file.read(65_536)
    except OSError:
        return None  # the import says what is wrong with it
    if first == path and text.lstrip().startswith(b"{"):
        return None
    return "signet-markdown" if f"\n{MARK}: ".encode() in text else "markdown"


def refuse_without_line(path: Path, line_limit: int) -> None:
    """Raise click.UsageError if no line can be one of an export, or if the file is one JSON document of many lines.

    Blank lines are no reason, and a line of more than ``line_limit`` bytes is left to the import.
    """
    first = b""
    with path.open("rb") as file:
        while text := file.readline(line_limit + 1):
            if len(text) > line_limit or _is_line(text):
                if first and _is_document(path, first):
                    break
                return
            first = first or text.strip()
    if first:
        raise click.UsageError(
            f"{path} is no file of JSON lines, each an object with `content`; name its format with"
            " `--from mem0`, `--from claude-mem` or another one of `signet import --help`"
        )


def _begins_like_json(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(1024).lstrip().startswith(b"{")


def _is_line(text: bytes) -> bool:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and ("content" in value or "format" in value)


def _is_document(path: Path, first: bytes) -> bool:
    if not first.startswith((b"{", b"[")) or path.stat().st_size > MAX_DOCUMENT_BYTES:
        return False
    try:
        json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        return False
    return True


def ask_about_other_projects(client: DaemonClient, lines: BinaryIO) -> None:
    """Ask whether to store once more what the store has of the same files in another project.

    ``lines`` are those of the import. Raises RequestRefused for the answer no.
    """
    with tempfile.TemporaryFile() as exported:
        try:
            export_lines(client, exported.write, None, lambda _: None)
        except RequestRefused:  # the caller may not export
            return
        exported.seek(0)
        stored: dict[tuple[str, str], list[str | None]] = {}
        for row in map(json.loads, exported):
            if row.get("sourcePath") and row.get("content"):
                stored.setdefault((row["sourcePath"], row["content"].strip()), []).append(row.get("project"))
    told: Counter[tuple[str | None, str | None]] = Counter()
    projects: dict[str | None, str | None] = {None: None}
    for row in map(json.loads, lines):
        known = stored.get((row.get("sourcePath"), str(row["content"]).strip()), [])
        named = row.get("project")
        if known and named not in projects:
            projects[named] = _project(client, named)
        if known and projects[named] not in known:
            told[known[0], projects[named]] += 1
    lines.seek(0)
    for (there, here), count in told.items():
        exist = "memory of these files exists" if count == 1 else "memories of these files exist"
        it = "it" if count == 1 else "them"
        print_message(f"{count} {exist} already {_place(there)}; this import stores {it} once more, {_place(here)}.")
    if told and not ask_confirmation("Store them once more?"):
        raise RequestRefused("nothing was imported", code=ErrorCode.CONFIRM_REQUIRED)


def _project(client: DaemonClient, named: str) -> str:
    """Return the project of the directory ``named`` as the daemon names it, if that has memories; else ``named``."""
    rows = client.get("/api/memories", project=named, limit=1).records("memories")
    return next((row["project"] for row in rows if row.get("project")), named)


def _place(project: str | None) -> str:
    return f"in the project {one_line(os.path.normpath(project))}" if project else "for all projects"
