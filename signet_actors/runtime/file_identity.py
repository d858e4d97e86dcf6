"""Check whether a path still leads to the file that was opened there.

A removed or renamed file stays open in the processes that have it: they would write to it, but no other process would
find what they wrote. Two file systems may use the same inode number, so the device is compared too.

Source: docs/reliability.md R26.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from signet_actors.protocol.control import FileIdentity


def identify(path: Path) -> FileIdentity | None:
    """Return the identity of the file at ``path``, None if there is none. Raises OSError if it cannot tell."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return FileIdentity(str(path), found.st_dev, found.st_ino)


def displaced(
    files: Iterable[FileIdentity], *, inspect: Callable[[str, os.stat_result], str | None] | None = None
) -> str | None:
    """Return a description of a file that is no longer at its path; None while all of them are.

    ``inspect`` gets each path and its status, and returns what else is wrong with the file. Costs one system call per
    file, because it runs before every commit.
    """
    for file in files:
        try:
            found = os.stat(file.path)
        except (FileNotFoundError, NotADirectoryError):
            return f"{file.path} was removed or renamed"
        except OSError as error:
            return f"{file.path} cannot be reached ({error.strerror})"
        if found.st_ino != file.inode or found.st_dev != file.device:
            return f"{file.path} was replaced by another file"
        if inspect is not None and (problem := inspect(file.path, found)) is not None:
            return problem
    return None
