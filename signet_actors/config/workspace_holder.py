"""Whether a process holds a workspace, as its advisory locks say: the kernel releases them when the holder exits.

Source: docs/reliability.md R10.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Final

from signet_actors.config.regular_file import open_regular, read_regular
from signet_actors.config.workspace import Workspace
from signet_actors.errors import ConfigError

MAX_HOLDER_BYTES: Final = 32
"""Length of the lock file, which names the holder."""


def is_locked(path: Path, *, directory: bool = False) -> bool:
    """Return whether another process holds the lock on the file or ``directory``.

    It tries a shared lock, so that two commands that check at the same time do not mistake each other for a daemon.
    Raises ConfigError if a file is not a regular file.
    """
    try:
        descriptor = (
            os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) if directory else open_regular(path, os.O_RDONLY)
        )
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return False


def lock_held(workspace: Path) -> bool:
    """Return whether another process locks the workspace or its database. Raises ConfigError for an irregular file."""
    places = Workspace(workspace)
    return is_locked(places.lock_file) or is_locked(places.memory_dir, directory=True)


def is_held_by(workspace: Path, pid: object) -> bool:
    """Return whether the lock file of the locked workspace names this pid, which may be another outside a container."""
    try:
        named = read_regular(Workspace(workspace).lock_file, MAX_HOLDER_BYTES).decode().strip()
    except (OSError, ConfigError, ValueError):
        return False
    return named == str(pid) and lock_held(workspace)
