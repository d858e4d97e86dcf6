"""Runs one command and outlives everything that the command started; a program of its own, of the standard library.

``python -I -S cli_keeper.py PARENT_PID PROGRAM ARGUMENT...`` passes its stdin, stdout and stderr on to the command and
ends with the command's exit code. When the command ends, or SIGTERM says that it is to end, or the parent dies in
whatever way, the command and every process below it are killed and reaped before this one ends: a command-line agent
starts servers and tools of its own, some in sessions of their own, and an orphan of them would live for days.

On Linux this process is the subreaper of all that it starts, so that an orphan becomes its child and is found; and the
kernel signals it when its parent dies. Elsewhere the command's process group is what is killed.

Source: docs/reliability.md R10 (the death signal, then the comparison of getppid).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
CANNOT_RUN = 127
PARENT_EXITED = 75
STOP_SIGNALS = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
WAITED_SIGNALS = STOP_SIGNALS | {signal.SIGCHLD}
MAX_KILL_ROUNDS = 1000
"""Against a command that starts processes faster than they are killed."""


def prctl(option: int, value: int) -> None:
    """The kernel keeps ``option`` for this process; nothing happens where there is no such call."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def run(program: str, arguments: list[str]) -> int:
    """Start the command; returns its pid. Raises OSError."""
    pid = os.fork()
    if pid:
        with contextlib.suppress(OSError):  # whoever comes first; the other one is told that it is done
            os.setpgid(pid, pid)
        return pid
    try:
        os.setpgid(0, 0)
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in (signal.SIGPIPE, signal.SIGXFSZ, *WAITED_SIGNALS):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, set())
        os.execv(program, [program, *arguments])  # noqa: S606 - the point of this program
    except OSError as error:
        os.write(2, f"{program}: {error.strerror}\n".encode())
    os._exit(CANNOT_RUN)


def detach_stdio() -> None:
    """The pipes are the command's alone, so that each end of them is seen by the other side."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)


def wait_for_command(command: int) -> int:
    """The command's wait status once it has ended, or -1 when it has been asked to end."""
    while True:
        number = signal.sigwait(WAITED_SIGNALS)
        if number in STOP_SIGNALS:
            return -1
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == command:
                    return status
                if pid == 0:
                    break


def children() -> list[int]:
    """The processes whose parent is this one."""
    me = os.getpid()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The name of a program may hold blanks and brackets; the fields after it may not.
                    fields = file.read().rpartition(b")")[2].split()
                if int(fields[1]) == me:
                    found.append(int(name))
    return found


def kill_all(command: int) -> None:
    """No process that the command started is left."""
    for _ in range(MAX_KILL_ROUNDS):
        if sys.platform == "linux":
            for pid in children():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        else:
            with contextlib.suppress(OSError):
                os.killpg(command, signal.SIGKILL)
        try:
            # Whoever ends here leaves its own children to this process: look again.
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def main() -> int:
    """The command has run, and nothing of it is left."""
    parent, program, arguments = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
    signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_SIGNALS)
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:
        return PARENT_EXITED
    command = run(program, arguments)
    detach_stdio()
    status = wait_for_command(command)
    kill_all(command)
    return 128 + signal.SIGTERM if status < 0 else os.waitstatus_to_exitcode(status) & 0xFF


if __name__ == "__main__":
    sys.exit(main())
