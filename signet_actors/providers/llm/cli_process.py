"""One run of a command-line model: bounded in time and output, and nothing of it is left afterwards.

The command runs in a session of its own under a keeper (``cli_keeper``), which kills and reaps everything below it
when it ends, when it is asked to, and when this process dies. The prompt goes in by stdin: an argument is visible to
every user of the machine, is limited in length, and is an option when it begins with a dash.

A thread stays with the keeper until it is reaped. It is the thread that started it, as it must be: the kernel's death
signal is tied to the thread, not to the process.

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
"""How long the keeper may take to bury what it started, before it is killed itself."""
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
"""What a program needs to find its own settings and the network; no key of anybody."""


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
    """What to run: an absolute program path, its arguments, its whole environment and its directory."""

    program: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    max_output_bytes: int


def clean_environment(environment: Mapping[str, str], *, also: Sequence[str] = ()) -> dict[str, str]:
    """What a command is given of ``environment``: the little that programs need, and the names in ``also``.

    The variables that keep a harness's hooks from calling this daemon are set: a model that is asked about a memory
    must not make new ones (docs/compatibility.md "Real clients: Claude Code").
    """
    kept = {name: environment[name] for name in (*_INHERITED_VARIABLES, *also) if name in environment}
    return {**kept, "TERM": "dumb", "NO_COLOR": "1", "SIGNET_NO_HOOKS": "1", "SIGNET_BYPASS": "1"}


async def run_cli(command: CliCommand, text: bytes, *, timeout_ms: int) -> CliOutcome:
    """How ``command`` ended after it was given ``text``; no process of it is left, even if this is cancelled.

    Raises OSError when it cannot be started.
    """
    run = _Run(command, text, time.monotonic() + timeout_ms / 1000)
    loop = asyncio.get_running_loop()
    ended = loop.create_future()

    def work() -> None:
        try:
            outcome: CliOutcome | OSError = run.execute()
        except OSError as error:
            outcome = error
        with contextlib.suppress(RuntimeError):  # the loop is gone, and so is whoever waited
            loop.call_soon_threadsafe(_answer, ended, outcome)

    # A thread of its own, not of a pool: it may not end before the command, nor wait for another one to end.
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
    """``ended`` is done, however often the waiting is cancelled: the keeper ends within its grace."""
    while not ended.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(ended)
    ended.exception()


@dataclass(slots=True)
class _Run:
    """The life of one keeper, on one thread; ``stop`` may be called from another."""

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
        """The run ends soon."""
        self._stopping.set()
        with self._lock:
            if self._wake is not None:
                os.write(self._wake[1], b"x")

    def execute(self) -> CliOutcome:
        """Start, feed, read, bury. Raises OSError when it cannot be started."""
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
        """Feed and read until the command has ended or must end."""
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
        """True while there is more to write."""
        try:
            self._written += os.write(pipe.fileno(), self.text[self._written : self._written + _READ_BYTES])
        except BlockingIOError:
            return True
        except OSError:  # the command does not want to read any more
            return False
        return self._written < len(self.text)

    def _read(self, pipe: IO[bytes], into: bytearray) -> bool:
        """False at the end of the pipe. Errors are kept up to a bound, and read beyond it so that nobody blocks."""
        try:
            data = os.read(pipe.fileno(), _READ_BYTES)
        except BlockingIOError:
            return True
        into += data if into is self._output else data[: MAX_ERROR_BYTES - len(into)]
        return bool(data)

    def _await_exit(self, process: subprocess.Popen[bytes]) -> Ending:
        """The command closed its outputs: it ends now, or it is a daemon and must be ended."""
        while process.poll() is None:
            if self._stopping.is_set():
                return Ending.STOPPED
            if time.monotonic() >= self.deadline_s:
                return Ending.TIMED_OUT
            time.sleep(_POLL_S)
        return Ending.EXITED

    def _close_reaper(self, process: subprocess.Popen[bytes]) -> None:
        """The keeper is reaped, and it has reaped all others."""
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
