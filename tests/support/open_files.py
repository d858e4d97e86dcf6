"""Which process has which file open, and how, according to the kernel.

Source: docs/reliability.md R15; proc(5), ``/proc/PID/fdinfo``.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def family(supervisor: int) -> list[int]:
    """Return the running processes that the supervisor started, and the fork server."""
    found: list[int] = []
    waiting = [supervisor]
    while waiting:
        pid = waiting.pop()
        found.append(pid)
        try:
            text = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
        except OSError:
            continue
        waiting += [int(child) for child in text.split()]
    return found


def writers_of(path: Path, pids: list[int]) -> list[int]:
    """Return those of ``pids`` that have ``path`` open for writing."""
    wanted = str(path)
    return [pid for pid in pids if any(link == wanted and writable for link, writable in open_files(pid))]


def open_files(pid: int) -> Iterator[tuple[str, bool]]:
    """Return each open file of the process and whether it is open for writing; empty if the process has exited."""
    directory = f"/proc/{pid}/fd"
    try:
        descriptors = os.listdir(directory)
    except OSError:
        return
    for descriptor in descriptors:
        try:
            link = os.readlink(f"{directory}/{descriptor}")
            info = Path(f"/proc/{pid}/fdinfo/{descriptor}").read_text(encoding="ascii")
        except OSError:
            continue
        flags = next((int(line.split()[1], 8) for line in info.splitlines() if line.startswith("flags:")), 0)
        yield link, flags & os.O_ACCMODE != os.O_RDONLY


class OneWriterWatch:
    """Repeatedly checks which processes have the database open for writing; ``violations`` lists multiple writers."""

    def __init__(self, path: Path, supervisor: Callable[[], int | None]) -> None:
        self.looks = 0
        self.seen_writer = 0
        self.violations: list[list[int]] = []
        self._path = path
        self._supervisor = supervisor
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def look(self) -> None:
        supervisor = self._supervisor()
        if supervisor is None:
            return
        writers = writers_of(self._path, family(supervisor))
        self.looks += 1
        self.seen_writer += bool(writers)
        if len(writers) > 1:
            self.violations.append(writers)

    def _watch(self) -> None:
        while not self._stop.wait(0.05):
            self.look()


@contextmanager
def one_writer_watched(path: Path, supervisor: Callable[[], int | None]) -> Iterator[OneWriterWatch]:
    """Run the watch for the duration of the block."""
    watch = OneWriterWatch(path, supervisor)
    watch._thread.start()
    try:
        yield watch
    finally:
        watch._stop.set()
        watch._thread.join(30)


def cpu_seconds(pid: int) -> float:
    """Return the user and system time that the process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def no_longer(pids: list[int], *, within_s: float) -> list[int]:
    """Return those of ``pids`` that still run after the timeout; zombies do not count."""
    until = time.monotonic() + within_s
    while left := [pid for pid in pids if _runs(pid)]:
        if time.monotonic() > until:
            return left
        time.sleep(0.01)
    return []


def _runs(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"
