"""Have the reports that hooks could not deliver sent once a minute, by a process of its own: ``signet-hook --drain``.

The hook program alone knows the form of these files, and sends them like any other report. The key in each makes it act
once, so a process that is killed in the middle does no harm.

Source: docs/guides/claude-code.md "While the daemon is away".
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from signet_actors.config.workspace import Workspace
from signet_actors.runtime.clock import Clock

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

INTERVAL_MS: Final = 60_000
FIRST_AFTER_MS: Final = 2_000
POLL_MS: Final = 500
LONGEST_MS: Final = 60_000
"""The process ends by itself within half of that."""


KEPT_S: Final = 7 * 86_400
"""How long a report that was set aside can be read; the process deletes it then."""


NOTED_S: Final = 86_400
"""How long health tells of a report that was set aside."""
_HYPHENS_OF_PUT_OFF: Final = 2
"""The name of a report that was tried ends with the number of its failures."""


class SpoolDrain:
    """Start the process if a report waits, or one that was set aside is to be deleted."""

    def __init__(self, clock: Clock, log: FilteringBoundLogger, workspace: Path) -> None:
        self._clock = clock
        self._log = log
        self._workspace = workspace
        self._process: subprocess.Popen[bytes] | None = None
        self._begun_ns = 0
        self.waiting = self.rejected = 0
        """Reports that could not be sent at least once, and those that were set aside within a day."""
        self.is_unusable = False
        """Whether something is in the place of the directory, or it cannot be written."""
        self.due_ns = clock.monotonic_ns() + FIRST_AFTER_MS * 1_000_000

    @property
    def running(self) -> bool:
        """Return whether the process has not been seen to end."""
        return self._process is not None

    def step(self) -> None:
        """Start the process if it has something to do, or look whether it has ended."""
        if self._process is None and self._begin():
            self._begun_ns = self._clock.monotonic_ns()
        if self._process is not None and self._clock.monotonic_ns() - self._begun_ns > LONGEST_MS * 1_000_000:
            self.stop()
        if self._process is not None and self._process.poll() is not None:
            self._process = None
        if self._process is None:
            self._count()
        pause_ms = INTERVAL_MS if self._process is None else POLL_MS
        self.due_ns = self._clock.monotonic_ns() + pause_ms * 1_000_000

    def stop(self) -> None:
        """End the process if it still runs; what it has not sent is sent later."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _count(self) -> None:
        waiting = rejected = 0
        place = Workspace(self._workspace).spool_dir
        usable = place.is_dir() and os.access(place, os.R_OK | os.W_OK | os.X_OK)
        self.is_unusable = os.path.lexists(place) and not usable
        with contextlib.suppress(OSError):
            for path in place.glob("*.json*"):
                waiting += path.suffix == ".json" and path.stem.count("-") == _HYPHENS_OF_PUT_OFF
                rejected += path.suffix == ".rejected" and time.time() - path.lstat().st_ctime < NOTED_S
        self.waiting, self.rejected = waiting, rejected

    def _begin(self) -> bool:
        try:
            if not any(map(_needs_process, Workspace(self._workspace).spool_dir.glob("*.json*"))):
                return False
            command = [sys.executable, "-P", "-m", "signet_actors.hook", "--drain", "--workspace", str(self._workspace)]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            self._log.warning("spool_drain_postponed", reason=error.strerror)
            return False
        return True


def _needs_process(path: Path) -> bool:
    return path.suffix == ".json" or (path.suffix == ".rejected" and time.time() - path.lstat().st_ctime > KEPT_S)
