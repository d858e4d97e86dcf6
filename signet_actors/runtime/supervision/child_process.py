"""One child as the kernel sees it: the process of its present life, and the interpreter that stands by for the next.

Every child is a fresh interpreter on a module, never a fork of the supervisor. Whether and when there is another life
is not decided here.

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

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

_PIPE_BYTES = 48 * 1024
"""Less than an empty pipe takes at once; a warmup and the boot data may lie in it together."""
_KILL_WAIT_MS = 2_000
_CHILD_MAIN = "signet_actors.runtime.processes.child_main"


class ChildProcess:
    """The processes of the child ``name``, at most one life and one standby at a time.

    ``inherited`` are the descriptors that every one of them is born with, ``environ`` what its environment has beside
    ours.
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
        """True from ``launch`` until ``clear``: a life that has ended counts until its end has been dealt with."""
        return self._process is not None

    @property
    def pid(self) -> int | None:
        """The process of the present life."""
        return self._process.pid if self._process is not None else None

    def launch(self, document: bytes) -> None:
        """A life has begun with the boot data ``document``, in the interpreter that stands by or in a fresh one.

        A fresh one reads its boot data from an unlinked file, because a pipe could block here. Raises OSError when
        there is no memory, no process or no disk for it.
        """
        self._process = self._adopt_standby(document)
        if self._process is None:
            with tempfile.TemporaryFile() as file:
                file.write(document)
                file.seek(0)
                self._process = self._start_interpreter(file.fileno())

    def spawn_standby(self, warmup: bytes) -> None:
        """An interpreter has been started that imports the child's code, prepares itself for a life like
        ``warmup``, and then waits for boot data on its stdin.

        It is not yet a life of the child: it has no name, no socket and no heartbeat, and its death is nobody's.
        """
        if self._standby is not None:
            return
        try:
            self._standby = self._start_interpreter(subprocess.PIPE)
        except OSError as error:  # no memory or no processes: the next life starts cold, if it can
            self._log.warning("standby failed", child=self._name, exc_info=error)
            return
        self._warmup_bytes = 0
        if len(warmup) <= _PIPE_BYTES // 2:
            self._warmup_bytes = len(warmup)
            self._write_to_stdin(self._standby, warmup)
        self._log.info("standby prepared", child=self._name, pid=self._standby.pid)

    def kill_standby(self) -> None:
        """No interpreter stands by."""
        process, self._standby = self._standby, None
        if process is None:
            return
        process.kill()
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # of a warmup that it did not live to read
                process.stdin.close()
        try:
            process.wait(_KILL_WAIT_MS / 1000)
        except subprocess.TimeoutExpired:
            self._log.critical("standby cannot be killed", child=self._name, pid=process.pid)

    def kill(self) -> None:
        """The present life, if any, has been sent SIGKILL; ``reap`` tells when it is over."""
        if self._process is not None:
            self._process.kill()

    def reap(self) -> int | None:
        """How the present life ended (exit code, or minus the signal), None while it has not; no zombie is left.

        The kernel's word, asked without waiting, and only about processes that were started here. The life still
        ``exists`` until it is buried, so that its last words can be told from those of a stranger.
        """
        if self._standby is not None and self._standby.poll() is not None:
            self.kill_standby()
        return self._process.poll() if self._process is not None else None

    def clear(self) -> None:
        """The life that ``reap`` told the end of is forgotten, and another may be launched."""
        self._process = None

    def terminate(self) -> None:
        """Neither a life nor a standby is left, or the log names what the kernel does not let go of."""
        self.kill_standby()
        if self._process is None:
            return
        self._process.kill()
        try:
            self._process.wait(_KILL_WAIT_MS / 1000)
        except subprocess.TimeoutExpired:
            self._log.critical("child cannot be killed", child=self._name, pid=self._process.pid)

    def _adopt_standby(self, document: bytes) -> subprocess.Popen[bytes] | None:
        """The interpreter that stood by, now with its boot data; None when there is none fit for it."""
        process = self._standby
        if process is None:
            return None
        if process.poll() is not None or self._warmup_bytes + len(document) > _PIPE_BYTES:
            self.kill_standby()
            return None
        self._standby = None
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError), process.stdin:
            self._write_to_stdin(process, document)
        return process

    @staticmethod
    def _write_to_stdin(process: subprocess.Popen[bytes], document: bytes) -> None:
        """The document is in the pipe, or nobody will read it: whoever was to has died, which ``reap`` finds."""
        assert process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.write(document)
            process.stdin.flush()

    def _start_interpreter(self, stdin: int) -> subprocess.Popen[bytes]:
        """A fresh interpreter on the child's module, which never looks for it in the current directory."""
        with blocked():
            return subprocess.Popen(
                [sys.executable, "-P", "-m", _CHILD_MAIN, str(os.getpid()), self._module],
                stdin=stdin,
                pass_fds=self.inherited,
                env={**os.environ, **self._environ},
            )
