"""Run one command, then kill and reap every process that it has started; a stand-alone, standard-library program.

``python -I -S process_reaper.py PARENT_PID PROGRAM ARGUMENT...`` passes stdin, stdout and stderr to the command and
returns its exit code. Everything below it is killed when the command ends, on SIGTERM, and when the parent exits:
command-line agents start servers and tools, some in their own sessions, which would run for days. On Linux this process
is a subreaper, so orphans become its children. Elsewhere the command's process group is killed.

Source: docs/reliability.md R10 (the death signal of the kernel, then the comparison of getppid).
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
"""Bound for a command that starts processes faster than they can be killed."""


def prctl(option: int, value: int) -> None:
    """Set a ``prctl`` option of this process; do nothing on systems other than Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def run(program: str, arguments: list[str]) -> int:
    """Start the command and return its pid. Raises OSError."""
    pid = os.fork()
    if pid:
        with contextlib.suppress(OSError):  # parent and child both set the group; the second call may fail
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
    """Redirect stdin, stdout and stderr to the null device, so that only the command holds the pipes."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)


def wait_for_command(command: int) -> int:
    """Wait for the command; return its wait status, or -1 after a stop signal."""
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
    """Return the pids of this process's children."""
    me = os.getpid()
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:
                    # The program name may contain blanks and brackets; the fields after it cannot.
                    fields = file.read().rpartition(b")")[2].split()
                if int(fields[1]) == me:
                    found.append(int(name))
    return found


def kill_all(command: int) -> None:
    """Kill and reap every process that the command started."""
    for _ in range(MAX_KILL_ROUNDS):
        if sys.platform == "linux":
            for pid in children():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        else:
            with contextlib.suppress(OSError):
                os.killpg(command, signal.SIGKILL)
        try:
            # Children of a process that ends here become children of this process, so check again.
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def main() -> int:
    """Run the command, clean up after it, and return its exit code."""
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
