"""The supervisor's side of the fork server: start it, ask it for processes, replace it when it is gone.

It exists on Linux only: elsewhere a process cannot hand its children to the supervisor, and libraries of macOS do not
survive a fork. Without it, or while it starts, every child is a fresh interpreter.

Source: docs/reliability.md R9; docs/messaging.md rule 17.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Final

import msgspec

from signet_actors.runtime.processes.fork_server import IMPORTED, PACKET_BYTES, READY, ForkReply, ForkRequest
from signet_actors.runtime.processes.signals import blocked

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

CHILD_ENVIRON: Final = {"OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1", "SPT_NOENV": "1"}
"""No child multiplies large matrices, and their threads take turns: one thread of BLAS, and one arena for all threads,
since glibc never returns the end of another one, 8 MB after an import. The title of a process (``setproctitle``) does
not overwrite what the system shows as its environment."""

_PR_SET_CHILD_SUBREAPER: Final = 36
_MODULE: Final = "signet_actors.runtime.processes.fork_server"
_IMPORTS_S: Final = 20.0
"""How long the first children wait for the imports of their code."""
_FORK_S: Final = 1.0
_AGAIN_S: Final = 10.0


class ForkServer:
    """The fork server for children of these ``modules``, in the order in which they start."""

    def __init__(self, modules: Collection[str], log: FilteringBoundLogger) -> None:
        self._modules = tuple(dict.fromkeys(modules))
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._ready = self._imported = False
        self._started_s = -_AGAIN_S

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Start the process, unless it runs or was started a moment ago; it is usable a moment later."""
        self._look()
        now = time.monotonic()
        if sys.platform != "linux" or self._process is not None or now - self._started_s < _AGAIN_S:
            return
        self._started_s = now
        try:
            self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            self._channel.setblocking(False)
            _adopt_orphans()
            with theirs, blocked():
                arguments = [str(os.getpid()), str(theirs.fileno()), *self._modules]
                self._process = subprocess.Popen(
                    [sys.executable, "-P", "-m", _MODULE, *arguments],
                    stdin=subprocess.DEVNULL,
                    pass_fds=(theirs.fileno(),),
                    env={**os.environ, **CHILD_ENVIRON},
                )
        except OSError as error:
            self._log.warning("fork_server_failed", exc_info=error)
            self._forget()

    @property
    def is_starting(self) -> bool:
        """True until the process answers, for as long as it is worth waiting for."""
        self._look()
        return self._process is not None and not self._ready and time.monotonic() - self._started_s < _IMPORTS_S

    def fork(self, module: str, inherited: tuple[int, ...], environ: Mapping[str, str], document: int) -> int | None:
        """Return the pid of a new child of this process that runs ``module``.

        Its stdin is the file ``document``, and it inherits the descriptors ``inherited``. None if there is no fork
        server now, or it could not import the module: start an interpreter instead.
        """
        self._look()
        if not self._ready or self._channel is None:
            return None
        request = msgspec.json.encode(ForkRequest(module, inherited, dict(environ)))
        waits, begin = os.pipe()
        try:
            try:
                socket.send_fds(self._channel, [request], [waits, document, *inherited])
            finally:
                os.close(waits)
            pid = self._reply().pid
            if pid is not None:
                with contextlib.suppress(BrokenPipeError):  # it was killed before it began
                    os.write(begin, b"\n")
        except (OSError, msgspec.DecodeError) as error:  # it hangs, was killed, or has no descriptor left
            self._log.warning("fork_server_unusable", exc_info=error)
            self.stop()
            return None
        else:
            return pid
        finally:
            os.close(begin)

    def _reply(self) -> ForkReply:
        """Wait for the reply to a request; raise TimeoutError if the process hangs."""
        assert self._channel is not None
        while select.select([self._channel], [], [], _FORK_S if self._imported else _IMPORTS_S)[0]:
            packet = self._channel.recv(PACKET_BYTES)
            if packet != IMPORTED:
                return msgspec.json.decode(packet, type=ForkReply)
            self._imported = True
        raise TimeoutError("it does not answer")

    def stop(self) -> None:
        """Kill the process; its children go on."""
        if self._process is not None:
            self._process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # it waits for a disk; it ends with this process
                self._process.wait(_FORK_S)
        self._forget()

    def _look(self) -> None:
        """Note whether the process has become usable or has exited."""
        if self._process is None or self._channel is None:
            return
        if self._process.poll() is not None:
            self._log.warning("fork_server_exited", code=self._process.returncode)
            self._forget()
        elif not self._imported:
            try:
                packet = self._channel.recv(PACKET_BYTES)
            except BlockingIOError:
                return
            except OSError:
                self.stop()
            else:
                self._ready = self._ready or packet == READY
                self._imported = packet == IMPORTED

    def _forget(self) -> None:
        if self._channel is not None:
            self._channel.close()
        self._process = self._channel = None
        self._ready = self._imported = False


def _adopt_orphans() -> None:
    """Make the descendants of this process its children when their parents have exited."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), "prctl(PR_SET_CHILD_SUBREAPER)")


def reap_orphans(kept: Collection[int | None]) -> None:
    """Free what the kernel keeps of exited processes that were adopted; ``kept`` are the pids of all others."""
    with contextlib.suppress(ChildProcessError):  # there is no child at all
        while (exited := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is not None:
            if exited.si_pid in kept:
                return  # it would be found again; the next pass takes it first
            os.waitpid(exited.si_pid, 0)
