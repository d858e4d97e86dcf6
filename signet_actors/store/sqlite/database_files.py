"""Check the files of a database before SQLite opens any of them.

SQLite keeps the log next to the path by which the database was opened, and the workspace lock is on that directory. A
database file with two names would therefore have two logs and two locks. Opening a FIFO or a device could block for
ever.

Source: docs/reliability.md R10; https://sqlite.org/howtocorrupt.html, "Multiple links to the same file".
"""

from __future__ import annotations

import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from signet_actors.errors import ConfigError

LOG_SUFFIXES: Final = ("-wal", "-journal")
"""Suffixes of files that may hold commits which are not in the database file yet."""
_SUFFIXES: Final = ("", "-wal", "-shm", "-journal")


def sibling(path: Path, suffix: str) -> Path:
    """Return ``path`` with ``suffix`` appended to its name."""
    return path.with_name(path.name + suffix)


def nonempty_logs(database: Path) -> Iterator[Path]:
    """Yield the logs of ``database`` that are not empty."""
    for suffix in LOG_SUFFIXES:
        log = sibling(database, suffix)
        try:
            if os.lstat(log).st_size > 0:
                yield log
        except FileNotFoundError:
            continue


def refuse_unsafe_files(database: Path, *, links_allowed: bool = False) -> None:
    """Raise ConfigError if a file of the database is not a regular file or has several hard links.

    ``links_allowed`` permits several hard links. The error names the file and the remedy.
    """
    for suffix in _SUFFIXES:
        path = sibling(database, suffix)
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise ConfigError(f"{path} cannot be examined: {error.strerror}") from None
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"{path} is {_kind(found.st_mode)} but must be a regular file; move it away")
        if found.st_nlink > 1 and not links_allowed:
            name, copy = shlex.quote(str(path)), shlex.quote(f"{path}.copy")
            raise ConfigError(
                f"{path} has {found.st_nlink} hard links: a daemon that uses another link could write the same"
                f" database; stop every daemon that uses it, then `cp {name} {copy} && mv {copy} {name}`"
            )


def _kind(mode: int) -> str:
    for is_kind, name in (
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if is_kind(mode):
            return name
    return "a device"
