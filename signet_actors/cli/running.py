"""Whether a supervisor runs on a workspace, and which process it is.

The lock file is the truth: the kernel releases it when its holder dies, however it dies. The pid file only says
whom to signal, and is believed only while the lock is held and the process looks like a supervisor.

Source: reliability.md R10.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from pathlib import Path
from typing import Final

from signet_actors.config.regular_file import open_regular, read_regular
from signet_actors.config.workspace import Workspace
from signet_actors.errors import ConfigError

_MAX_PID_BYTES: Final = 32


def lock_held(workspace: Path) -> bool:
    """Another process holds the workspace's lock. A shared lock is tried, so that two commands never meet in it.

    Raises ConfigError where the lock is no regular file.
    """
    try:
        descriptor = open_regular(Workspace(workspace).lock_file, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def supervisor_pid(workspace: Path) -> int | None:
    """The pid of the supervisor that runs on the workspace; None when none does, or it wrote no pid yet."""
    if not lock_held(workspace):
        return None
    try:
        pid = int(read_regular(Workspace(workspace).pid_file, _MAX_PID_BYTES))
    except (ConfigError, OSError, ValueError):
        return None
    return pid if pid > 1 and is_supervisor(pid) else None


def is_supervisor(pid: int) -> bool:
    """The process exists, is not a corpse, and was started as ``supervisor``."""
    return "supervisor" in command_line(pid)


def command_line(pid: int) -> str:
    """The command line of a process; empty when it is gone."""
    proc = Path("/proc") / str(pid) / "cmdline"
    if proc.parent.parent.joinpath("self").exists():
        try:
            return proc.read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            return ""
    listed = subprocess.run(
        ["ps", "-o", "command=", "-p", str(pid)], capture_output=True, text=True, check=False, timeout=5
    )
    return listed.stdout.strip()
