"""What a child process needs to start, passed to it as one line of JSON on stdin.

Nothing of it appears in the process list or the environment, and no file is left behind. A standby process first gets a
warm-up context, the same line with incarnation 0, so that it can load what this configuration needs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import BinaryIO, TypeVar

import msgspec

from signet_actors.config.schema import Config
from signet_actors.errors import ExitCode
from signet_actors.protocol.control import Drain, EndSnapshots, FileIdentity, Reload, SupervisorMessage, TreeChanged
from signet_actors.runtime.processes.parent_death import tie_to_supervisor
from signet_actors.runtime.sync_points import begin_incarnation

R = TypeVar("R")

_decode_control = msgspec.msgpack.Decoder(SupervisorMessage).decode


class ChildContext(msgspec.Struct, frozen=True):
    """The context of one child process.

    ``incarnation`` counts the processes of this name since the supervisor started, from 1 (0 = a warm-up context).
    ``boot_id`` identifies the run of the supervisor; ``started_at_ms`` is its start on the wall clock; ``bus_key`` is
    the secret by which its processes authenticate each other. ``listen_fds`` are inherited listening TCP sockets.
    ``workspace`` and ``socket_dir`` are absolute paths. ``files`` are the lasting files that earlier processes of this
    daemon opened: no other file may take their place.
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
    """Return the line that ``read_context`` reads."""
    return msgspec.json.encode(boot) + b"\n"


def warmup_payload(boot: ChildContext) -> bytes:
    """Return the line with which a standby process can warm up for a child with this context."""
    return encode_context(msgspec.structs.replace(boot, incarnation=0))


def read_context() -> ChildContext:
    """Read the context from stdin; tie this process to its supervisor and make it create private files only.

    Exits with code 78 when stdin holds something else (a child started by hand), and silently with code 75 when it
    holds nothing (the supervisor exited while this process was on standby).
    """
    return read_context_preloaded(lambda _rehearsal: None)[0]


def read_context_preloaded(preload_imports: Callable[[ChildContext], R]) -> tuple[ChildContext, R | None]:
    """Return the context like ``read_context``, and what ``preload_imports`` returned.

    A standby process is given a context to warm up with first. The context that it starts with later may differ.
    """
    os.umask(0o077)
    if sys.stdin is None or sys.stdin.isatty():
        sys.stderr.write("This program is a part of the Signet daemon; start the daemon with `signet up`.\n")
        raise SystemExit(ExitCode.CONFIG)
    boot, preloaded = _next_line(sys.stdin.buffer), None
    if boot.incarnation == 0:
        preloaded = preload_imports(boot)
        boot = _next_line(sys.stdin.buffer)
    if not tie_to_supervisor(boot.supervisor_pid):
        raise SystemExit(ExitCode.GIVE_UP)
    begin_incarnation(boot.incarnation)
    return boot, preloaded


def decode_control(body: bytes) -> TreeChanged | Drain | EndSnapshots | Config:
    """Return a message of the supervisor, a ``Reload`` as its configuration; raises what decoding can raise."""
    message = _decode_control(body)
    return msgspec.json.decode(message.config_json, type=Config) if type(message) is Reload else message


def _next_line(stdin: BinaryIO) -> ChildContext:
    document = stdin.readline()
    if not document:
        raise SystemExit(ExitCode.GIVE_UP)
    try:
        return msgspec.json.decode(document, type=ChildContext)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        sys.stderr.write(f"The start data on stdin are not valid: {error}\n")
        raise SystemExit(ExitCode.CONFIG) from error
