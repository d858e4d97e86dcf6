"""Import the code of all children once, and fork a process for each of them that the supervisor asks for.

The first children start while the code of the others is being imported, on another core.

``python -m signet_actors.runtime.processes.fork_server SUPERVISOR_PID CHANNEL MODULE...``

``CHANNEL`` is a socket of whole packets; ``supervision/fork_server.py`` is its other end. This process has one thread
and no file, other socket or ZeroMQ context, so that its forks are as good as fresh interpreters.

A child is forked twice, so that it belongs to the supervisor, which can then wait for it, and goes on when this process
is killed. It begins only when the supervisor has its process id, so that none runs that the supervisor does not know.

Source: docs/reliability.md R9, R10; docs/messaging.md rule 17; prctl(2), PR_SET_CHILD_SUBREAPER.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import gc
import importlib
import importlib.util
import os
import select
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

import msgspec
from setproctitle import setproctitle

from signet_actors.domain.lazy_patterns import compile_next
from signet_actors.errors import ExitCode
from signet_actors.runtime.processes.parent_death import tie_to_supervisor

PACKET_BYTES = 64 * 1024
MOST_FILES = 8
READY = b"ready"
"""Sent once, when requests are answered; a program that is not imported yet is imported then."""
IMPORTED = b"imported"
"""Sent once, when all programs are imported."""

_START_S = 20.0
"""A later fork replaces a child that ended; patterns are compiled then, for the next one."""
_BETWEEN_PATTERNS_S = 0.02

Program = Callable[[], int | None]


class ForkRequest(msgspec.Struct, frozen=True):
    """Asks for a process that runs ``module``.

    The packet carries a pipe from which the process reads a byte before it begins, the file that becomes its standard
    input, and one for each descriptor number in ``inherited``. ``environ`` is added to its environment.
    """

    module: str
    inherited: tuple[int, ...] = ()
    environ: dict[str, str] = {}


class ForkReply(msgspec.Struct, frozen=True):
    """The process id of the new child of the supervisor; None if the module cannot be imported or nothing be forked."""

    pid: int | None


def main() -> int:
    """Serve the supervisor until it closes the channel; return the exit code."""
    supervisor_pid, channel_fd, *modules = sys.argv[1:]
    if not tie_to_supervisor(int(supervisor_pid)):
        return ExitCode.GIVE_UP
    channel = socket.socket(fileno=int(channel_fd))
    gc.disable()  # while importing, the collector would find next to nothing
    programs: dict[str, Program | None] = {}
    with contextlib.suppress(ConnectionError):
        channel.send(READY)
        began_s = time.monotonic()
        replaces = False
        while True:
            missing = [module for module in modules if module not in programs]
            wait_s = 0 if missing else _BETWEEN_PATTERNS_S if replaces else None
            if not select.select([channel], [], [], wait_s)[0]:
                if missing:
                    programs[missing[0]] = _import_program(missing[0])
                    if len(missing) == 1:
                        channel.send(IMPORTED)
                    continue
                if compile_next():
                    continue
            packet, files, _, _ = socket.recv_fds(channel, PACKET_BYTES, MOST_FILES)
            if not packet:
                break
            request = msgspec.json.decode(packet, type=ForkRequest)
            if request.module in missing:
                programs[request.module] = _import_program(request.module)
            program = programs.get(request.module)
            replaces = replaces or time.monotonic() - began_s > _START_S
            gc.freeze()  # the collector of a child writes to none of the pages that all of them share
            pid = _fork(program, request, files, channel.fileno()) if program is not None else None
            for file in files:
                os.close(file)
            channel.send(msgspec.json.encode(ForkReply(pid)))
    return ExitCode.OK


def _import_program(module: str) -> Program | None:
    """Return the ``main`` of a module, or of a package's ``__main__``; None if it cannot be imported.

    A fresh interpreter then fails in the same way, and says why. A module's ``preload`` imports what it needs later.
    """
    try:
        spec = importlib.util.find_spec(module)
        is_package = spec is not None and spec.submodule_search_locations is not None
        imported = importlib.import_module(f"{module}.__main__" if is_package else module)
        getattr(imported, "preload", lambda: None)()
    except (Exception, SystemExit):  # noqa: BLE001 - code of any kind, perhaps half installed
        return None
    program: Program | None = getattr(imported, "main", None)
    return program


def _fork(program: Program, request: ForkRequest, files: Sequence[int], channel: int) -> int | None:
    """Return the pid of a new child of the supervisor; None if the system has no room for it."""
    reader, writer = os.pipe()
    try:
        middle = os.fork()
        if middle == 0:
            _fork_child(program, request, files, writer, (channel, reader, writer))
    except OSError:
        middle = 0
    os.close(writer)
    told = os.read(reader, 16)
    os.close(reader)
    if middle:
        os.waitpid(middle, 0)  # from here on the child belongs to the supervisor
    return int(told) if told else None


def _fork_child(
    program: Program, request: ForkRequest, files: Sequence[int], told: int, foreign: Sequence[int]
) -> NoReturn:
    """Fork the child, write its pid to ``told``, and exit. The child closes the ``foreign`` descriptors."""
    try:
        pid = os.fork()
        if pid:
            os.write(told, str(pid).encode())
    except OSError:
        pid = -1
    if pid:
        os._exit(0)
    code = 1
    try:
        begin, *given = files
        for descriptor in foreign:
            os.close(descriptor)
        if os.read(begin, 1):
            os.close(begin)
            _place(given, (0, *request.inherited))
            code = _run(program, request)
    finally:
        os._exit(code)


def _place(given: Sequence[int], numbers: Sequence[int]) -> None:
    """Give the open files ``given`` these descriptor ``numbers``."""
    beyond = max((*given, *numbers)) + 1
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, beyond) for descriptor in given]
    for descriptor in given:
        os.close(descriptor)
    for descriptor, number in zip(moved, numbers, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)


def _run(program: Program, request: ForkRequest) -> int:
    """Run the program in this process, end its threads as an interpreter does, and return its exit code."""
    os.environ.update(request.environ)
    sys.argv[:] = [request.module]
    gc.enable()
    setproctitle(f"{sys.executable} -m {request.module}")
    try:
        return program() or 0
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:  # noqa: BLE001 - like an interpreter
        traceback.print_exc()
        return 1
    finally:
        threading._shutdown()  # type: ignore[attr-defined]  # like multiprocessing, before the exit of a fork
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()


if __name__ == "__main__":
    sys.exit(main())
