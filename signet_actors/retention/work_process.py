"""A process that does one piece of work beside retention, prints its result as JSON and ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

ResultT = TypeVar("ResultT")
ResultT_co = TypeVar("ResultT_co", covariant=True)
_STOP_WAIT_S = 1.0


class Work(Protocol[ResultT_co]):
    """Work in progress in a process of its own."""

    def poll(self) -> ResultT_co | None:
        """Return the result, or None while the work goes on."""

    def stop(self) -> None:
        """End it, and discard its result."""


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
            bufsize=0,  # a read returns what the pipe contains
        )
        assert self._process.stdout is not None
        self._pipe = self._process.stdout
        self._output = bytearray()
        os.set_blocking(self._pipe.fileno(), False)

    def poll(self) -> ResultT | None:
        """Return the result, or None while the process runs. Empties the pipe, so that any result fits into it."""
        code = self._process.poll()
        self._output += self._pipe.read() or b""
        if code is None:
            return None
        self._pipe.close()
        try:
            return msgspec.json.decode(self._output, type=self._result)
        except msgspec.MsgspecError:
            return self._failed(f"the process failed (exit code {code})")

    def stop(self) -> None:
        """End the process if it still runs. One that a hanging file system keeps is left alone."""
        for end in (self._process.terminate, self._process.kill):
            end()
            try:
                self._process.wait(_STOP_WAIT_S)
            except subprocess.TimeoutExpired:
                continue
            self._pipe.close()
            return
