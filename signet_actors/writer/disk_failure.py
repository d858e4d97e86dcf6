"""What the writer does when the disk or the database file fails: it exits, and the next start checks the whole file.

Source: docs/reliability.md "Supervision policy".
"""

from __future__ import annotations

import contextlib

from signet_actors.config.workspace import Workspace
from signet_actors.errors import ActorExit, ExitCode
from signet_actors.store.errors import DAMAGED


def disk_failed(workspace: Workspace, cause: BaseException | None, detail: str) -> ActorExit:
    """Return the exit of the writer after ``cause``; after damaged pages, the next start checks the whole file."""
    if isinstance(cause, DAMAGED):
        with contextlib.suppress(OSError):
            workspace.integrity_check_file.touch(mode=0o600)
    return ActorExit(ExitCode.IO_ERROR, detail)
