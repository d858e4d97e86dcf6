"""The operating system's side of one child: its process.

It is forked by the fork server, or else a fresh interpreter on its module; never a fork of the supervisor, which has
threads and sockets. The decision to start or restart one is made in ``supervisor.py``.

Source: docs/reliability.md "Supervision policy", R9 and R10; docs/messaging.md rule 17.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from signet_actors.runtime.processes.signals import blocked
from signet_actors.runtime.supervision.fork_server import CHILD_ENVIRON, ForkServer

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_KILL_WAIT_S: Final = 2.0
_CHILD_MAIN: Final = "signet_actors.runtime.processes.child_main"


class ForkedProcess:
    """A child of this process that another one has forked; like ``subprocess.Popen`` as far as it is used here."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, minus the number of the signal that ended it; None while it runs."""
        if self._code is None:
            with contextlib.suppress(ChildProcessError):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)

    def wait(self, timeout: float) -> int:
        """Return the exit code. Raises TimeoutExpired."""
        until = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.002)
        return code


class ChildProcess:
    """The process of the child ``name``, with ``inherited`` descriptors and ``environ`` added to ours."""

    def __init__(
        self,
        name: str,
        module: str,
        inherited: tuple[int, ...],
        log: FilteringBoundLogger,
        environ: Mapping[str, str] = MappingProxyType({}),
        fork_server: ForkServer | None = None,
    ) -> None:
        self.inherited = inherited
        self._environ = environ
        self._name = name
        self._module = module
        self._log = log
        self._fork_server = fork_server
        self._process: subprocess.Popen[bytes] | ForkedProcess | None = None

    @property
    def exists(self) -> bool:
        """True from ``launch`` until ``clear``: an exited process counts until its exit has been handled."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def launch(self, document: bytes) -> None:
        """Start the child with the JSON line ``document``.

        It reads the line from an unlinked file, because writing to a pipe could block. Raises OSError when memory,
        processes or disk space run out.
        """
        with tempfile.TemporaryFile() as file:
            file.write(document)
            file.seek(0)
            pid = None
            if self._fork_server is not None:
                pid = self._fork_server.fork(self._module, self.inherited, self._environ, file.fileno())
            self._process = ForkedProcess(pid) if pid is not None else self._start_interpreter(file.fileno())

    def kill(self) -> None:
        """Send SIGKILL to the running process, if any; ``reap`` returns its exit code later."""
        if self._process is not None:
            self._process.kill()

    def reap(self) -> int | None:
        """Return the exit code (minus the signal number) of the running process, None while it runs; never waits.

        The child still ``exists`` until ``clear``, so that its last messages are not mistaken for those of an unknown
        process.
        """
        return self._process.poll() if self._process is not None else None

    def clear(self) -> None:
        """Forget the exited process, so that ``launch`` can start another."""
        self._process = None

    def terminate(self) -> None:
        """Kill the process and wait for it; log the pid of one that does not end."""
        if self._process is None:
            return
        self._process.kill()
        try:
            self._process.wait(_KILL_WAIT_S)
        except subprocess.TimeoutExpired:
            self._log.critical("child_kill_failed", child=self._name, pid=self._process.pid)

    def _start_interpreter(self, stdin: int) -> subprocess.Popen[bytes]:
        """Start an interpreter on the child's module; the current directory is not on its import path."""
        with blocked():
            return subprocess.Popen(
                [sys.executable, "-P", "-m", _CHILD_MAIN, str(os.getpid()), self._module],
                stdin=stdin,
                pass_fds=self.inherited,
                env={**os.environ, **CHILD_ENVIRON, **self._environ},
            )
