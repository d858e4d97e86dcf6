"""A process that does one piece of work beside retention, prints its result as JSON and ends.

Source: docs/architecture.md "Directories".
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

ResultT = TypeVar("ResultT")
_STOP_WAIT_S = 1.0


class WorkProcess(Generic[ResultT]):
    """``python -m MODULE ARGUMENTS``. ``failed`` makes the result of a process that printed none, of the reason."""

    def __init__(
        self, module: str, arguments: Sequence[str], result: type[ResultT], failed: Callable[[str], ResultT]
    ) -> None:
        self._result = result
        self._failed = failed
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def poll(self) -> ResultT | None:
        """Return the result, or None while the process runs. The output fits into the pipe, so writing never blocks."""
        code = self._process.poll()
        if code is None:
            return None
        assert self._process.stdout is not None
        with self._process.stdout as pipe:
            output = pipe.read()
        try:
            return msgspec.json.decode(output, type=self._result)
        except msgspec.MsgspecError:
            return self._failed(f"the process failed (exit code {code})")

    def stop(self) -> None:
        """Kill the process if it still runs. One that a hanging file system keeps is left alone."""
        self._process.kill()
        try:
            self._process.wait(_STOP_WAIT_S)
        except subprocess.TimeoutExpired:
            return
        assert self._process.stdout is not None
        self._process.stdout.close()
