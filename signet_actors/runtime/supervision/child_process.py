"""The operating system side of one child: its running process and its standby process.

Every process is a fresh interpreter on a module, never a fork of the supervisor. The decision to start or restart one
is made in ``supervisor.py``.

Source: docs/reliability.md "Supervision policy", R9 and R10.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from signet_actors.runtime.processes.signals import blocked
from signet_actors.runtime.supervision.process_activity import read_activity

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_PIPE_BYTES = 48 * 1024
"""Less than an empty pipe accepts without blocking. The warm-up context and the real one may both be in it."""
_KILL_WAIT_MS = 2_000
_CHILD_MAIN = "signet_actors.runtime.processes.child_main"


class ChildProcess:
    """The processes of the child ``name``: at most one running and one standby.

    ``inherited`` lists the file descriptors that each process inherits. ``environ`` is added to the supervisor's own
    environment.
    """

    def __init__(
        self,
        name: str,
        module: str,
        inherited: tuple[int, ...],
        log: FilteringBoundLogger,
        environ: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.inherited = inherited
        self._environ = environ
        self._name = name
        self._module = module
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._standby: subprocess.Popen[bytes] | None = None
        self._warmup_bytes = 0

    @property
    def exists(self) -> bool:
        """True from ``launch`` until ``clear``: an exited process counts until its exit has been handled."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        """The process id of the running process."""
        return self._process.pid if self._process is not None else None

    def launch(self, document: bytes) -> None:
        """Start the child with the JSON line ``document``, in the standby process if there is one.

        A fresh process reads the line from an unlinked file, because writing to a pipe could block. Raises OSError when
        memory, processes or disk space run out.
        """
        self._process = self._adopt_standby(document)
        if self._process is None:
            with tempfile.TemporaryFile() as file:
                file.write(document)
                file.seek(0)
                self._process = self.start_interpreter(file.fileno())

    def spawn_standby(self, warmup: bytes) -> None:
        """Start a standby process: it imports the child's code, warms up, and waits for its context on stdin.

        ``warmup`` is the context to warm up with. The process has no name, socket or heartbeat yet; its exit is
        ignored.
        """
        if self._standby is not None:
            return
        try:
            self._standby = self.start_interpreter(subprocess.PIPE)
        except OSError as error:  # no memory or no processes: the next start imports its code itself
            self._log.warning("standby_failed", child=self._name, exc_info=error)
            return
        self._warmup_bytes = 0
        if len(warmup) <= _PIPE_BYTES // 2:
            self._warmup_bytes = len(warmup)
            self._write_to_stdin(self._standby, warmup)
        self._log.info("standby_prepared", child=self._name, pid=self._standby.pid)

    def kill_standby(self) -> None:
        """Kill the standby process, if there is one."""
        process, self._standby = self._standby, None
        if process is None:
            return
        process.kill()
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # it exited before it read the warm-up context
                process.stdin.close()
        try:
            process.wait(_KILL_WAIT_MS / 1000)
        except subprocess.TimeoutExpired:
            self._log.critical("standby_kill_failed", child=self._name, pid=process.pid)

    def kill(self) -> None:
        """Send SIGKILL to the running process, if any; ``reap`` returns its exit code later."""
        if self._process is not None:
            self._process.kill()

    def reap(self) -> int | None:
        """Return the exit code (minus the signal number) of the running process, None while it runs; never waits.

        Only processes started here are waited for. The child still ``exists`` until ``clear``, so that its last
        messages are not mistaken for those of an unknown process.
        """
        if self._standby is not None and self._standby.poll() is not None:
            self.kill_standby()
        return self._process.poll() if self._process is not None else None

    def clear(self) -> None:
        """Forget the exited process, so that ``launch`` can start another."""
        self._process = None

    def terminate(self) -> None:
        """Kill both processes and wait for them; log the pid of one that does not end."""
        self.kill_standby()
        if self._process is None:
            return
        self._process.kill()
        try:
            self._process.wait(_KILL_WAIT_MS / 1000)
        except subprocess.TimeoutExpired:
            self._log.critical("child_kill_failed", child=self._name, pid=self._process.pid)

    def _adopt_standby(self, document: bytes) -> subprocess.Popen[bytes] | None:
        """Pass ``document`` to the standby process and return it; None when there is none that can take it."""
        process = self._standby
        if process is None:
            return None
        too_long = self._warmup_bytes + len(document) > _PIPE_BYTES
        activity = read_activity(process.pid)
        if process.poll() is not None or too_long or (activity is not None and activity.is_stopped):
            self.kill_standby()
            return None
        self._standby = None
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin:
            self._write_to_stdin(process, document)
        return process

    @staticmethod
    def _write_to_stdin(process: subprocess.Popen[bytes], document: bytes) -> None:
        """Write the line to the process; if it has exited, ``reap`` finds out."""
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(document)
            process.stdin.flush()

    def start_interpreter(self, stdin: int) -> subprocess.Popen[bytes]:
        """Start an interpreter on the child's module; the current directory is not on its import path."""
        with blocked():
            return subprocess.Popen(
                [sys.executable, "-P", "-m", _CHILD_MAIN, str(os.getpid()), self._module],
                stdin=stdin,
                pass_fds=self.inherited,
                env={**os.environ, **self._environ},
            )
