"""The file of an import: what is said of it before, and the progress, with the batches whose replies prove it.

Source: docs/transfer.md "What an import does"; docs/decisions.md 3.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final, TypedDict

import click
import msgspec

from signet_actors.cli.connection import DaemonClient
from signet_actors.cli.export import export_lines
from signet_actors.cli.importers.signet_markdown import MARK
from signet_actors.cli.presentation import counted, one_line, print_message, require_confirmation
from signet_actors.config.regular_file import read_regular
from signet_actors.errors import ConfigError, RequestRefused, SignetError
from signet_actors.runtime.file_draft import replace_file

KEPT_REFUSALS = 1000
CONNECTIONS = 2
"""While the daemon commits one batch, it can receive another one."""
PROVEN = CONNECTIONS
"""Batches that prove the progress: all earlier ones were committed before the last of these was sent."""
COUNTS = ("imported", "memories", "deduped", "differing", "redacted", "forgotten", "superseded")
"""What is counted of each batch; ``memories`` are the rows that the ``imported`` lines became."""
_LONGEST_POSITION = 16 * 1024 * 1024


@dataclass(frozen=True)
class Batch:
    """Lines of the import ``run`` that are sent in one request, their place in the input, and those too long for it."""

    offset: int
    end: int
    first_line: int
    lines: tuple[bytes, ...]
    refused: tuple[dict[str, Any], ...]
    run: str = ""

    @property
    def payload(self) -> bytes:
        """The body of the request; a blank line replaces a line that is too long, so that the numbers fit."""
        return b"\n".join(self.lines)

    @property
    def key(self) -> str:
        """The Idempotency-Key, unique to these lines at this place in this import."""
        place = f"{self.run}\0{self.offset}\0{self.first_line}\0{len(self.lines)}\0"
        digest = hashlib.sha256(place.encode() + self.payload)
        return f"import-{digest.hexdigest()}"


class StoredBatch(TypedDict):
    """Where a batch that stored anything begins, and the receipts of its commits."""

    offset: int
    line: int
    receipts: list[Any]


@dataclass
class ImportProgress:
    """The progress of an import: everything before ``offset`` and ``line`` is stored or refused.

    ``differences`` are the first lines of those that are ``differing``: they repeat a memory, with another text.
    ``run`` names the import. It stays the same when the import is interrupted and continued. ``last`` are the last
    ``PROVEN`` batches that stored anything: ``offset`` and ``line`` where each begins, ``receipts`` of its commits.
    """

    offset: int = 0
    line: int = 1
    imported: int = 0
    memories: int = 0
    deduped: int = 0
    differing: int = 0
    redacted: int = 0
    forgotten: int = 0
    superseded: int = 0
    refused: int = 0
    refusals: list[dict[str, Any]] = field(default_factory=list)
    differences: list[dict[str, Any]] = field(default_factory=list)
    run: str = field(default_factory=lambda: secrets.token_hex(16))
    last: list[StoredBatch] = field(default_factory=list)

    def is_valid(self, size: int) -> bool:
        """Return whether these are values that an import of a file of ``size`` bytes can have."""
        counts = (self.offset, self.line, self.refused, *(getattr(self, name) for name in COUNTS))
        places = [(0, 1), *((batch["offset"], batch["line"]) for batch in self.last), (self.offset, self.line)]
        begun = self.line > 1 if self.offset else self.line == 1
        return begun and places == sorted(places) and all(0 <= count <= size + 1 for count in counts)

    def add(self, batch: Batch, counts: dict[str, Any], refused: list[dict[str, Any]]) -> None:
        """Add the results of a batch."""
        self.offset, self.line = batch.end, batch.first_line + len(batch.lines)
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + int(counts.get(name, 0)))
        self.differences += counts["differences"][: max(0, KEPT_REFUSALS - len(self.differences))]
        self.refused += len(refused)
        self.refusals += refused[: max(0, KEPT_REFUSALS - len(self.refusals))]
        if counts["receipts"]:
            taken: StoredBatch = {"offset": batch.offset, "line": batch.first_line, "receipts": counts["receipts"]}
            self.last = [*self.last, taken][-PROVEN:]

    def restarted(self) -> ImportProgress:
        """Return the beginning of the same import: what the store still holds is answered like the first time."""
        return ImportProgress(run=self.run)


class ImportState:
    """The saved progress of an import, in ``FILE.import-state``.

    It is ignored if the file, the agent or the daemon (``address``) differs. ``lines`` are the converted lines of
    another program's file; they are compared instead of the file. Their progress is saved in the directory ``cache``,
    because the file may be where nothing can or should be written, and the import goes on if that fails.
    """

    def __init__(
        self, path: Path, agent: str | None, address: str, lines: BinaryIO | None = None, cache: Path | None = None
    ) -> None:
        path = path.absolute()
        self._path = path.with_name(path.name + ".import-state")
        self._is_optional, self._is_reported = cache is not None, False
        if cache is not None:
            name = hashlib.sha256(f"{path}\0{agent}\0{address}".encode("utf-8", "surrogateescape")).hexdigest()
            self._path = cache / f"import-{name[:32]}.json"
        if lines is None:
            status = path.stat()
            self._of: dict[str, Any] = {"size": status.st_size, "modified_ns": status.st_mtime_ns}
        else:
            digest = hashlib.file_digest(lines, "sha256").hexdigest()  # type: ignore[arg-type]
            self._of = {"size": lines.tell(), "lines": digest}
            lines.seek(0)
        self._of |= {"agent": agent, "daemon": address}

    @property
    def size(self) -> int:
        return int(self._of["size"])

    def read(self) -> ImportProgress:
        """Return the progress of an interrupted run, else the beginning. Raises click.UsageError."""
        try:
            kept = json.loads(read_regular(self._path, _LONGEST_POSITION))
            progress = msgspec.convert(kept["done"], ImportProgress) if kept["of"] == self._of else ImportProgress()
            return progress if progress.is_valid(self._of["size"]) else ImportProgress()
        except ConfigError as error:
            raise click.UsageError(error.detail) from error
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return ImportProgress()

    def write(self, progress: ImportProgress) -> None:
        """Write the progress atomically; raise SignetError if the write fails, click.UsageError like ``read``."""
        content = json.dumps({"of": self._of, "done": asdict(progress)}).encode()
        try:
            if self._is_optional:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self._path, content, durable=False)
        except OSError as error:
            if self._is_optional:
                self._report_once(error)
                return
            if not isinstance(error, FileExistsError):
                raise SignetError(f"{self._path} cannot be written: {error.strerror}") from error
            raise click.UsageError(f"cannot write {error.filename}: {error.strerror}") from error

    def forget(self) -> None:
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)

    def _report_once(self, error: OSError) -> None:
        if not self._is_reported:
            print_message(
                f"The progress cannot be saved in {self._path.parent} ({error.strerror}): if the import is interrupted,"
                " it begins anew."
            )
        self._is_reported = True


def cache_directory(environ: Mapping[str, str]) -> Path:
    """Return the directory for files of this user that may be deleted (XDG Base Directory Specification)."""
    given = Path(environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path(environ.get("HOME") or "~").expanduser() / ".cache") / "signet"


def totals(progress: ImportProgress, found: dict[str, Any]) -> Iterator[str]:
    """Yield the parts of the closing sentence; of edited Markdown, first what became of the memories that it edits."""
    of_entries = f" from {counted(progress.imported, 'entry')}" * (progress.memories != progress.imported)
    edited = "changed" in found
    if edited:
        yield f"Changed {counted(found['changed'], 'memory')}"
        yield f"{found['unchanged']} unchanged"
        yield f"{progress.memories} new{of_entries}"
    else:
        yield f"Imported {counted(progress.memories, 'memory')}{of_entries}"
    if progress.deduped or not edited:
        yield f"{progress.deduped} existed already"
    if progress.superseded:
        yield f"{progress.superseded} of a former text replaced"
    if progress.differing:
        yield f"{progress.differing} with another text left as {'it was' if progress.differing == 1 else 'they were'}"
    if progress.forgotten:
        them = "it" if progress.forgotten == 1 else "them"
        yield f"{progress.forgotten} forgotten here, left out (`--restore` brings {them} back)"
    yield f"{progress.refused} refused"
    if progress.redacted:
        yield f"secrets redacted in {progress.redacted}"


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
    """Ask whether to store once more what another project has of the same files. Raises RequestRefused."""
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
    if told:
        require_confirmation("Store them once more?", "nothing was imported")


def _project(client: DaemonClient, named: str) -> str:
    """Return the project of the directory ``named`` as the daemon names it, if that has memories; else ``named``."""
    rows = client.get("/api/memories", project=named, limit=1).records("memories")
    return next((row["project"] for row in rows if row.get("project")), named)


def _place(project: str | None) -> str:
    return f"in the project {one_line(os.path.normpath(project))}" if project else "for all projects"
