"""What a child must know to live, handed over as one line of JSON on its stdin.

An interpreter that stands by gets a rehearsal first: the same line as it would be now, of incarnation 0, so that it
can load what a life with this configuration will need. Nothing of it appears in the process list or the environment,
and no file is left behind.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import BinaryIO, TypeVar

import msgspec

from signet_actors.config.schema import Config
from signet_actors.errors import ExitCode
from signet_actors.protocol.control import FileIdentity
from signet_actors.runtime.processes.parent_death import tie_to_supervisor
from signet_actors.runtime.sync_points import begin_incarnation

R = TypeVar("R")


class ChildContext(msgspec.Struct, frozen=True):
    """A child's birth certificate.

    ``incarnation`` counts the lives of this name within one life of the supervisor, from 1 (0 = a rehearsal, no life);
    ``boot_id`` names that life of the supervisor; ``listen_fds`` are inherited listening TCP sockets; ``workspace`` and
    ``socket_dir`` are absolute paths; ``started_at_ms`` is the wall time at which that life of the supervisor began;
    ``bus_key`` is the secret of that life's bus, by which its processes know each other;
    ``files`` are the lasting files that earlier processes of this daemon have opened: no other may take their place.
    """

    name: str
    role: str
    incarnation: int
    boot_id: str
    supervisor_pid: int
    workspace: str
    socket_dir: str
    config: Config
    listen_fds: tuple[int, ...] = ()
    console: bool = False
    started_at_ms: int = 0
    bus_key: str = ""
    files: tuple[FileIdentity, ...] = ()


def encode_context(boot: ChildContext) -> bytes:
    """The line that ``read_context`` reads."""
    return msgspec.json.encode(boot) + b"\n"


def warmup_payload(boot: ChildContext) -> bytes:
    """The line with which an interpreter that stands by for such a life can prepare itself."""
    return encode_context(msgspec.structs.replace(boot, incarnation=0))


def read_context() -> ChildContext:
    """The boot data from stdin; from here on this process dies with its supervisor and creates private files only.

    Leaves with exit code 78 when stdin holds something else (somebody started the child by hand), and without a word
    when it holds nothing (the supervisor died while this interpreter stood by).
    """
    return read_context_preloaded(lambda _rehearsal: None)[0]


def read_context_preloaded(preload_imports: Callable[[ChildContext], R]) -> tuple[ChildContext, R | None]:
    """Return the context like ``read_context``, and what ``preload_imports`` returned.

    A standby process is given a context to warm up with first. The context that it starts with later may differ.
    """
    os.umask(0o077)
    if sys.stdin is None or sys.stdin.isatty():
        sys.stderr.write("This is a part of the Signet daemon; start the whole of it with `signet up`.\n")
        raise SystemExit(ExitCode.CONFIG)
    boot, preloaded = _next_line(sys.stdin.buffer), None
    if boot.incarnation == 0:
        preloaded = preload_imports(boot)
        boot = _next_line(sys.stdin.buffer)
    if not tie_to_supervisor(boot.supervisor_pid):
        raise SystemExit(ExitCode.GIVE_UP)
    begin_incarnation(boot.incarnation)
    return boot, preloaded


def _next_line(stdin: BinaryIO) -> ChildContext:
    document = stdin.readline()
    if not document:
        raise SystemExit(ExitCode.GIVE_UP)
    try:
        return msgspec.json.decode(document, type=ChildContext)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        sys.stderr.write(f"The boot data on stdin are not valid: {error}\n")
        raise SystemExit(ExitCode.CONFIG) from error
