"""What a child process needs to start, passed to it as one line of JSON on stdin.

Nothing of it appears in the process list or the environment, and no file is left behind.
"""

from __future__ import annotations

import os
import sys

import msgspec

from signet_actors.config.schema import Config
from signet_actors.errors import ExitCode
from signet_actors.protocol.control import Drain, EndSnapshots, FileIdentity, Reload, SupervisorMessage, TreeChanged
from signet_actors.runtime.processes.parent_death import tie_to_supervisor
from signet_actors.runtime.sync_points import begin_incarnation

_decode_control = msgspec.msgpack.Decoder(SupervisorMessage).decode


class ChildContext(msgspec.Struct, frozen=True):
    """The context of one child process.

    ``incarnation`` counts the processes of this name since the supervisor started, from 1.
    ``boot_id`` identifies the run of the supervisor; ``started_at_ms`` is its start on the wall clock; ``bus_key`` is
    the secret by which its processes authenticate each other. ``listen_fds``: listening sockets, TCP and Unix.
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


def read_context() -> ChildContext:
    """Read the context from stdin; tie this process to its supervisor and make it create private files only.

    Exits with code 78 when stdin holds something else (a child started by hand), and silently with code 75 when the
    supervisor has exited.
    """
    os.umask(0o077)
    if sys.stdin is None or sys.stdin.isatty():
        sys.stderr.write("This program is a part of the Signet daemon; start the daemon with `signet up`.\n")
        raise SystemExit(ExitCode.CONFIG)
    try:
        boot = msgspec.json.decode(sys.stdin.buffer.readline(), type=ChildContext)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        sys.stderr.write(f"The start data on stdin are not valid: {error}\n")
        raise SystemExit(ExitCode.CONFIG) from error
    if not tie_to_supervisor(boot.supervisor_pid):
        raise SystemExit(ExitCode.GIVE_UP)
    begin_incarnation(boot.incarnation)
    return boot


def decode_control(body: bytes) -> TreeChanged | Drain | EndSnapshots | Config:
    """Return a message of the supervisor, a ``Reload`` as its configuration; raises what decoding can raise."""
    message = _decode_control(body)
    return msgspec.json.decode(message.config_json, type=Config) if type(message) is Reload else message
