"""Find out whether a supervisor runs on a workspace, and its pid.

The locks decide, because the kernel releases them when their holder exits for any reason. The pid file is used only
to find the process to signal, and only while the lock is held and the process is a supervisor.

Source: docs/reliability.md R10.
"""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Final

from signet_actors.config.regular_file import read_regular
from signet_actors.config.workspace import Workspace
from signet_actors.config.workspace_holder import lock_held
from signet_actors.errors import ConfigError, WorkspaceLocked
from signet_actors.runtime.supervision.workspace_lock import LockingTool, kernel_holder, named_tool

MODULES: Final = Path(__file__).parents[1]
CHANGED_SINCE_START: Final = "the installation has changed since the daemon started"
_MAX_PID_BYTES: Final = 32


def running_tool(workspace: Path) -> LockingTool | None:
    """Return the restore, check or repair that holds the workspace; None if none does."""
    tool = named_tool(Workspace(workspace))
    return tool if tool is not None and lock_held(workspace) else None


def refuse_locked(workspace: Path, text: str, advice: str) -> None:
    """Raise WorkspaceLocked if the workspace is locked: ``text`` and ``advice`` are for the case that a daemon runs."""
    if (tool := running_tool(workspace)) is not None:
        raise WorkspaceLocked(tool.refusal(workspace))
    if lock_held(workspace):
        pid = supervisor_pid(workspace)
        raise WorkspaceLocked(f"{text}{f' (pid {pid})' if pid else ''}; {advice}")


def supervisor_pid(workspace: Path) -> int | None:
    """Return the pid of the workspace's supervisor; None if none runs, or if it has not written its pid yet."""
    if not lock_held(workspace):
        return None
    pid = _recorded_pid(workspace)
    if pid == 1:
        return 1 if _is_first_process(workspace) else None
    return pid if pid is not None and pid > 1 and is_supervisor(pid) else None


def changed_since_start(workspace: Path) -> bool:
    """Return whether modules of this installation have changed since the daemon of the workspace started."""
    try:
        started = Workspace(workspace).pid_file.stat().st_mtime
        return any(started < path.stat().st_mtime <= time.time() for path in MODULES.rglob("*.py"))
    except OSError:
        return False


def is_in_container(workspace: Path) -> bool:
    """Return whether the daemon is process 1 of a container, in which this process does not run."""
    return lock_held(workspace) and _recorded_pid(workspace) == 1 and not _is_first_process(workspace)


def _recorded_pid(workspace: Path) -> int | None:
    try:
        return int(read_regular(Workspace(workspace).pid_file, _MAX_PID_BYTES))
    except (ConfigError, OSError, ValueError):
        return None


def _is_first_process(workspace: Path) -> bool:
    """Return whether the kernel says that process 1 holds the workspace: it is the daemon, and we share its container.

    Elsewhere process 1 is the system's init, or the daemon of another workspace, which must not get our signals.
    """
    try:
        with Workspace(workspace).lock_file.open("rb") as lock:
            return kernel_holder(lock.fileno()) == 1 and "signet_actors.supervisor" in command_line(1)
    except OSError:
        return False


def is_supervisor(pid: int) -> bool:
    """Return whether the process exists, is not a zombie, and was started as ``supervisor``."""
    return "supervisor" in command_line(pid)


def command_line(pid: int) -> str:
    """Return the command line of a process; empty if it has exited."""
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
