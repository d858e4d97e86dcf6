"""What the kernel says about a process: its state, and the processor time that it has used.

Source: proc_pid_stat(5). Where there is no ``/proc`` (macOS), nothing is known.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")


class Activity(NamedTuple):
    """``state``: the kernel's letter, such as ``R`` (running or ready to run). ``cpu_s``: of all its threads."""

    state: str
    cpu_s: float

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
        return Activity(fields[0].decode("ascii"), (int(fields[11]) + int(fields[12])) / _TICKS_PER_S)
    except (OSError, ValueError, IndexError):
        return None
