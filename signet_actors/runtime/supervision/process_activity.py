"""What the kernel says about a process: its state, the processor time that it used, and how long it waited for more.

Source: proc_pid_stat(5); the kernel's "Scheduler Statistics". Where there is no ``/proc`` (macOS), nothing is known.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


class Activity(NamedTuple):
    """``state``: the kernel's letter, such as ``R`` (running or ready to run). ``cpu_s``: of all its threads.

    ``waited_s``: how long its first thread was ready to run and waited for a processor; 0 if the kernel does not count.
    """

    state: str
    cpu_s: float
    waited_s: float = 0.0

    @property
    def is_stopped(self) -> bool:
        """True if a signal or a debugger has stopped the process."""
        return self.state in {"T", "t"}

    @property
    def waits_for_disk(self) -> bool:
        """True if the process waits in the kernel for a device, and cannot even be killed."""
        return self.state == "D"


def read_activity(pid: int) -> Activity | None:
    """Return the activity of a process, None if the kernel does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        used_s = (int(fields[11]) + int(fields[12])) / _TICKS_PER_S
        return Activity(fields[0].decode("ascii"), used_s, _waited_s(pid))
    except (OSError, ValueError, IndexError):
        return None


def _waited_s(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_bytes().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
