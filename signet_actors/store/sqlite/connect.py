"""Connections to the database, configured in one place.

The writer's connection is the only one that writes and checkpoints. Readers open the file with ``mode=ro``, which can
do neither (a ``query_only`` connection still checkpoints).

Source: docs/reliability.md "Ground rules" 1-4, R5, R14 and R15; docs/decisions.md 1, 2, 45.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw

from signet_actors.config.regular_file import open_regular
from signet_actors.errors import ConfigError, DatabaseMissing, ForeignDatabase
from signet_actors.runtime.file_draft import fsync_path
from signet_actors.store.sqlite.database_files import nonempty_logs, sibling

APPLICATION_ID = 0x5369676E
"""``Sign`` in ASCII, at bytes 68-71 of the database file. Source: docs/decisions.md 45."""

MINIMUM_SQLITE = (3, 51, 3)
"""First release without the WAL-reset bug. Source: docs/reliability.md "Ground rules" 2."""

_SQLITE_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_APPLICATION_ID_OFFSET = 68
_HEARTBEAT_STEPS = 20_000
_READER_CACHE_KIB = 16384


def check_sqlite_version() -> str:
    """Return the version of the linked SQLite. Raises ``ConfigError`` if it has the WAL-reset bug."""
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")[:3]) < MINIMUM_SQLITE:
        needed = ".".join(map(str, MINIMUM_SQLITE))
        raise ConfigError(f"SQLite {version} can lose committed pages; {needed} or newer is needed (apsw brings it)")
    return version


def check_ownership(path: Path, *, follow: bool = False) -> bool:
    """Return True if ``path`` holds a database of this program, False if the file is missing or empty.

    Only the header bytes are read. SQLite never opens a foreign file, so it cannot change. ``follow`` allows a
    symbolic link. Raises ``ForeignDatabase``, and ``ConfigError`` if the path is not a regular file.
    """
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY, follow=follow), "rb") as file:
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return False
    if not header:
        return False
    way_out = "choose another workspace with SIGNET_WORKSPACE, or move the file away and import it"
    if len(header) < _HEADER_BYTES or not header.startswith(_SQLITE_MAGIC):
        raise ForeignDatabase(
            f"{path} is not a SQLite database; {way_out}; if it is a damaged database of Signet, run"
            " `signet restore latest`"
        )
    (application_id,) = struct.unpack_from(">I", header, _APPLICATION_ID_OFFSET)
    if application_id != APPLICATION_ID:
        raise ForeignDatabase(
            f"{path} was made by another program (application id {application_id:#x}) and is not changed; {way_out}"
        )
    return True


def _create(path: Path, vfs: str | None) -> None:
    """Create an empty database with our application id; a crash or power cut leaves either all of it or nothing.

    The file is created under another name and renamed when it is complete, because a half-written first page would look
    like a foreign file for ever. A leftover log or journal must not be applied to the new database: an empty one is
    removed, a non-empty one may hold commits. Raises ``DatabaseMissing`` for the latter.
    """
    for log in nonempty_logs(path):
        raise DatabaseMissing(f"{path} is missing, and {log} still exists")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.new")
    for leftover in (fresh, fresh.with_name(f"{fresh.name}-journal")):
        leftover.unlink(missing_ok=True)
    os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    connection = apsw.Connection(str(fresh), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW, vfs=vfs)
    try:
        harden(connection)
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA page_size = 4096")
        connection.execute("BEGIN")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    finally:
        connection.close()
    for suffix in ("-journal", "-wal", "-shm"):
        sibling(path, suffix).unlink(missing_ok=True)
    os.replace(fresh, path)
    fsync_path(path.parent)
    fsync_path(path.parent.parent)


@functools.cache
def _vec_extension() -> str:
    """Return the path of sqlite-vec's library without importing the package.

    The package imports numpy for functions that are not used here. That would take a third of the writer's start time
    and half of its memory.
    """
    found = importlib.util.find_spec("sqlite_vec")
    if found is None or found.origin is None:
        raise ConfigError("the package sqlite-vec is not installed")
    return str(Path(found.origin).with_name("vec0"))


def harden(connection: apsw.Connection) -> None:
    """Distrust triggers and views in the database file, and forbid direct writes to the shadow tables of indexes.

    Source: https://sqlite.org/security.html, "Untrusted SQLite Database Files".
    """
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    connection.config(apsw.SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0)


def _load_vec(connection: apsw.Connection) -> None:
    connection.enable_load_extension(True)
    connection.load_extension(_vec_extension())
    connection.enable_load_extension(False)


def _configure_writer(connection: apsw.Connection, busy: Callable[[int], bool], *, set_wal: bool) -> None:
    harden(connection)
    # Closing does no I/O: a writer that exits because of a broken disk must not retry a failed sync.
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.set_busy_handler(busy)
    _load_vec(connection)
    # Compile each statement once, regardless of bound values. Otherwise SQLite compiles it again for each value that a
    # LIMIT or partial index could use; finding a ready job took twenty times as long.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    if set_wal:
        connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA cache_size = -16384")
    connection.execute(f"PRAGMA journal_size_limit = {16 << 20}")
    connection.wal_autocheckpoint(0)


def open_writer(
    path: Path, *, busy: Callable[[int], bool], vfs: str | None = None, create: bool = True, set_wal: bool = True
) -> apsw.Connection:
    """Open a connection that may write: WAL, ``synchronous=FULL``, no automatic checkpoints, foreign keys on.

    ``busy(n)`` is called while another program holds the lock, after n earlier calls; return False to give up. A
    missing file is created if ``create`` is true. Raises ``DatabaseMissing`` if it is false or if the file is empty
    (this program never leaves an empty file), ``ForeignDatabase``, ``ConfigError``, apsw errors.
    Without ``set_wal`` the journal mode stays as it is, because setting it writes the file.
    """
    check_sqlite_version()
    if not check_ownership(path):
        if path.exists():
            raise DatabaseMissing(f"{path} is empty")
        if not create:
            raise DatabaseMissing(f"{path} is missing")
        _create(path, vfs)
    connection = apsw.Connection(
        str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW, vfs=vfs, statementcachesize=256
    )
    try:
        _configure_writer(connection, busy, set_wal=set_wal)
    except BaseException:
        with contextlib.suppress(apsw.Error):  # report the first error, not this one
            connection.close()
        raise
    return connection


def open_copy(path: Path) -> apsw.Connection:
    """Open a writable connection to a database that only the caller uses. Raises apsw errors."""
    connection = apsw.Connection(
        str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW, statementcachesize=256
    )
    try:
        harden(connection)
        _load_vec(connection)
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA cache_size = -16384")
    except apsw.Error:
        connection.close()
        raise
    return connection


def open_memory() -> apsw.Connection:
    """Open an empty in-memory database with support for vector tables."""
    connection = apsw.Connection(":memory:")
    harden(connection)
    _load_vec(connection)
    return connection


def has_moved(connection: apsw.Connection) -> bool:
    """Return True if SQLite reports that the open file is no longer the one at its path."""
    moved = ctypes.c_int(0)
    connection.file_control("main", apsw.SQLITE_FCNTL_HAS_MOVED, ctypes.addressof(moved))
    return bool(moved.value)


def drop_cached_pages(connection: apsw.Connection) -> None:
    """Free SQLite's page cache; the next statements read the pages from the operating system's cache."""
    connection.execute("PRAGMA shrink_memory")


def open_reader(path: Path) -> apsw.Connection:
    """Open a read-only connection that never checkpoints."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, statementcachesize=256)
    harden(connection)
    connection.set_busy_timeout(1000)
    _load_vec(connection)
    # FTS5 looks terms up by range queries, which SQLite would otherwise compile again for each value.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA cache_size = -{_READER_CACHE_KIB}")
    return connection


def report_progress(connection: apsw.Connection, callback: Callable[[], None]) -> None:
    """Call ``callback`` every few milliseconds during statements; an exception from it ends the statement."""

    def reported() -> bool:
        callback()
        return False  # continue

    connection.set_progress_handler(reported, _HEARTBEAT_STEPS)


@contextlib.contextmanager
def heartbeat_during(connection: apsw.Connection, heartbeat: Callable[[], None]) -> Iterator[None]:
    """Call ``heartbeat`` every few milliseconds while SQLite executes statements inside the block.

    A statement that waits for a lock or the disk does not call it. An exception from ``heartbeat`` ends the statement.
    The connection has no progress handler afterwards.
    """
    report_progress(connection, heartbeat)
    try:
        yield
    finally:
        connection.set_progress_handler(None)
