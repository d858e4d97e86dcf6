"""The progress of an import, saved next to its file or in the user's cache, and the batches whose replies prove it.

Source: docs/transfer.md "What an import does"; docs/decisions.md 3.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypedDict

import click
import msgspec

from signet_actors.cli.presentation import counted, print_message
from signet_actors.config.regular_file import read_regular
from signet_actors.errors import ConfigError, SignetError
from signet_actors.runtime.file_draft import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    """Lines that are sent in one request, with their place in the input, and the lines that are too long to be sent.

    ``run`` names the import that they belong to.
    """

    offset: int
    end: int
    first_line: int
    lines: tuple[bytes, ...]
    refused: tuple[dict[str, Any], ...]
    run: str = ""

    @property
    def payload(self) -> bytes:
        """The body of the request.

        A blank line replaces a line that is too long, so that the line numbers stay correct.
        """
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
        """Bytes of the lines."""
        return int(self._of["size"])

    def read(self) -> ImportProgress:
        """Return the progress of an interrupted run, else the beginning.

        Raises click.UsageError if something other than a regular file is at the path.
        """
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
        """Delete the saved progress."""
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
    of_entries = f" from {counted(progress.imported, 'entry', 'entries')}" * (progress.memories != progress.imported)
    edited = "changed" in found
    if edited:
        yield f"Changed {counted(found['changed'], 'memory', 'memories')}"
        yield f"{found['unchanged']} unchanged"
        yield f"{progress.memories} new{of_entries}"
    else:
        yield f"Imported {counted(progress.memories, 'memory', 'memories')}{of_entries}"
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
