"""Delete the files of forgotten summaries, once a minute; a file that was changed since it was written stays.

The name of a file is dropped from the store after the file was deleted, so an interrupted round is done again.

Source: docs/guides/transcripts.md "Summaries"; docs/decisions.md 28.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from signet_actors.protocol.message import Failure
from signet_actors.protocol.session_summaries import DropNotes, FindForgottenNotes, ForgottenNote
from signet_actors.retention.writer_ref import ASK_TIMEOUT_MS, WriterRef
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.file_draft import fsync_path
from signet_actors.runtime.sync_points import sync_point

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

INTERVAL_MS: Final = 60_000
"""The wait between two rounds."""
FIRST_AFTER_MS: Final = 10_000
PAUSE_MS: Final = 100
"""The wait between two steps of a round, so that callers' writes are not queued behind it."""
MAX_NOTE_BYTES: Final = 8 << 20
"""A longer file is not what was written."""


class SessionNotes:
    """Walk through the summaries that have a file, a few at a time. What a failed step leaves, the next round does."""

    def __init__(self, writer: WriterRef, clock: Clock, log: FilteringBoundLogger, directory: Path) -> None:
        self._writer = writer
        self._clock = clock
        self._log = log
        self._directory = directory
        self._after = ""
        self._deleted: tuple[str, ...] = ()
        """Summaries whose files were deleted, or stay, and whose names are to be dropped."""
        self.due_ns = clock.monotonic_ns() + FIRST_AFTER_MS * 1_000_000

    def step(self) -> None:
        """Delete the files of those of the next summaries that were forgotten, or drop the names of deleted ones."""
        if self._deleted:
            dropped = self._writer.ask(DropNotes(self._deleted), timeout_ms=ASK_TIMEOUT_MS)
            self._deleted = ()
            self._due_in(INTERVAL_MS if isinstance(dropped, Failure) else PAUSE_MS)
            return
        found = self._writer.ask(FindForgottenNotes(after=self._after), timeout_ms=ASK_TIMEOUT_MS)
        if isinstance(found, Failure):
            self._due_in(INTERVAL_MS)
            return
        self._deleted = tuple(each.memory_id for each in found.notes if self._delete_one(each))
        if self._deleted:
            fsync_path(self._directory)
            sync_point("retention.note_deleted")
        self._after = found.next or ""
        self._due_in(PAUSE_MS if self._deleted or found.next else INTERVAL_MS)

    def _delete_one(self, note: ForgottenNote) -> bool:
        """Delete the file unless it was changed; return False if that is to be tried again."""
        if note.note != os.path.basename(note.note):  # a restored backup may name any file
            self._log.warning("note_kept", file=note.note, reason="it is no name of a note")
            return True
        try:
            if not delete_unchanged(self._directory / note.note, note.digest):
                self._log.warning("note_kept", file=note.note, reason="it was changed since it was written")
        except OSError as error:
            self._log.warning("note_not_deleted", file=note.note, reason=error.strerror)
            return False
        return True

    def _due_in(self, ms: int) -> None:
        self.due_ns = self._clock.monotonic_ns() + ms * 1_000_000


def delete_unchanged(path: Path, digest: str | None) -> bool:
    """Delete the file if it has this content; return False if it has another one. Raises OSError.

    One that is no more is deleted already. A link, or what is no file, counts as changed.
    """
    try:
        before = os.lstat(path)
        if digest is None or not stat.S_ISREG(before.st_mode) or before.st_size > MAX_NOTE_BYTES:
            return False
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            found = hashlib.sha256(file.read(MAX_NOTE_BYTES + 1)).hexdigest()
        after = os.lstat(path)
        if found != digest or (before.st_ino, before.st_mtime_ns) != (after.st_ino, after.st_mtime_ns):
            return False
        path.unlink()
    except FileNotFoundError:
        return True
    return True
