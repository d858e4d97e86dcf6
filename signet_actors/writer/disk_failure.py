"""What the writer does when the disk or the database file fails: it exits, and the next start checks the whole file.

Source: docs/reliability.md "Supervision policy".
"""

from __future__ import annotations

import errno
import os

from signet_actors.config.workspace import Workspace
from signet_actors.errors import ActorExit, ExitCode
from signet_actors.store.errors import DAMAGED


def disk_failed(workspace: Workspace, cause: BaseException | None, detail: str) -> ActorExit:
    """Return the exit of the writer after ``cause``; after damaged pages, the next start checks the whole file."""
    if isinstance(cause, DAMAGED):
        request_whole_check(workspace)
    return ActorExit(ExitCode.IO_ERROR, detail)


def request_whole_check(workspace: Workspace) -> None:
    """Have the next start check every page of the database, because one was found damaged.

    Raises ActorExit if the disk fails: then what was read from it says nothing about the database.
    """
    try:
        descriptor = os.open(workspace.integrity_check_file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.write(descriptor, b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno in {errno.EIO, errno.EROFS}:
            raise ActorExit(ExitCode.IO_ERROR, f"the disk failed: {error.strerror}") from error
