"""Run a command-line model once, with limits on time and output, and leave no process behind.

The command runs in its own session under a reaper process (``process_reaper``), which kills everything that the command
started when it ends, on request, and when this process exits. The prompt goes in by stdin, because an argument is
visible to all users, limited in length, and parsed as an option if it starts with a dash. The thread that starts the
reaper waits for it, because the kernel ties the parent-death signal to the thread, not to the process.

Source: docs/reliability.md R10 and R11.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import IO, Final

MAX_ERROR_BYTES: Final = 4096
_READ_BYTES: Final = 1 << 16
_REAPER_GRACE_S: Final = 5.0
"""How long the reaper may take to kill and reap the command before it is killed itself."""
_POLL_S: Final = 0.02
_REAPER: Final = str(Path(__file__).with_name("process_reaper.py"))

_INHERITED_VARIABLES: Final = (
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
)
"""Variables that a program needs to find its settings and the network; none of them holds a key."""


class Ending(Enum):
    """Why a run is over."""

    EXITED = "exited"
    TIMED_OUT = "timed out"
    TOO_MUCH = "printed too much"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class CliOutcome:
    """``exit_code`` and ``output`` count only when the command ``EXITED`` by itself."""

    ending: Ending
    exit_code: int
    output: bytes
    errors: bytes


@dataclass(slots=True)
class CliCommand:
    """A command to run: absolute program path, arguments, complete environment and working directory."""

    program: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    max_output_bytes: int


def clean_environment(environment: Mapping[str, str], *, also: Sequence[str] = ()) -> dict[str, str]:
    """Return the environment for a command: the variables that programs need, and those named in ``also``.

    It also sets the variables that stop a harness's hooks from calling this daemon: a prompt about a memory must not
    create new memories (docs/compatibility.md "Real clients: Claude Code").
    """
    kept = {name: environment[name] for name in (*_INHERITED_VARIABLES, *also) if name in environment}
    return {**kept, "TERM": "dumb", "NO_COLOR": "1", "SIGNET_NO_HOOKS": "1", "SIGNET_BYPASS": "1"}


async def run_cli(command: CliCommand, text: bytes, *, timeout_ms: int) -> CliOutcome:
    """Run ``command`` with ``text`` on stdin; leave no process of it, even if cancelled. Raises OSError."""
    run = _Run(command, text, time.monotonic() + timeout_ms / 1000)
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def work() -> None:
        try:
            outcome: CliOutcome | OSError = run.execute()
        except OSError as error:
            outcome = error
        with contextlib.suppress(RuntimeError):  # the event loop is closed, so nothing waits for the result
            loop.call_soon_threadsafe(_answer, ended, outcome)

    # Not a pool thread: it must live as long as the command and must not wait for another command.
    threading.Thread(target=work, name="cli-provider", daemon=True).start()
    try:
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        run.stop()
        with contextlib.suppress(OSError):
            await _wait_despite_cancellation(ended)
        raise


def _answer(ended: asyncio.Future[CliOutcome], outcome: CliOutcome | OSError) -> None:
    if isinstance(outcome, OSError):
        ended.set_exception(outcome)
    else:
        ended.set_result(outcome)


async def _wait_despite_cancellation(ended: asyncio.Future[CliOutcome]) -> None:
    """Wait until ``ended`` is done, ignoring cancellation; the reaper ends within its grace period."""
    while not ended.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(ended)
    ended.exception()


@dataclass(slots=True)
class _Run:
    """One run of a reaper and its command, on one thread; ``stop`` may be called from another thread."""

    command: CliCommand
    text: bytes
    deadline_s: float
    _output: bytearray = field(default_factory=bytearray)
    _errors: bytearray = field(default_factory=bytearray)
    _written: int = 0
    _stopping: threading.Event = field(default_factory=threading.Event)
    _wake: tuple[int, int] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def stop(self) -> None:
        self._stopping.set()
        with self._lock:
            if self._wake is not None:
                os.write(self._wake[1], b"x")

    def execute(self) -> CliOutcome:
        """Start the command, exchange its input and output, and clean up. Raises OSError if it cannot be started."""
        wake = os.pipe()
        try:
            with self._lock:
                self._wake = wake
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", _REAPER, str(os.getpid()), self.command.program, *self.command.arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(self.command.environment),
                cwd=self.command.directory,
                start_new_session=True,
            )
            try:
                ending = self._pump(process, wake[0])
            finally:
                self._close_reaper(process)
        finally:
            with self._lock:
                self._wake = None
            for number in wake:
                os.close(number)
        return CliOutcome(ending, process.returncode, bytes(self._output), bytes(self._errors))

    def _pump(self, process: subprocess.Popen[bytes], wake: int) -> Ending:
        """Write the input and read the output until the command has ended or must be stopped."""
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        with selectors.DefaultSelector() as selector:
            selector.register(wake, selectors.EVENT_READ, None)
            for pipe, event in (
                (process.stdin, selectors.EVENT_WRITE),
                (process.stdout, selectors.EVENT_READ),
                (process.stderr, selectors.EVENT_READ),
            ):
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, event, pipe)
            open_outputs = 2
            while open_outputs:
                left_s = self.deadline_s - time.monotonic()
                if self._stopping.is_set():
                    return Ending.STOPPED
                if left_s <= 0:
                    return Ending.TIMED_OUT
                for key, _ in selector.select(left_s):
                    pipe = key.data
                    if pipe is None:
                        continue
                    if pipe is process.stdin:
                        if not self._feed(process.stdin):
                            selector.unregister(process.stdin)
                            process.stdin.close()
                    elif not self._read(pipe, self._output if pipe is process.stdout else self._errors):
                        selector.unregister(pipe)
                        open_outputs -= 1
                if len(self._output) > self.command.max_output_bytes:
                    return Ending.TOO_MUCH
        return self._await_exit(process)

    def _feed(self, pipe: IO[bytes]) -> bool:
        """Write the next part of the input; return True if there is more to write."""
        try:
            self._written += os.write(pipe.fileno(), self.text[self._written : self._written + _READ_BYTES])
        except BlockingIOError:
            return True
        except OSError:  # the command has closed its stdin
            return False
        return self._written < len(self.text)

    def _read(self, pipe: IO[bytes], into: bytearray) -> bool:
        """Read from the pipe; return False at its end. Surplus error output is read and discarded."""
        try:
            data = os.read(pipe.fileno(), _READ_BYTES)
        except BlockingIOError:
            return True
        into += data if into is self._output else data[: MAX_ERROR_BYTES - len(into)]
        return bool(data)

    def _await_exit(self, process: subprocess.Popen[bytes]) -> Ending:
        """Wait for the exit of a command that has closed its outputs, until the deadline; it may be a daemon."""
        while process.poll() is None:
            if self._stopping.is_set():
                return Ending.STOPPED
            if time.monotonic() >= self.deadline_s:
                return Ending.TIMED_OUT
            time.sleep(_POLL_S)
        return Ending.EXITED

    def _close_reaper(self, process: subprocess.Popen[bytes]) -> None:
        """Close the pipes and stop the reaper, which first reaps everything that the command started."""
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_REAPER_GRACE_S)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.kill()
        process.wait()
