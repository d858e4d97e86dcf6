"""Back up the database page by page between commits, verify the copy, then give it its final name.

The writer's own connection makes the copy. SQLite's backup starts over when *another* connection commits, but it also
copies the pages that its own connection commits. Between two steps no read transaction is open, so checkpoints work as
usual; ``VACUUM INTO`` by a reader would hold a snapshot and let the log grow beyond its bound (docs/reliability.md
R14). The copy contains every page as it is, damage included, so verifying the copy also checks the database.

Source: docs/reliability.md R14, R17, R18; https://sqlite.org/backup.html.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import apsw

from signet_actors.domain.backups import parse_backup_name
from signet_actors.errors import CheckIncomplete, ConfigError, StoreIOError
from signet_actors.runtime.clock import Clock
from signet_actors.runtime.file_draft import fsync_path
from signet_actors.runtime.sync_points import sync_point
from signet_actors.store.findings import STRUCTURE, Finding, incomplete, is_structural
from signet_actors.store.reads.stats import live_memories
from signet_actors.store.sqlite.checkpoint import PAGE_BYTES, checkpoint
from signet_actors.store.sqlite.checks import scrub
from signet_actors.store.sqlite.connect import harden, heartbeat_during, open_copy
from signet_actors.store.sqlite.errors import UNCHECKABLE
from signet_actors.store.sqlite.reader import SqliteReads

PARTIAL: Final = ".partial"
_PAGES_PER_STEP: Final = 16
_SYNC_BYTES: Final = 256 << 20
_READ_BYTES: Final = 1 << 20
_FILE_HEADER_FIELDS: Final = (slice(18, 20), slice(24, 28), slice(92, 96))
"""Header bytes that may differ between equal databases: the journal mode and the change counters."""


class OnlineBackup:
    """A copy in progress, written to the file ``partial``. Raises OSError, apsw errors."""

    def __init__(self, source: apsw.Connection, partial: Path) -> None:
        _create_private(partial.parent)
        partial.unlink(missing_ok=True)
        os.close(os.open(partial, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        self.partial = partial
        self._copy = apsw.Connection(str(partial), flags=apsw.SQLITE_OPEN_READWRITE)
        harden(self._copy)
        # The copy is not used before it has been verified and synced, so it needs no journal on disk and no sync here.
        self._copy.execute("PRAGMA journal_mode = MEMORY")
        self._copy.execute("PRAGMA synchronous = OFF")
        self._backup = self._copy.backup("main", source, "main")
        self.pages = 0
        self.remaining = 0

    def step(self, clock: Clock, budget_ns: int) -> bool:
        until_ns = clock.monotonic_ns() + budget_ns
        while True:
            sync_point("writer.mid_backup")
            done = self._backup.step(_PAGES_PER_STEP)
            self.pages, self.remaining = self._backup.page_count, self._backup.remaining
            if done or clock.monotonic_ns() >= until_ns:
                return done

    def close(self) -> None:
        with contextlib.suppress(apsw.Error):
            self._backup.finish()
        self._copy.close()


def backup(
    connection: apsw.Connection,
    target: Path,
    clock: Clock,
    *,
    heartbeat: Callable[[], None] = lambda: None,
    on_tenth: Callable[[int], None] = lambda _: None,
) -> None:
    """Write a consistent, verified copy of the database to ``target``, readable by its owner only.

    An existing file is replaced only after the copy has passed verification. ``heartbeat`` is called meanwhile,
    ``on_tenth(n)`` when n tenths of the pages are copied. Raises ``StoreIOError`` if the copy fails verification; the
    copy is deleted then.
    """
    partial = target.with_name(target.name + PARTIAL)
    copy = OnlineBackup(connection, partial)
    tenths = synced = 0
    try:
        while not copy.step(clock, 100_000_000):
            heartbeat()
            done = copy.pages - copy.remaining
            if 10 * done // copy.pages > tenths:
                tenths = 10 * done // copy.pages
                on_tenth(tenths)
            if (done - synced) * PAGE_BYTES > _SYNC_BYTES:
                # Sync in portions, so that no single sync takes as long as a hang would.
                synced = done
                fsync_path(partial)
    except BaseException:
        copy.close()
        partial.unlink(missing_ok=True)
        raise
    copy.close()
    try:
        findings, _ = verify_copy(partial, heartbeat=heartbeat)
    except CheckIncomplete as error:
        partial.unlink(missing_ok=True)
        raise StoreIOError(f"the backup {target} {error.detail}") from error
    if findings:
        partial.unlink(missing_ok=True)
        raise StoreIOError(f"the backup {target} failed its check: {findings[0].text}")
    install(partial, target)


def verify_copy(path: Path, *, heartbeat: Callable[[], None] = lambda: None) -> tuple[list[Finding], int]:
    """Return ``(findings, live memories)`` of a database that no other process has open.

    The journal mode becomes DELETE, so that the database is a single file afterwards. Raises ``CheckIncomplete`` if the
    file cannot be opened or read for a reason that says nothing about its contents.
    """
    try:
        connection = open_copy(path)
    except UNCHECKABLE as error:
        raise incomplete(error) from error
    except apsw.Error as error:
        return [Finding(STRUCTURE, f"it cannot be opened: {error}")], 0
    try:
        connection.execute("PRAGMA journal_mode = DELETE")
        with heartbeat_during(connection, heartbeat):
            findings = scrub(connection, heartbeat=heartbeat)
            if is_structural(findings):
                return findings, 0
            return findings, live_memories(SqliteReads(connection))
    except UNCHECKABLE as error:
        raise incomplete(error) from error
    except apsw.Error as error:
        return [Finding(STRUCTURE, f"it cannot be read: {error}")], 0
    finally:
        connection.close()


def database_bytes(connection: apsw.Connection) -> int:
    return int(connection.pragma("page_count")) * int(connection.pragma("page_size"))


def is_copy_of(connection: apsw.Connection, path: Path, copy: Path, *, heartbeat: Callable[[], None]) -> bool:
    """Compare all pages of the database at ``path`` with the file ``copy``; return True if they are equal.

    ``connection`` must be the only writer. It checkpoints the log first; if a reader blocks that, return False. Raises
    OSError, apsw errors.

    The database is read through SQLite's own VFS. Closing a file descriptor of our own would drop every lock that this
    process holds on the file (https://sqlite.org/howtocorrupt.html, 2.2); another program that closes the database
    would then believe that it is the last one and delete the log under the writer.
    """
    frames, _ = checkpoint(connection, "truncate")
    size = database_bytes(connection)
    if frames != 0 or copy.stat().st_size != size:
        return False
    with _database_file(path) as ours, copy.open("rb") as theirs:
        for offset in range(0, size, _READ_BYTES):
            wanted = min(_READ_BYTES, size - offset)
            pages, others = bytearray(ours.xRead(wanted, offset)), bytearray(theirs.read(wanted))
            if offset == 0:
                for place in _FILE_HEADER_FIELDS:
                    pages[place] = others[place] = bytes(place.stop - place.start)
            if pages != others:
                return False
            heartbeat()
    return True


@contextlib.contextmanager
def _database_file(path: Path) -> Iterator[apsw.VFSFile]:
    file = apsw.VFSFile("", str(path.absolute()), [apsw.SQLITE_OPEN_MAIN_DB | apsw.SQLITE_OPEN_READONLY, 0])
    try:
        yield file
    finally:
        file.xClose()


def sweep_partials(directory: Path) -> None:
    """Delete unfinished copies with their journals and logs. No backup may be in progress."""
    for entry in directory.glob(f"*{PARTIAL}*"):
        if parse_backup_name(entry.name.partition(PARTIAL)[0]) is not None:
            entry.unlink(missing_ok=True)


def install(partial: Path, target: Path) -> None:
    """Rename the file to ``target``; file and name are synced to disk."""
    fsync_path(partial)
    sync_point("backup.before_rename")
    partial.replace(target)
    fsync_path(target.parent)
    fsync_path(target.parent.parent)  # the directory may be as new as the file


def _create_private(directory: Path) -> None:
    if directory.is_symlink():
        raise ConfigError(
            f"{directory} is a symbolic link; replace it with a real directory"
            " (`signet backup --to DIR` also copies a backup elsewhere)"
        )
    directory.mkdir(mode=0o700, exist_ok=True)
    if directory.stat().st_mode & 0o077:
        directory.chmod(0o700)
