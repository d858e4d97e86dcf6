"""Connections to the database, configured in one place.

A writer connection is the only one that writes and the only one that checkpoints; readers open the file
``mode=ro``, which cannot do either (a ``query_only`` connection still checkpoints).

Source: reliability.md sections 0 (1-4) and 1 (R5, R14, R15); decisions.md 1, 2, 45.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import apsw
import sqlite_vec

from signet_actors.errors import ConfigError, ForeignDatabase

APPLICATION_ID = 0x5369676E
"""``Sign`` in ASCII: bytes 68-71 of our database file. Source: decisions.md 45."""

MINIMUM_SQLITE = (3, 51, 3)
"""First release without the WAL-reset bug. Source: reliability.md section 0 (2)."""

_SQLITE_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_APPLICATION_ID_OFFSET = 68


def check_sqlite_version() -> str:
    """The linked SQLite is free of the WAL-reset bug, or ``ConfigError``."""
    version = apsw.sqlite_lib_version()
    if tuple(int(part) for part in version.split(".")[:3]) < MINIMUM_SQLITE:
        needed = ".".join(map(str, MINIMUM_SQLITE))
        raise ConfigError(f"SQLite {version} can lose committed pages; {needed} or newer is needed (apsw brings it)")
    return version


def check_ownership(path: Path) -> bool:
    """True when ``path`` holds a database of ours, False when there is nothing yet.

    Reads the header bytes only; a foreign file is never opened by SQLite, so nothing in it can change.

    Raises ``ForeignDatabase``. Source: decisions.md 45.
    """
    try:
        with path.open("rb") as file:
            header = file.read(_HEADER_BYTES)
    except FileNotFoundError:
        return False
    if not header:
        return False
    way_out = "choose another workspace with SIGNET_WORKSPACE, or move the file away and import it"
    if len(header) < _HEADER_BYTES or not header.startswith(_SQLITE_MAGIC):
        raise ForeignDatabase(f"{path} is not a SQLite database; {way_out}")
    (application_id,) = struct.unpack_from(">I", header, _APPLICATION_ID_OFFSET)
    if application_id != APPLICATION_ID:
        raise ForeignDatabase(
            f"{path} was made by another program (application id {application_id:#x}) and is left untouched; {way_out}"
        )
    return True


def _load_vec(connection: apsw.Connection) -> None:
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.enable_load_extension(False)


def open_writer(path: Path, *, busy: Callable[[int], bool], vfs: str | None = None) -> apsw.Connection:
    """A connection that may write: WAL, ``synchronous=FULL``, no automatic checkpoints, foreign keys on.

    ``busy(n)`` is called when another program holds the lock, n times so far; False gives up.
    A new file is stamped with our application id before it enters WAL mode, so that the stamp is in the main
    file whatever happens next. Raises ``ForeignDatabase``, ``ConfigError``, apsw errors.
    """
    check_sqlite_version()
    if not check_ownership(path):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    connection = apsw.Connection(
        str(path), flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_NOFOLLOW, vfs=vfs, statementcachesize=256
    )
    connection.set_busy_handler(busy)
    _load_vec(connection)
    if connection.pragma("page_count") == 0:
        # One transaction: a kill at any point leaves an empty file or one that bears our id.
        connection.execute("PRAGMA page_size = 4096")
        connection.execute("BEGIN")
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute("PRAGMA cache_size = -16384")
    connection.execute(f"PRAGMA journal_size_limit = {16 << 20}")
    connection.wal_autocheckpoint(0)
    return connection


def open_reader(path: Path, *, cache_kib: int = 16384) -> apsw.Connection:
    """A connection that can only read and never checkpoints."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    connection = apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, statementcachesize=256)
    connection.set_busy_timeout(1000)
    _load_vec(connection)
    # FTS5 looks terms up with range queries of its own, which SQLite would otherwise compile anew for each value.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.execute("PRAGMA temp_store = MEMORY")
    connection.execute(f"PRAGMA cache_size = -{cache_kib}")
    return connection
